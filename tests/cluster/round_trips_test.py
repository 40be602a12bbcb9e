"""What statements wait for the pool, in round trips (transport.waits-counted), counted in a server whose pages nobody else wants."""
import unittest

from harness import Cluster

AWAITED = "SELECT value FROM gcl_stat_counters() WHERE layer = 'coherence' AND counter = 'awaited'"
TRIES = 40


class RoundTrips(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(primaries=1).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        session = cls.cluster.session(1)
        for table in ("accounts", "tellers", "branches"):
            session.run(f"CREATE TABLE {table} (id int PRIMARY KEY, balance int NOT NULL) USING gcl")
            session.run(f"INSERT INTO {table} SELECT i, 0 FROM generate_series(1, 100) i")
        session.run("CREATE TABLE history (aid int, delta int, at timestamp) USING gcl")
        session.run("CREATE TABLE checked (aid int CHECK (aid > 0)) USING gcl")
        cls.session = session

    def trips(self, *statements):
        """Of the statements one by one.  The primary's workers wait for the pool as well, now and then: the least of many tries counts.
        To look takes a snapshot, too."""
        least = [1 << 60] * len(statements)
        for _ in range(TRIES):
            for i, sql in enumerate(statements):
                seen = int(self.session.one(AWAITED))
                self.session.run(sql)
                least[i] = min(least[i], int(self.session.one(AWAITED)) - seen - 1)
        return least

    def test_a_transaction_of_pgbench(self):
        transaction = ("BEGIN", "UPDATE accounts SET balance = balance + 1 WHERE id = 7", "SELECT balance FROM accounts WHERE id = 7",
                       "UPDATE tellers SET balance = balance + 1 WHERE id = 7", "UPDATE branches SET balance = balance + 1 WHERE id = 7",
                       "INSERT INTO history (aid, delta, at) VALUES (7, 1, current_timestamp)", "COMMIT")
        trips = self.trips(*transaction)
        print(dict(zip(transaction, trips)))
        self.assertEqual(trips, [0, 1, 1, 1, 1, 0, 2])

    def test_an_update_that_finds_no_row(self):
        self.assertEqual(self.trips("UPDATE accounts SET balance = 1 WHERE id = 0"), [1])

    def test_an_insert_into_a_table_whose_checks_may_read_takes_a_snapshot(self):
        """(pg_txn.insert-reads-nothing)"""
        self.assertEqual(self.trips("BEGIN", "INSERT INTO checked VALUES (1)", "INSERT INTO checked VALUES (1)", "COMMIT"), [0, 1, 1, 2])

    def test_a_transaction_that_changes_other_tables_is_prepared(self):
        """(txn.prepared-if-mixed)"""
        self.session.run("CREATE TABLE local (id int) USING heap")
        trips = self.trips("BEGIN", "INSERT INTO history (aid) VALUES (1)", "INSERT INTO local VALUES (1)", "COMMIT")
        self.assertEqual(trips, [0, 1, 0, 3])


if __name__ == "__main__":
    unittest.main()
