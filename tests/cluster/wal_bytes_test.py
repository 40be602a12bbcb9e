"""What a transaction of pgbench writes to the WAL of a real server: records of redo, the note of the commit, the server's own commit
record, and all headers.

One client, random numbers that are given, and nothing at work in the background but what has its time: the same rows
change in the same order each time.  Counts of different runs differ by two in a thousand, unless the machine crawls: so
the least of several counts.  RedoBudget (redo_budget_test.cpp) counts the same below PostgreSQL.
"""
import subprocess
import unittest

from harness import Cluster

QUIET = ("autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=4GB", "bgwriter_lru_maxpages=0")
# (scale, {the how-manieth run: most bytes of a transaction}).  A run has a transaction for each of the accounts' pages, and some
# more.  In the first one most find no room on the account's page, in the second one most have that of an earlier version.
RUNS = ((2, {1: 497, 2: 463}), (10, {1: 508}))
TRANSACTIONS = 2000  # of a run, for each unit of scale
ATTEMPTS = 3
ROW_OF_HISTORY = 100  # its record and that of the commit take more


class WalBytes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=1, pool="1GB", cache="512MB", settings=QUIET))
        cls.look = cls.cluster.session(1)

    def pgbench(self, schema, *arguments):
        dsn = f"{self.cluster.dsn(1)} options='-csearch_path={schema},public -cdefault_table_access_method=gcl'"
        subprocess.run(["pgbench", *arguments, dsn], check=True, capture_output=True, timeout=300)

    def bytes_of_a_transaction(self, schema, seed, transactions):
        position = self.look.one("SELECT pg_current_wal_insert_lsn()")
        self.pgbench(schema, "-n", "-M", "prepared", "-b", "tpcb-like", "-c", "1", "-t", str(transactions), f"--random-seed={seed}")
        written = self.look.one(f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{position}')")
        return float(written) / transactions

    def test_a_transaction_of_pgbench(self):
        for scale, most in RUNS:
            attempts = []
            while not attempts or (any(attempts[-1][run] > bound for run, bound in most.items()) and len(attempts) < ATTEMPTS):
                attempts.append(self.attempt(scale, most))
            for run, bound in most.items():
                with self.subTest(scale=scale, run=run):
                    counted = min(attempt[run] for attempt in attempts)
                    self.assertGreater(counted, ROW_OF_HISTORY)
                    self.assertLessEqual(counted, bound)

    def attempt(self, scale, most):
        """{the how-manieth run: bytes of a transaction}, on new tables."""
        schema, counted = f"scale_{scale}", {}
        self.look.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        self.pgbench(schema, "-i", "-q", "-s", str(scale))
        made = "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relnamespace = '{}'::regnamespace"
        self.assertEqual(["gcl"], self.look.run(made.format(schema) + " AND relkind = 'r'"))
        for run, bound in most.items():
            counted[run] = self.bytes_of_a_transaction(schema, run, TRANSACTIONS * scale)
            print(f"scale {scale}, run {run}: {counted[run]:.1f} bytes of WAL for a transaction, of at most {bound}")
        return counted


if __name__ == "__main__":
    unittest.main(verbosity=2)
