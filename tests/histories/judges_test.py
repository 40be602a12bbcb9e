"""The judges say what is wrong: each history here has one fault (tests.seen-to-fail)."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import bank  # noqa: E402
import fork  # noqa: E402
import lists  # noqa: E402
import orphans  # noqa: E402
import partitions  # noqa: E402
import phantoms  # noqa: E402
import skew  # noqa: E402
from dependencies import LEVELS, Graph  # noqa: E402
from history import Transaction  # noqa: E402

RC, RR, SER = LEVELS


class Made(unittest.TestCase):
    """Transactions that all overlap, where nothing else is said."""

    def setUp(self):
        self.notes = []

    def note(self, reads=(), writes=(), found=(), began=0.0, ended=9.0, committed=True):
        """Its name is how many there are."""
        name = len(self.notes) + 1
        self.notes.append(Transaction(name, began, ended, committed, "", list(reads), list(writes), list(found)))
        return name

    def assert_wrong(self, module, final, **kinds):
        """RC="lost": what is wrong first at READ COMMITTED, in the word before the colon; all other levels find nothing."""
        for level, short in ((RC, "RC"), (RR, "RR"), (SER, "SER")):
            wrong = []
            module.judge(self.notes, final, level, wrong)
            self.assertEqual(kinds.get(short), wrong[0].split(":")[0] if wrong else None, (level, wrong))

    def assert_wrong_everywhere(self, module, final, kind):
        self.assert_wrong(module, final, RC=kind, RR=kind, SER=kind)


class Cycles(unittest.TestCase):
    def forbidden(self, *edges, clock=None):
        graph = Graph()
        for one, two, kind in edges:
            graph.add(one, two, kind, "x")
        graph.add_clock(clock or {})
        return [level for level in LEVELS if graph.cycle(level)]

    def test_none(self):
        self.assertEqual([], self.forbidden((1, 2, "ww"), (2, 3, "wr"), (1, 3, "rw"), (3, 4, "rw")))

    def test_of_what_was_written_and_seen(self):
        self.assertEqual([RC, RR, SER], self.forbidden((1, 2, "ww"), (2, 1, "ww")))
        self.assertEqual([RC, RR, SER], self.forbidden((1, 2, "wr"), (2, 3, "ww"), (3, 1, "wr")))

    def test_of_one_that_was_missed(self):
        self.assertEqual([RR, SER], self.forbidden((1, 2, "wr"), (2, 1, "rw")))
        self.assertEqual([RR, SER], self.forbidden((1, 2, "ww"), (2, 1, "rw")))

    def test_of_two_that_were_missed(self):
        self.assertEqual([SER], self.forbidden((1, 2, "rw"), (2, 1, "rw")))
        self.assertEqual([RR, SER], self.forbidden((1, 2, "rw"), (2, 3, "wr"), (3, 4, "rw"), (4, 1, "wr")))
        self.assertEqual([SER], self.forbidden((1, 2, "rw"), (2, 3, "rw"), (3, 1, "wr")))

    def test_of_the_clock(self):
        apart = {1: (0, 1), 2: (2, 3)}
        self.assertEqual([RC, RR, SER], self.forbidden((2, 1, "ww"), clock=apart))
        self.assertEqual([RC, RR, SER], self.forbidden((2, 1, "rw"), clock=apart))
        self.assertEqual([], self.forbidden((2, 1, "rw"), clock={1: (0, 2), 2: (1, 3)}))
        self.assertEqual([SER], self.forbidden((2, 3, "rw"), (3, 1, "rw"), clock={1: (0, 1), 2: (2, 3), 3: (0, 3)}))

    def test_of_two_kinds_between_the_same(self):
        self.assertEqual([RR, SER], self.forbidden((1, 2, "rw"), (1, 2, "wr"), (2, 1, "rw")))


class Lists(Made):
    def final(self, **items):
        return [(str(k), "{" + ",".join(map(str, items.get(f"l{k}", []))) + "}") for k in range(3)]

    def test_without_fault(self):
        self.note(writes=[1], reads=[(2, []), (1, [1])])
        self.note(writes=[1, 2], reads=[(1, [1]), (1, [1, 2]), (2, [2])])
        self.note(writes=[1], reads=[(1, [1, 2, 3])], committed=False)
        self.note(reads=[(1, [1]), (2, [])])
        self.assert_wrong(lists, self.final(l1=[1, 2], l2=[2]))

    def test_lost(self):
        self.note(writes=[1, 2])
        self.assert_wrong_everywhere(lists, self.final(l1=[1]), "lost")

    def test_twice(self):
        self.note(writes=[1])
        self.assert_wrong_everywhere(lists, self.final(l1=[1, 1]), "twice")

    def test_what_was_rolled_back(self):
        self.note(writes=[1], committed=False)
        self.assert_wrong_everywhere(lists, self.final(l1=[1]), "phantom")
        self.note(reads=[(1, [1])])
        self.assert_wrong_everywhere(lists, self.final(), "dirty")

    def test_behind_its_own(self):
        self.note(writes=[1], reads=[(1, [1, 2])])
        self.note(writes=[1])
        self.assert_wrong_everywhere(lists, self.final(l1=[1, 2]), "behind its own")

    def test_unrepeatable(self):
        self.note(writes=[1])
        self.note(reads=[(1, []), (1, [1])])
        self.assert_wrong(lists, self.final(l1=[1]), RR="unrepeatable", SER="unrepeatable")

    def test_half_of_another(self):
        self.note(writes=[1, 2])
        self.note(reads=[(1, [1]), (2, [])])
        self.assert_wrong(lists, self.final(l1=[1], l2=[1]), RR="a cycle", SER="a cycle")

    def test_write_skew(self):
        self.note(writes=[1], reads=[(2, [])])
        self.note(writes=[2], reads=[(1, [])])
        self.assert_wrong(lists, self.final(l1=[1], l2=[2]), SER="a cycle")

    def test_stale(self):
        self.note(writes=[1], ended=1.0)
        self.note(reads=[(1, [])], began=2.0)
        self.assert_wrong_everywhere(lists, self.final(l1=[1]), "a cycle")


class Bank(Made):
    HAS = [(str(id), "0", str(bank.EACH)) for id in range(bank.ACCOUNTS)]
    ALL = bank.ACCOUNTS * bank.EACH

    def test_without_fault(self):
        self.note(writes=[("account 0", 1)], found=[])
        self.note(reads=[("account 0", 1)], found=[self.ALL])
        self.assert_wrong(bank, [("0", "1", str(bank.EACH)), *self.HAS[1:]])

    def test_money_is_missed(self):
        self.note(found=[self.ALL, self.ALL - 1])
        self.assert_wrong_everywhere(bank, self.HAS, "money")

    def test_money_is_gone(self):
        self.assert_wrong_everywhere(bank, self.HAS[1:], "money")

    def test_an_update_is_lost(self):
        self.note(writes=[("account 0", 1)])
        self.note(writes=[("account 0", 1)])
        self.assert_wrong_everywhere(bank, [("0", "1", str(bank.EACH)), *self.HAS[1:]], "lost")

    def test_an_update_by_what_was_read(self):
        self.note(writes=[("account 0", 1)])
        self.note(reads=[("account 0", 0)], writes=[("account 0", 2)])
        self.assert_wrong(bank, [("0", "2", str(bank.EACH)), *self.HAS[1:]], RR="a cycle", SER="a cycle")

    def test_a_version_that_nobody_wrote(self):
        self.note(reads=[("account 0", 1)], committed=False)
        self.assert_wrong_everywhere(bank, self.HAS, "dirty")
        self.assert_wrong_everywhere(bank, [("0", "1", str(bank.EACH)), *self.HAS[1:]], "phantom")

    def test_unrepeatable(self):
        self.note(writes=[("account 0", 1)])
        self.note(reads=[("account 0", 0), ("account 0", 1)])
        self.assert_wrong(bank, [("0", "1", str(bank.EACH)), *self.HAS[1:]], RR="unrepeatable", SER="unrepeatable")


class Skew(Made):
    def final(self, *away):
        return [(str(id), "0" if id not in away else "1", "f" if id in away else "t") for id in range(2 * skew.SHIFTS)]

    def test_both_go(self):
        both = [("doctor 0", 0), ("doctor 1", 0)]
        self.note(reads=both, writes=[("doctor 0", 1)], found=[2])
        self.note(reads=both, writes=[("doctor 1", 1)], found=[2])
        self.assert_wrong(skew, self.final(0, 1), SER="skew")

    def test_nobody_is_found(self):
        self.note(found=[0])
        self.assert_wrong(skew, self.final(), SER="skew")

    def test_one_goes(self):
        self.note(reads=[("doctor 0", 0), ("doctor 1", 0)], writes=[("doctor 0", 1)], found=[2])
        self.assert_wrong(skew, self.final(0))


class Fork(Made):
    def final(self, **versions):
        return [(str(id), str(versions.get(f"r{id}", 0))) for id in range(fork.REGISTERS)]

    def opposite(self, *found):
        self.note(writes=[("register 0", 1)])
        self.note(writes=[("register 32", 1)])
        self.note(reads=[("register 0", 1), ("register 32", 0)], found=found[:1])
        self.note(reads=[("register 32", 1), ("register 0", 0)], found=found[1:])

    def test_in_statements(self):
        self.opposite()
        self.assert_wrong(fork, self.final(r0=1, r32=1), RR="a cycle", SER="a cycle")

    def test_in_a_statement(self):
        self.opposite((0, (1, 0)), (0, (0, 1)))
        self.assert_wrong_everywhere(fork, self.final(r0=1, r32=1), "fork")

    def test_in_one_order(self):
        self.note(writes=[("register 0", 1)])
        self.note(writes=[("register 32", 1)])
        self.note(reads=[("register 0", 1), ("register 32", 0)], found=[(0, (1, 0))])
        self.note(reads=[("register 0", 1), ("register 32", 1)], found=[(0, (1, 1))])
        self.assert_wrong(fork, self.final(r0=1, r32=1))


class Phantoms(Made):
    NEAR = (1, 3, 7)

    def book(self, room=1, slot=5, seen=(), **more):
        name = len(self.notes) + 1
        return self.note(reads=[(self.NEAR, [(key, room, slot) for key in seen])], writes=[("insert", name, room, slot)], **more)

    def test_without_fault(self):
        self.book()
        self.note(reads=[(self.NEAR, [(1, 1, 5)])], writes=[("delete", 1, 1, 5)])
        self.note(reads=[(self.NEAR, [])])
        self.assert_wrong(phantoms, [])

    def test_both_book(self):
        self.book()
        self.book(slot=6)
        self.assert_wrong(phantoms, [("1", "1", "5"), ("2", "1", "6")], SER="skew")

    def test_both_booked_and_are_gone(self):
        """What is left says nothing; who has missed whom does."""
        self.book()
        self.book(slot=6)
        self.note(writes=[("delete", 1, 1, 5), ("delete", 2, 1, 6)], began=10.0, ended=11.0)
        self.assert_wrong(phantoms, [], SER="a cycle")

    def test_lost(self):
        self.book()
        self.assert_wrong_everywhere(phantoms, [], "lost or phantom")

    def test_twice(self):
        self.book()
        self.note(writes=[("delete", 1, 1, 5)])
        self.note(writes=[("delete", 1, 1, 5)])
        self.assert_wrong_everywhere(phantoms, [], "twice")

    def test_dirty(self):
        self.book(committed=False)
        self.note(reads=[(self.NEAR, [(1, 1, 5)])])
        self.assert_wrong_everywhere(phantoms, [], "dirty")

    def test_a_phantom(self):
        self.book()
        self.note(reads=[(self.NEAR, []), (self.NEAR, [(1, 1, 5)])])
        self.assert_wrong(phantoms, [("1", "1", "5")], RR="unrepeatable", SER="unrepeatable")

    def test_stale(self):
        self.book(ended=1.0)
        self.note(reads=[(self.NEAR, [])], began=2.0)
        self.assert_wrong_everywhere(phantoms, [("1", "1", "5")], "a cycle")

    def test_what_is_gone_is_seen(self):
        self.book(ended=1.0)
        self.note(writes=[("delete", 1, 1, 5)], began=2.0, ended=3.0)
        self.note(reads=[(self.NEAR, [(1, 1, 5)])], began=4.0)
        self.assert_wrong_everywhere(phantoms, [], "a cycle")


class Orphans(Made):
    PARENT = [("parent", "1", "1")]

    def test_without_fault(self):
        self.note(writes=[("child", 1)])
        self.note(writes=[("child", 2)])
        self.note(writes=[("gone", 2)])
        self.assert_wrong(orphans, [*self.PARENT, ("child", "1", "1")])

    def test_seen(self):
        self.note(found=["7"])
        self.assert_wrong_everywhere(orphans, self.PARENT, "orphan")

    def test_left(self):
        self.note(writes=[("cascading", 1)])
        self.assert_wrong_everywhere(orphans, [*self.PARENT, ("cascading", "1", "2")], "orphan")

    def test_lost(self):
        self.note(writes=[("child", 1)])
        self.assert_wrong_everywhere(orphans, self.PARENT, "lost")

    def test_phantom(self):
        self.assert_wrong_everywhere(orphans, [*self.PARENT, ("child", "1", "1")], "phantom")


class Partitions(Made):
    TOKENS = [("token", str(id), "0") for id in range(partitions.TOKENS)]
    ALL = list(range(partitions.TOKENS))

    def steps(self, count):
        for n in range(1, count + 1):
            self.note(writes=[("step", 5, n)], began=n, ended=n + 0.5)
        return [*self.TOKENS, *(("step", "5", str(n)) for n in range(1, count + 1))]

    def test_without_fault(self):
        final = self.steps(3)
        self.note(found=[("chain", 5, 2, [1, 2])], began=3.2, ended=9)
        self.note(found=[("chain", 5, 3, [1, 2, 3]), ("tokens", self.ALL, self.ALL)], began=8.5)
        self.assert_wrong(partitions, final)

    def test_a_gap(self):
        final = self.steps(3)
        self.note(found=[("chain", 5, 3, [1, 3])])
        self.assert_wrong_everywhere(partitions, final, "gap")

    def test_stale(self):
        final = self.steps(3)
        self.note(found=[("chain", 5, 2, [1, 2])], began=8.5)
        self.assert_wrong_everywhere(partitions, final, "stale")

    def test_one_that_came_meanwhile(self):
        final = self.steps(3)
        self.note(found=[("chain", 5, 2, [1, 2, 3])])
        self.assert_wrong(partitions, final, RR="unrepeatable", SER="unrepeatable")

    def test_lost(self):
        final = self.steps(3)
        self.assert_wrong_everywhere(partitions, final[:-1], "lost or phantom")

    def test_a_token_is_missed_or_seen_twice(self):
        for seen in (self.ALL[1:], [0, *self.ALL]):
            self.setUp()
            self.note(found=[("tokens", seen, self.ALL)])
            self.assert_wrong_everywhere(partitions, self.TOKENS, "token")

    def test_a_token_is_there_twice(self):
        self.assert_wrong_everywhere(partitions, [*self.TOKENS, ("token", "0", "0")], "token")


if __name__ == "__main__":
    unittest.main(verbosity=2)
