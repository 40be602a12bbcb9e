"""Transactions that append their number to lists and read lists, and a check of what they saw, as Elle's for list-append.

A list tells the order of the transactions that wrote it, and what a reader saw of it tells where in that order the reader stands.

    lists = Lists(seed)
    clients = [ListClient(cluster, k, f"name {k}", lists) for k in (1, 2, 3)]
    ...                                  # as in deaths.py
    lists.violations(final, clients)     # [] or what is wrong; `final`: {list: its numbers}, as read afterwards
"""
import itertools
import random
import time

from deaths import Client

LISTS = """CREATE TABLE lists (id int PRIMARY KEY, v int[] NOT NULL, pad text) USING gcl;
CREATE INDEX ON lists (cardinality(v), id)"""
PAD = 1000  # bytes: what is changed does not fit into a small cache
AT_ONCE, LENGTH = 8, 120  # lists that are appended to at a time, and about how long each becomes
LEVELS = ("READ COMMITTED", "READ COMMITTED", "REPEATABLE READ")


class Read:
    """A list as a transaction saw it, without what the transaction itself had appended."""

    def __init__(self, of, values, number):
        own = values.index(number) if number in values else len(values)
        self.of, self.values, self.behind_own = of, values[:own], values[own + 1:]


class Transaction:
    def __init__(self, number, client, level):
        self.number, self.client, self.level = number, client, level
        self.began = time.monotonic()  # before its first snapshot
        self.appends, self.reads = set(), []


class Lists:
    """What all clients share: the numbers, and which lists are in use."""

    def __init__(self, seed):
        self.seed, self.numbers = seed, itertools.count(1)
        self.transactions = {}  # by number

    def begin(self, client, level):
        number = next(self.numbers)
        self.transactions[number] = Transaction(number, client, level)
        return self.transactions[number]

    @staticmethod
    def of(number, chance):
        """One of the lists that are in use when that number is."""
        return number // (AT_ONCE * LENGTH) * AT_ONCE + chance.randrange(AT_ONCE)

    def violations(self, final):
        return Check(self.transactions, final).all()


class ListClient(Client):
    def __init__(self, cluster, k, name, lists):
        super().__init__(cluster, k, name)
        self.lists, self.random = lists, random.Random(f"{lists.seed}/{name}")

    def transaction(self, session):
        chance = self.random
        mine = self.lists.begin(self, chance.choice(LEVELS))
        session.run(f"BEGIN ISOLATION LEVEL {mine.level}")
        for _ in range(chance.randint(1, 4)):
            which = self.lists.of(mine.number, chance)
            if chance.random() < 0.5 and which not in mine.appends:
                mine.appends.add(which)
                rows = session.run(f"INSERT INTO lists VALUES ({which}, '{{{mine.number}}}', repeat('p', {PAD})) ON CONFLICT (id) DO UPDATE"
                                   " SET v = lists.v || EXCLUDED.v RETURNING id, v")
            else:
                others = {which, *(self.lists.of(mine.number, chance) for _ in range(chance.randrange(3)))}
                rows = session.run(f"SELECT id, v FROM lists WHERE id IN ({', '.join(map(str, sorted(others)))})")
                rows += [f"{empty}|{{}}" for empty in others - {int(row.split("|")[0]) for row in rows}]
            for row in rows:
                of, values = row.split("|")
                mine.reads.append(Read(int(of), [int(value) for value in values.strip("{}").split(",") if value], mine.number))
        if chance.random() < 0.1:
            session.run("ROLLBACK")
        else:
            self.commit(session, mine.number)


