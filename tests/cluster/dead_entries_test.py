"""Index entries of dead rows go without VACUUM: what a key costs does not grow with its past."""
import threading
import unittest

from harness import Cluster

BATCHES = 8
TURNS = 200  # of a batch


class Reader(threading.Thread):
    """Reads on another primary until told to stop: snapshots come and go."""

    def __init__(self, session, sql, expected):
        super().__init__()
        self.session, self.sql, self.expected = session, sql, expected
        self.stop, self.reads, self.error = False, 0, None

    def run(self):
        try:
            while not self.stop:
                rows = self.session.run(self.sql)
                if rows != self.expected:
                    raise AssertionError(f"{rows} instead of {self.expected}")
                self.reads += 1
        except Exception as e:  # pylint: disable=broad-except
            self.error = e


class DeadEntries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))

    def setUp(self):
        self.one, self.two, self.three = (self.cluster.session(n) for n in (1, 2, 3))
        for session in (self.one, self.two, self.three):
            self.addCleanup(session.close)

    def looks(self):
        """How often primary 1 has looked at a page so far."""
        return int(self.one.one("SELECT sum(value) FROM gcl_stat_counters() "
                                "WHERE layer = 'bufmgr' AND counter IN ('fixes', 'peeks', 'copies')"))

    def batches(self, turn):
        """Looks per batch of transactions `turn` on primary 1."""
        costs = []
        for _ in range(BATCHES):
            before = self.looks()
            self.one.run(f"DO $$ BEGIN FOR i IN 1..{TURNS} LOOP {turn}; COMMIT; END LOOP; END $$")
            costs.append(self.looks() - before)
        return costs

    def read_along(self, sql, expected):
        reader = Reader(self.cluster.session(2), sql, expected)
        reader.start()

        def end():
            reader.stop = True
            reader.join()
            self.assertIsNone(reader.error)
            self.assertGreater(reader.reads, 0)
        return end

    # Were each turn to meet all dead entries before it, the n-th batch would cost 2n - 1 times the first.
    def assert_linear(self, costs):
        print("looks per batch:", *costs)
        self.assertLess(min(costs[-3:]), 3 * min(costs[:3]), costs)

    def test_a_unique_key_that_comes_and_goes(self):
        self.one.run("CREATE TABLE unique_key (k int PRIMARY KEY, v int) USING gcl; INSERT INTO unique_key VALUES (1, 0)")
        end = self.read_along("SELECT count(*) FROM unique_key WHERE k = 1", ["1"])
        costs = self.batches("DELETE FROM unique_key WHERE k = 1; INSERT INTO unique_key VALUES (1, i)")
        end()
        self.assert_linear(costs)
        self.assertEqual([[str(TURNS)]] * 3, self.cluster.everywhere("SELECT v FROM unique_key WHERE k = 1"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
