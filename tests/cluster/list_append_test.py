"""The check of lists says what is wrong: each history here has one fault (tests.seen-to-fail)."""
import unittest

from list_append import Lists, Read


class Told:
    """What a client was told, made up."""

    name = "client"

    def __init__(self):
        self.told, self.unknown = {}, set()


class Violations(unittest.TestCase):
    def setUp(self):
        self.lists, self.client = Lists("0"), Told()

    def transaction(self, appends=(), reads=(), level="READ COMMITTED", end="committed", began=0.0, told=100.0):
        one = self.lists.begin(self.client, level)
        one.began, one.appends = began, set(appends)
        one.reads = [Read(of, values, one.number) for of, values in reads]
        if end == "committed":
            self.client.told[one.number] = told
        elif end == "unknown":
            self.client.unknown.add(one.number)
        return one.number

    def assert_wrong(self, final, *kinds):
        wrong = self.lists.violations(final)
        self.assertEqual(list(kinds), [text.split(":")[0] for text in wrong], wrong)

    def test_a_history_without_fault(self):
        first = self.transaction((1, 2))
        second = self.transaction((1,), [(1, [first]), (1, [first, 2]), (2, [first])], "REPEATABLE READ", "unknown")
        self.transaction((1,), [(1, [first, second, 3])], end="rolled back")
        self.transaction((3,), [(3, [4])], end="unknown")
        self.transaction(reads=[(1, [first, second]), (4, [])])
        self.assert_wrong({1: [first, second], 2: [first]})

    def test_lost(self):
        self.transaction((1, 2))
        self.assert_wrong({1: [1]}, "lost")

    def test_half_of_an_unknown_transaction(self):
        self.transaction((1, 2), end="unknown")
        self.assert_wrong({1: [1]}, "lost")

    def test_twice(self):
        self.transaction((1,))
        self.assert_wrong({1: [1, 1]}, "twice")

    def test_phantom(self):
        self.transaction((1,), end="rolled back")
        self.assert_wrong({1: [1]}, "phantom")
        self.assert_wrong({1: [1], 2: [7]}, "phantom", "phantom")

    def test_what_was_rolled_back_is_seen(self):
        self.transaction((1,), end="rolled back")
        self.transaction(reads=[(1, [1])])
        self.assert_wrong({}, "no prefix")

    def test_another_order_is_seen(self):
        self.transaction((1,))
        self.transaction((1,))
        self.transaction(reads=[(1, [2])])
        self.assert_wrong({1: [1, 2]}, "no prefix")

    def test_another_append_behind_its_own(self):
        self.transaction((1,), [(1, [1, 2])])
        self.transaction((1,))
        self.assert_wrong({1: [1, 2]}, "behind its own")

    def test_what_was_told_is_not_seen(self):
        self.transaction((1,), told=1.0)
        self.transaction(reads=[(1, [])], began=0.9)
        self.assert_wrong({1: [1]})
        self.transaction(reads=[(1, [])], began=1.1)
        self.assert_wrong({1: [1]}, "stale")

    def test_a_snapshot_that_moves(self):
        self.transaction((1,))
        self.transaction(reads=[(1, []), (1, [1])])
        self.assert_wrong({1: [1]})
        self.transaction(reads=[(1, []), (1, [1])], level="REPEATABLE READ")
        self.assert_wrong({1: [1]}, "unrepeatable")

    def test_half_of_a_transaction_is_seen(self):
        self.transaction((1, 2))
        self.transaction(reads=[(1, [1]), (2, [])], level="REPEATABLE READ")
        self.assert_wrong({1: [1], 2: [1]}, "half seen")

    def test_two_that_saw_each_other(self):
        self.transaction((1,), [(2, [2])])
        self.transaction((2,), [(1, [1])])
        self.assert_wrong({1: [1], 2: [2]}, "a cycle within")

    def test_two_that_overwrote_each_other(self):
        self.transaction((1, 2))
        self.transaction((1, 2))
        self.assert_wrong({1: [1, 2], 2: [2, 1]}, "a cycle within")


if __name__ == "__main__":
    unittest.main(verbosity=2)
