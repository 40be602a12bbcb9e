"""A server that crashed recovers from its own WAL, our records in it or not: its ordinary tables are all there."""
import glob
import os
import signal
import subprocess
import threading
import unittest

from data_directory import PG_BIN, ddl_position
from harness import Cluster, Hang, SqlError, eventually


class Writer(threading.Thread):
    """Writes both kinds of tables until the server dies; knows what was acknowledged of the ordinary one."""

    def __init__(self, session):
        super().__init__()
        self.session, self.acknowledged = session, 0

    def run(self):
        try:
            while True:
                self.session.run("INSERT INTO shared SELECT i, repeat('x', 100) FROM generate_series(1, 20) i")
                self.session.run(f"INSERT INTO ordinary VALUES ({self.acknowledged + 1})")
                self.acknowledged += 1
        except SqlError:
            pass


class ByHand(unittest.TestCase):
    """A server that is started by hand, as gclctl does not for a fenced pool."""

    node, cluster, data, log = 1, None, None, None

    @classmethod
    def let_it_die(cls):
        cls.cluster.kill_all(cls.node)
        # Where no process reaps the dead postmaster, its number still looks taken.
        port = cls.cluster.ports.base + cls.node - 1
        for lock in (f"{cls.data}/postmaster.pid", *glob.glob(f"{cls.cluster.dir}/run/.s.PGSQL.{port}*")):
            os.unlink(lock)

    def server(self, *settings):
        command = [glob.glob(f"{self.cluster.dir}/prefix/lib/postgresql/*/bin/postgres")[0], "-D", self.data]
        for setting in settings:
            command += ["-c", setting]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        self.log = f"{self.cluster.dir}/by-hand.log"
        with open(self.log, "w", encoding="utf-8") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def logged(self, text):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return text in log.read()

    def serve(self, *settings):
        process = self.server(*settings)

        def stop():
            os.kill(self.cluster.postmaster(self.node), signal.SIGINT)
            process.wait(60)

        try:
            eventually(lambda: self.logged("ready to accept connections"), 60)
        except Hang as hang:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise Hang(f"the server is not up (exit code {process.poll()}):\n{log.read()[-4000:]}") from hang
        self.addCleanup(stop)


class Recovery(ByHand):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=1, fences=True))
        cls.data = f"{cls.cluster.dir}/node1/data"
        cls.cluster.sql(1, "CREATE TABLE shared (id int, v text) USING gcl")
        cls.cluster.sql(1, "CREATE TABLE ordinary (id int) USING heap")
        cls.cluster.sql(1, "CHECKPOINT")  # what recovery reads begins here
        load = Writer(cls.cluster.session(1))
        load.start()
        eventually(lambda: load.acknowledged > 20, 60)
        cls.let_it_die()
        load.join()
        cls.acknowledged = load.acknowledged

    def assert_ordinary_tables_work(self):
        rows = int(self.cluster.sql(1, "SELECT count(*) FROM ordinary WHERE id > 0")[0])
        self.assertIn(rows, (self.acknowledged, self.acknowledged + 1))  # the last may have been committed, unheard
        self.cluster.sql(1, "INSERT INTO ordinary VALUES (0)")
        self.cluster.sql(1, "CREATE TABLE another (v int) USING heap; DROP TABLE another")

    def refused(self, state, sql):
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(1, sql)
        self.assertEqual(state, caught.exception.state)

    # In this order: the first leaves the WAL as it is, the second recovers.
    def test_1_without_the_module_recovery_says_what_is_missing(self):
        wal = sorted(glob.glob(f"{self.data}/pg_wal/0*"))
        dump = subprocess.run([PG_BIN / "pg_waldump", "-r", "custom150", *wal[:1]],
                              text=True, capture_output=True)
        self.assertIn("custom150", dump.stdout)
        self.assertNotEqual(0, self.server("shared_preload_libraries=").wait(60))
        self.assertTrue(self.logged("resource manager with ID 150 not registered"))
        self.assertTrue(self.logged("shared_preload_libraries"))

    def test_2_the_fenced_pool_is_refused_and_the_rest_works(self):
        self.serve()
        self.assertTrue(self.logged("redo done"))
        self.assert_ordinary_tables_work()
        for sql in ("SELECT count(*) FROM shared", "INSERT INTO shared VALUES (1)", "VACUUM shared",
                    "CREATE TABLE more (v int) USING gcl"):
            self.refused("57P02", sql)
        self.assertEqual(["t"], self.cluster.sql(1, "SELECT pg_total_relation_size('shared') IS NULL"))  # not an error

    def test_3_without_the_pool_the_rest_works_too(self):
        self.serve("gcl.pool=")
        self.assert_ordinary_tables_work()
        self.refused("55000", "SELECT count(*) FROM shared")

    def test_4_gclctl_makes_the_pool_again(self):
        said = self.cluster.ctl("start", self.cluster.dir)
        self.assertRegex(said.stdout, "(?s)the pool is fenced: .*the pool is whole again")
        rows = int(self.cluster.sql(1, "SELECT count(*) FROM shared")[0])
        self.assertIn(rows, (20 * self.acknowledged, 20 * (self.acknowledged + 1)))


