"""What statements wait for the pool, in round trips (transport.waits-counted)."""
import re
import subprocess
import time
import unittest

from harness import Cluster

AWAITED = "SELECT value FROM gcl_stat_counters() WHERE layer = 'coherence' AND counter = 'awaited'"
TRIES, TRIES_MAX = 40, 400


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

    def assert_trips(self, expected, *statements):
        """Of the statements one by one.  The primary's workers wait for the pool as well, now and then: the least of
        many tries counts, and of more where the machine is busy.  To look takes a snapshot, too."""
        least, tries = [1 << 60] * len(statements), 0
        while tries < TRIES or (least != expected and tries < TRIES_MAX):
            for i, sql in enumerate(statements):
                seen = int(self.session.one(AWAITED))
                self.session.run(sql)
                least[i] = min(least[i], int(self.session.one(AWAITED)) - seen - 1)
            tries += 1
        print(dict(zip(statements, least)), f"in {tries} tries")
        self.assertEqual(expected, least)

    def test_a_transaction_of_pgbench(self):
        transaction = ("BEGIN", "UPDATE accounts SET balance = balance + 1 WHERE id = 7", "SELECT balance FROM accounts WHERE id = 7",
                       "UPDATE tellers SET balance = balance + 1 WHERE id = 7", "UPDATE branches SET balance = balance + 1 WHERE id = 7",
                       "INSERT INTO history (aid, delta, at) VALUES (7, 1, current_timestamp)", "COMMIT")
        self.assert_trips([0, 1, 1, 1, 1, 0, 2], *transaction)

    def test_an_update_that_finds_no_row(self):
        self.assert_trips([1], "UPDATE accounts SET balance = 1 WHERE id = 0")

    def test_an_insert_into_a_table_whose_checks_may_read_takes_a_snapshot(self):
        """(pg_txn.insert-reads-nothing)"""
        self.assert_trips([0, 1, 1, 2], "BEGIN", "INSERT INTO checked VALUES (1)", "INSERT INTO checked VALUES (1)", "COMMIT")

    def test_a_transaction_that_changes_other_tables_is_prepared(self):
        """(txn.prepared-if-mixed)"""
        self.session.run("CREATE TABLE local (id int) USING heap")
        self.assert_trips([0, 1, 0, 3], "BEGIN", "INSERT INTO history (aid) VALUES (1)", "INSERT INTO local VALUES (1)", "COMMIT")


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

    def awaited_within(self, what):
        """What it returns, what was awaited meanwhile, and how many seconds that took."""
        began, before = time.monotonic(), self.awaited()
        result = what()
        return result, self.awaited() - before, time.monotonic() - began

    def trips(self):
        """Of a transaction.  What the workers wait for in as much time when no transaction runs is not counted: where
        few transactions fit into that time, it would be most."""
        done, awaited, seconds = self.awaited_within(lambda: self.run_for(3))
        _, idle, idle_seconds = self.awaited_within(lambda: time.sleep(3))
        print(f"{done} transactions: {awaited} in {seconds:.1f} s, and when nothing happens {idle} in {idle_seconds:.1f} s")
        return (awaited - idle * seconds / idle_seconds) / done

    def test_a_transaction_of_pgbench(self):
        """And what the workers of its primaries wait for because of it (txn.statuses-in-batch); the best of three runs
        counts."""
        self.run_for(1)
        trips = [self.trips()]
        while min(trips) >= 22 and len(trips) < 3:
            trips.append(self.trips())
        print(f"a transaction that three primaries share: {min(trips):.1f}")
        self.assertLess(min(trips), 22)


if __name__ == "__main__":
    unittest.main()
