"""Random transactions on all primaries at once, with what must hold checked all the time, and nothing left behind.

Environment: GCL_SEED, to play the same transactions again (their interleaving is the machine's); SECONDS, how long.
"""
import os
import random
import threading
import time
import traceback
import unittest

from harness import HELD, LOAD_MAX, Cluster, Load, SqlError, eventually
from wals import KEPT, assert_made_by_wals
from workload import TABLES, TOTAL, Reader, Worker

SEED = os.environ.get("GCL_SEED") or str(random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("SECONDS", 15))
PRIMARIES = 3


class Random(unittest.TestCase):
    def setUp(self):
        # A cache smaller than the tables, so that pages come and go.
        self.cluster = self.enterContext(Cluster(primaries=PRIMARIES, cache="8MB", settings=("autovacuum=off", KEPT)))
        self.failures = []

    def open(self, k):
        return lambda: self.cluster.session(k)

    def start(self, work, *arguments):
        def guarded():
            try:
                work(*arguments)
            except BaseException:  # pylint: disable=broad-except
                self.failures.append(traceback.format_exc())
        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def disturb(self, load):
        """Cancels and ends sessions at random."""
        chance = random.Random(f"{SEED}/disturb")
        while load.goes_on() and not self.failures:
            time.sleep(chance.random() * 0.8)
            k, how = chance.randint(1, PRIMARIES), chance.choice(["cancel", "cancel", "terminate"])
            self.cluster.sql(k, f"SELECT pg_{how}_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE backend_type ="
                                " 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) x")

    def test_everything_at_once(self):
        print(f"GCL_SEED={SEED} SECONDS={SECONDS:g}", flush=True)
        self.cluster.sql(1, f"{TABLES}")
        far = time.monotonic() + SECONDS + 2 * LOAD_MAX
        workers = [Worker(f"w{k}_{i}", self.open(k), SEED, far) for k in range(1, PRIMARIES + 1) for i in range(2)]
        readers = [Reader(f"r{k}", self.open(k), SEED, far, workers) for k in range(1, PRIMARIES + 1)]
        load = Load(SECONDS, lambda: self.failures or all(one.counts.get("committed") for one in [*workers, *readers]))
        threads = [self.start(one.run) for one in [*workers, *readers]] + [self.start(self.disturb, load)]
        while load.goes_on() and not self.failures:
            time.sleep(0.1)
        for one in [*workers, *readers]:
            one.until = 0
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive(), "a session hangs")
        self.assertEqual([], self.failures, "\n".join(self.failures) + f"\nGCL_SEED={SEED}" + self.cluster.server_errors())
        counts = {}
        for one in [*workers, *readers]:
            for what, count in one.counts.items():
                counts[what] = counts.get(what, 0) + count
        print(dict(sorted(counts.items())), flush=True)
        for one in [*workers, *readers]:
            self.assertGreater(one.counts.get("committed", 0), 0, f"{one.name} got nothing done: {one.counts}")
        self.assert_all_there(workers)
        for session in self.cluster.sessions:
            session.close()
        self.cluster.assert_left_in_order()
        self.cluster.stop()
        assert_made_by_wals(self, self.cluster)
        self.cluster.start()

    def assert_all_there(self, workers):
        for k in range(1, PRIMARIES + 1):
            self.assertEqual([f"{TOTAL}"], self.cluster.sql(k, "SELECT sum(bal) FROM acct"))
            rows = dict(row.split("|") for row in self.cluster.sql(k, "SELECT who, max(n) FROM hist GROUP BY who"))
            for worker in workers:
                self.assertGreaterEqual(int(rows.get(worker.name, 0)), worker.committed)
        for table in ("acct", "uniq", "hist", "side"):
            # No snapshot is left for which VACUUM would have to spare a row.
            self.cluster.sql(1, f"VACUUM {table}")
        for k in range(1, PRIMARIES + 1):
            answers = [self.cluster.sql(k, f"SET enable_seqscan = {seq}; SET enable_indexscan = {index}; SELECT count(*),"
                                           " sum(bal), sum(id) FROM acct WHERE part >= 0")
                       for seq, index in (("on", "off"), ("off", "on"), ("off", "off"))]
            self.assertEqual(answers[:1] * 3, answers)


class Space(unittest.TestCase):
    def test_dropped_and_undone_relations_give_their_pages_back(self):
        cluster = self.enterContext(Cluster(primaries=2, settings=("autovacuum=off",)))
        free = []
        for turn in range(5):
            for i in range(4):
                cluster.sql(1, f"CREATE TABLE a{i} (id int PRIMARY KEY, v text UNIQUE) USING gcl; INSERT INTO a{i} SELECT i,"
                               " repeat('v', 300) || i FROM generate_series(1, 2000) i; CREATE INDEX ON a{i} (v, id);"
                               f" TRUNCATE a{i}; INSERT INTO a{i} VALUES (1, 'x'); DROP TABLE a{i}".replace("{i}", str(i)))
                cluster.sql(2, f"BEGIN; CREATE TABLE a{i} (id int PRIMARY KEY) USING gcl; INSERT INTO a{i} SELECT"
                               " generate_series(1, 1000); ROLLBACK")
                try:
                    cluster.sql(2, f"BEGIN; CREATE TABLE a{i} (id int PRIMARY KEY) USING gcl; INSERT INTO a{i} VALUES (1), (1)")
                    self.fail("a duplicate key was accepted")
                except SqlError as error:
                    self.assertEqual("23505", error.state)
            eventually(lambda: cluster.everywhere(HELD) == [[], []])
            free.append(int(cluster.sql(1, "SELECT free_pool_pages FROM gcl_stat_space")[0]))
        # The log of DDL grows by some pages with every statement; a table of these has hundreds.
        lost = [before - after for before, after in zip(free[1:], free[2:])]
        self.assertLess(max(lost), 100, free)


if __name__ == "__main__":
    unittest.main(verbosity=2)