class Positions(ByHand):
    """A crash takes the others' DDL from the catalogs and from the position alike (ddl.position-with-catalogs)."""

    node = 2

    def test_position_and_catalogs_are_of_one_mind(self):
        lost, runs = 0, ((5, False), (12, True), (30, False), (41, False))
        for turn in range(12):  # more than four, if the launcher had made all durable before each of the crashes
            if turn >= len(runs) and lost > 0:
                break
            tables, in_the_middle = runs[turn % len(runs)]
            with self.subTest(turn=turn, tables=tables):
                lost += self.lost_of_tables_of_another(tables, in_the_middle)
        self.assertGreater(lost, 0)

    def lost_of_tables_of_another(self, tables, in_the_middle):
        kind = type(self)
        with Cluster(primaries=2, settings=("wal_writer_delay=10s", "wal_writer_flush_after=1GB", "autovacuum=off"), fences=True) as kind.cluster:
            kind.data = f"{self.cluster.dir}/node2/data"
            coordinator = self.cluster.session(1)
            coordinator.run("CREATE TABLE first (a int) USING gcl")
            oid = int(self.cluster.sql(2, "SELECT oid FROM pg_database WHERE datname = current_database()")[0])
            self.cluster.sql(2, "CHECKPOINT")
            _, before, _ = ddl_position(self.data, oid)
            for i in range(tables):
                coordinator.run(f"CREATE TABLE t_{i} (a int) USING gcl")
            if in_the_middle:
                coordinator.send("CREATE TABLE t_last (a int) USING gcl")
            self.let_it_die()
            self.serve("gcl.pool=")
            there = int(self.cluster.sql(2, "SELECT count(*) FROM pg_class WHERE relname LIKE 't\\_%'")[0])
            self.cluster.sql(2, "CHECKPOINT")
            old, new, xid = ddl_position(self.data, oid)
            committed = xid == 0 or self.cluster.sql(2, f"SELECT pg_xact_status('{xid}')") == ["committed"]
            self.assertEqual(before + there, new if committed else old)
            self.doCleanups()
            return tables - there

    def test_a_page_that_a_crash_left_empty_is_used(self):
        """A server has made the file longer and dies: the page is in no WAL yet."""
        with Cluster(primaries=1, extension=False) as cluster:
            data = f"{cluster.dir}/node1/data"
            cluster.stop()
            with open(f"{data}/global/9700", "xb") as file:
                file.write(bytes(8192))
            owner = os.stat(data)
            os.chown(file.name, owner.st_uid, owner.st_gid)
            cluster.start()
            oid = int(cluster.sql(1, "CREATE EXTENSION gcl; CHECKPOINT; SELECT oid FROM pg_database WHERE datname = current_database()")[0])
            self.assertEqual(8192, os.path.getsize(file.name))
            self.assertEqual(1, ddl_position(data, oid)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