class Check:
    def __init__(self, transactions, final):
        self.transactions, self.final = transactions, final
        self.position = {of: {number: at for at, number in enumerate(values)} for of, values in final.items()}
        self.committed = {number for number, one in transactions.items() if number in one.client.told}
        self.found = set(itertools.chain(*final.values()))
        self.wrong = []

    def all(self):
        self.appends()
        self.prefixes()
        if not self.wrong:  # the order of a list's numbers is what the rest is about
            self.told_is_seen()
            self.snapshots()
            self.cycles()
        return self.wrong

    def say(self, text):
        self.wrong.append(text)

    def describe(self, number):
        one = self.transactions.get(number)
        if one is None:
            return f"{number}, which nobody had"
        known = "committed" if number in self.committed else "of unknown end" if number in one.client.unknown else "rolled back"
        return f"{number} ({one.client.name}, {one.level}, {known}, appends to {sorted(one.appends)})"

    def appends(self):
        """Each number is there once, in all of its lists or in none, and only if its COMMIT was sent."""
        for of, values in self.final.items():
            for number in values:
                one = self.transactions.get(number)
                known = number in self.committed or one is not None and number in one.client.unknown
                if one is None or of not in one.appends or not known:
                    self.say(f"phantom: list {of} has {self.describe(number)}")
            for number in {number for number in values if values.count(number) > 1} if len(set(values)) < len(values) else ():
                self.say(f"twice: list {of} has {self.describe(number)}")
        for number in self.committed | self.found & set(self.transactions):
            for of in self.transactions[number].appends:
                if number not in self.position.get(of, {}):
                    self.say(f"lost: list {of} lacks {self.describe(number)}")

    def prefixes(self):
        """What a transaction sees of a list is how it begins, and its own number is the last."""
        for number, one in self.transactions.items():
            for read in one.reads:
                whole = self.final.get(read.of, [])
                if read.behind_own:
                    self.say(f"behind its own: {self.describe(number)} saw {read.behind_own} in list {read.of}")
                if read.values != whole[:len(read.values)]:
                    at = next(i for i, value in enumerate(read.values) if whole[i:i + 1] != [value])
                    self.say(f"no prefix: {self.describe(number)} saw {self.describe(read.values[at])} in list {read.of} at {at},"
                             f" where {whole[at:at + 1]} is")

    def told_is_seen(self):
        """A transaction that begins after a COMMIT was answered sees it."""
        told = {}  # list -> (when, position) of its numbers, each beyond all before
        for number in self.committed:
            for of in self.transactions[number].appends:
                told.setdefault(of, []).append((self.transactions[number].client.told[number], self.position[of][number]))
        for entries in told.values():
            entries.sort()
        for number, one in self.transactions.items():
            for read in one.reads:
                behind = [at for when, at in told.get(read.of, ()) if when < one.began and at >= len(read.values)]
                if behind:
                    self.say(f"stale: {self.describe(number)} saw list {read.of} without {self.final[read.of][behind[0]]}")

    def snapshots(self):
        """In REPEATABLE READ all reads are of one moment: a list does not change, and a transaction that is seen is
        seen in all lists."""
        for number, one in self.transactions.items():
            if one.level != "REPEATABLE READ":
                continue
            seen = {}
            for read in one.reads:
                if seen.setdefault(read.of, len(read.values)) != len(read.values):
                    self.say(f"unrepeatable: {self.describe(number)} saw {seen[read.of]} and {len(read.values)} of list {read.of}")
            for of, length in seen.items():
                for other in self.final.get(of, [])[:length]:
                    for too in self.transactions[other].appends & set(seen):
                        if self.position[too][other] >= seen[too]:
                            self.say(f"half seen: {self.describe(number)} saw {other} in list {of} and not in list {too}")

    def cycles(self):
        """Who overwrote whom, and who saw whom, is an order of those that committed."""
        after = {number: set() for number in self.committed | self.found}
        for values in self.final.values():
            for former, number in zip(values, values[1:]):
                after[former].add(number)
        for number in after:
            for read in self.transactions[number].reads:
                if read.values:
                    after[read.values[-1]].add(number)
        before = dict.fromkeys(after, 0)
        for number in itertools.chain(*after.values()):
            before[number] += 1
        free = [number for number, count in before.items() if count == 0]
        while free:
            for number in after.pop(free.pop()):
                before[number] -= 1
                if before[number] == 0:
                    free.append(number)
        if after:
            self.say("a cycle within: " + "; ".join(self.describe(number) for number in sorted(after)[:20]))


def assert_lists_kept(test, cluster, lists):
    """All primaries have the same, and what the transactions saw on the way fits it."""
    found = cluster.everywhere("SELECT id, v FROM lists ORDER BY id")
    test.assertEqual([found[0]] * len(found), found)
    final = {int(of): [int(value) for value in values.strip("{}").split(",")] for of, values in (row.split("|") for row in found[0])}
    test.assertEqual([], lists.violations(final))
