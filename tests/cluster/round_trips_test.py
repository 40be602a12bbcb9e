"""What statements wait for the pool, in round trips (transport.waits-counted)."""
import re
import subprocess
import unittest

from harness import Cluster

AWAITED = "SELECT value FROM gcl_stat_counters() WHERE layer = 'coherence' AND counter = 'awaited'"
TRIES = 40


class RoundTrips(unittest.TestCase):
    """Of a server whose pages nobody else wants."""

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


class Shared(unittest.TestCase):
    """Three primaries, two clients each, change the same ten branches: pages move, and rows are of transactions of others."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, cache="128MB"))
        made = subprocess.run(["pgbench", "-i", "-q", "-s", "10", self.cluster.dsn(1) + " options='-cdefault_table_access_method=gcl'"],
                              capture_output=True, text=True)
        self.assertEqual(0, made.returncode, made.stderr)
        self.cluster.everywhere("SELECT count(*) FROM pgbench_accounts")

    def awaited(self):
        return sum(int(rows[0]) for rows in self.cluster.everywhere(AWAITED))

    def run_for(self, seconds):
        """How many transactions that were."""
        runs = [subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-T", str(seconds), "-c", "2", self.cluster.dsn(k)],
                                 stdout=subprocess.PIPE, text=True) for k in (1, 2, 3)]
        return sum(int(re.search(r"processed: (\d+)", run.communicate()[0]).group(1)) for run in runs)

    def test_a_transaction_of_pgbench(self):
        """And what the workers of its primaries wait for meanwhile (txn.statuses-in-batch)."""
        self.run_for(1)
        before = self.awaited()
        done = self.run_for(3)
        trips = (self.awaited() - before) / done
        print(f"a transaction that three primaries share: {trips:.1f}")
        self.assertLess(trips, 22)


if __name__ == "__main__":
    unittest.main()
