"""Wall clocks that differ and jump, by days and in both directions, each primary's on its own: nobody is taken for dead, nothing
fails, nothing waits for a time of day.

GCL_SHIFTED_CLOCK: the library tests/support/shifted_clock.cpp.
"""
import os
import pathlib
import shutil
import struct
import threading
import time
import unittest

from harness import Cluster, SqlError, eventually

LIBRARY = os.environ.get("GCL_SHIFTED_CLOCK", "build/lib/libshifted_clock.so")
HOUR, DAY = 3600, 86400
PRIMARIES = (1, 2, 3)


class ClockCluster(Cluster):
    """The memory node has the clock of the primary that is started first."""

    def clock(self, k):
        return pathlib.Path(os.path.dirname(self.dir)) / f"clock{k}"

    def jump(self, k, seconds):
        """Primary K's clock is so much ahead of this machine's."""
        if not self.clock(k).exists():
            self.clock(k).touch(0o644)
        with self.clock(k).open("r+b") as file:
            file.write(struct.pack("=q", seconds * 1_000_000_000))

    def start(self, node=None):
        library = os.path.join(os.path.dirname(self.dir), "clock.so")  # where the servers' account finds it
        if not os.path.exists(library):
            shutil.copy(LIBRARY, library)
        self.environment = {"LD_PRELOAD": library, "GCL_TEST_CLOCK": str(self.clock(node))}
        try:
            super().start(node)
        finally:
            self.environment = {}


class Clocks(unittest.TestCase):
    def setUp(self):
        self.cluster = ClockCluster(primaries=len(PRIMARIES), started=PRIMARIES)
        for k, seconds in zip(PRIMARIES, (0, -DAY, DAY)):
            self.cluster.jump(k, seconds)
        self.enterContext(self.cluster)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i")

    def everybody(self):
        return sorted(self.cluster.sql(1, "SELECT node, state FROM gcl_stat_ddl_log"))

    def test_the_library_does_it(self):
        for k, hours in zip(PRIMARIES, (0, -24, 24)):
            seen = int(self.cluster.sql(k, "SELECT round(extract(epoch FROM clock_timestamp()) / 3600)")[0])
            self.assertAlmostEqual(time.time() / 3600 + hours, seen, delta=1)

    def test_all_go_on_while_clocks_jump(self):
        ended, errors, counts = threading.Event(), [], dict.fromkeys(PRIMARIES, 0)

        def work(k):
            session = self.cluster.session(k)
            while not ended.is_set():
                try:
                    session.run(f"UPDATE t SET v = v + 1 WHERE id = {1 + counts[k] % 10}")
                    counts[k] += 1
                except SqlError as error:
                    errors.append((k, str(error)))
                    return

        threads = [threading.Thread(target=work, args=(k,)) for k in PRIMARIES]
        for thread in threads:
            thread.start()
        ddl, tables = self.cluster.session(1), 0
        try:
            for seconds in (3 * DAY, -3 * DAY, HOUR, -HOUR, 300 * DAY, 0):
                for k in PRIMARIES:
                    self.cluster.jump(k, seconds * k)
                    tables += 1
                    ddl.run(f"CREATE TABLE t{tables} (i int) USING gcl")
                    before = dict(counts)
                    eventually(lambda before=before: errors or all(counts[of] > before[of] + 5 for of in PRIMARIES))
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertEqual([], errors)
        self.assertEqual([str(sum(counts.values()))], self.cluster.sql(2, "SELECT sum(v) FROM t"))
        self.assertEqual([[str(tables)]] * 3, self.cluster.everywhere("SELECT count(*) FROM pg_class WHERE relname ~ '^t[0-9]+$'"))
        for k in PRIMARIES:
            self.assertNotRegex(self.cluster.log(k), r"is dead|PANIC|terminated by signal")
        print(f"{sum(counts.values())} transactions, {tables} tables", flush=True)

    def test_a_statement_waits_for_another_primary_as_long_as_it_does(self):
        """A clock that jumps ahead ends no patience; one that is set back prolongs none."""
        for seconds in (5 * DAY, -5 * DAY):
            holder, waiter = self.cluster.session(2), self.cluster.session(1)
            holder.run("BEGIN; SELECT FROM t")
            waiter.send("ALTER TABLE t ADD COLUMN c int")
            self.assertTrue(waiter.blocked())
            for k in PRIMARIES:
                self.cluster.jump(k, seconds)
            self.assertTrue(waiter.waits(3.0), "it waits for the lock of another primary")
            holder.run("COMMIT")
            waiter.result()
            waiter.run("ALTER TABLE t DROP COLUMN c")

    def test_a_deadlock_between_primaries_is_found_though_clocks_are_set_back(self):
        one, two = self.cluster.session(1), self.cluster.session(2)
        for session, row in ((one, 1), (two, 2)):
            session.run(f"BEGIN; UPDATE t SET v = 0 WHERE id = {row}")
        one.send("UPDATE t SET v = 0 WHERE id = 2")
        self.assertTrue(one.blocked())
        for k in PRIMARIES:
            self.cluster.jump(k, -2 * DAY)
        two.send("UPDATE t SET v = 0 WHERE id = 1")
        states = []
        for session in (one, two):
            try:
                session.result()
                states.append(None)
                session.run("COMMIT")
            except SqlError as error:
                states.append(error.state)
                session.run("ROLLBACK")
        self.assertEqual({None, "40P01"}, set(states))

    def test_a_primary_joins_with_a_clock_that_was_set_back(self):
        self.cluster.stop(3)
        self.cluster.jump(3, -30 * DAY)
        self.cluster.start(3)
        self.cluster.sql(1, "CREATE TABLE later (i int) USING gcl; INSERT INTO later VALUES (1)")
        self.assertEqual([["1"]] * 3, self.cluster.everywhere("SELECT count(*) FROM later"))
        self.cluster.kill_all(3)
        self.cluster.jump(3, -60 * DAY)
        eventually(lambda: "3|" not in "".join(self.cluster.sql(1, "SELECT node || '|' || state FROM gcl_stat_ddl_log WHERE state = 'serving'")), 60)
        self.cluster.start(3)
        self.cluster.sql(1, "INSERT INTO later VALUES (2)")
        self.assertEqual([["2"]] * 3, self.cluster.everywhere("SELECT count(*) FROM later"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
