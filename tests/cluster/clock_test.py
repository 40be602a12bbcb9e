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

from harness import Cluster, SqlError, eventually, new_dir
from restored import Restored

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

    def test_the_last_restore_point_is_the_last_one_whatever_the_clock_said(self):
        """A clock that was an hour ahead, and was set right: of points, and of a point and a backup."""
        archive, backup = new_dir(), new_dir()
        for directory in (archive, backup):
            self.addCleanup(shutil.rmtree, directory, True)
            os.chmod(directory, 0o755)
        for directory in (archive, *(f"{archive}/node{k}" for k in PRIMARIES)):
            os.makedirs(directory, exist_ok=True)
            if os.geteuid() == 0:
                shutil.chown(directory, "postgres", "postgres")
        for k in PRIMARIES:
            self.cluster.sql(k, f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/node{k}/%f'")
            self.cluster.sql(k, "ALTER SYSTEM SET archive_mode = on")
        self.cluster.stop()
        for k in PRIMARIES:
            self.cluster.start(k)
        self.assertEqual([["on"]] * 3, self.cluster.everywhere("SHOW archive_mode"))

        def at(seconds, *command):
            clock = self.cluster.clock("ctl")
            clock.write_bytes(struct.pack("=q", seconds * 1_000_000_000))
            self.cluster.environment = {"LD_PRELOAD": f"{os.path.dirname(self.cluster.dir)}/clock.so", "GCL_TEST_CLOCK": str(clock)}
            try:
                return self.cluster.ctl(*command).stdout
            finally:
                self.cluster.environment = {}

        point = ("restore-point", self.cluster.dir, archive)
        at(HOUR, *point)  # its cut is before the backup's, and it is the newest by name
        self.cluster.sql(1, "INSERT INTO t VALUES (20, 0)")
        at(0, "backup", self.cluster.dir, f"{backup}/b")
        with self.assertRaisesRegex(RuntimeError, "no restore point that goes on from this backup"):
            self.assert_restored(f"{backup}/b", archive, [])
        self.cluster.sql(2, "INSERT INTO t VALUES (21, 0)")
        at(HOUR // 2, *point)
        self.cluster.sql(3, "INSERT INTO t VALUES (22, 0)")
        at(0, *point)
        self.cluster.sql(3, "INSERT INTO t VALUES (23, 0)")
        self.assert_restored(f"{backup}/b", archive, ["20", "21", "22"])
        at(HOUR // 4, *point)
        self.assert_restored(f"{backup}/b", archive, ["20", "21", "22", "23"])
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        self.assert_restored(f"{backup}/b", archive, ["20", "21", "22"], "--to", now)

    def assert_restored(self, backup, archive, expected, *options):
        with Restored(self.cluster, backup, "--archive", archive, *options) as other:
            self.assertEqual(expected, other.sql(2, "SELECT id FROM t WHERE id > 10 ORDER BY id"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
