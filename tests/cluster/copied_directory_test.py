"""Base backups and standbys of one primary, by PostgreSQL's own tools: they join no pool (runtime.copies-stay-out), and have that
primary's ordinary tables.
"""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from data_directory import PG_BIN, account
from harness import Cluster, Session, SqlError, eventually, new_dir

SERVED = "SELECT count(*) FROM own"


class CopiedDirectory(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, spare=1))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (1)")
        self.cluster.sql(2, "CREATE TABLE own (id int) USING heap; INSERT INTO own VALUES (1)")
        self.dir = new_dir()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres", "postgres")
        self.data, self.log = f"{self.dir}/data", f"{self.dir}/log"
        self.addCleanup(self.stop)
        self.postgres = next(path for path in pathlib.Path(self.cluster.dir, "prefix").rglob("postgres") if path.is_file())
        self.dsn = self.cluster.dsn(1).replace(f"port={self.cluster.ports.base}", f"port={self.cluster.ports.base + 2}")

    def run_as_owner(self, *arguments, check=True):
        return subprocess.run([str(word) for word in arguments], text=True, cwd="/", check=check, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **account())

    def copy(self, *options):
        """A base backup of primary 2, with a port of its own."""
        self.run_as_owner(PG_BIN / "pg_basebackup", "-D", self.data, "-c", "fast", "-d", self.cluster.dsn(2), *options)
        self.set("port", self.cluster.ports.base + 2)

    def set(self, name, value):
        with open(f"{self.data}/gcl.conf", "a", encoding="utf-8") as conf:
            conf.write(f"{name} = {value}\n")

    def start(self, check=True):
        return self.pg_ctl("-p", self.postgres, "-l", self.log, "-t", 60, "start", check=check)

    def pg_ctl(self, *arguments, check=True):
        return self.run_as_owner(PG_BIN / "pg_ctl", "-D", self.data, "-w", "-s", *arguments, check=check)

    def stop(self):
        if os.path.exists(f"{self.data}/postmaster.pid"):
            self.pg_ctl("-m", "fast", "stop")

    def refused(self, text):
        self.assertNotEqual(0, self.start(check=False).returncode)
        said = pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")
        self.assertRegex(said, text)
        self.assertNotRegex(said, "joined pool")

    def ask(self, sql):
        session = Session(self.dsn)
        try:
            return session.run(sql)
        finally:
            session.close()

    def assert_no_gcl_tables(self):
        for sql in ("SELECT * FROM t", "INSERT INTO t VALUES (2)"):
            with self.assertRaises(SqlError) as caught:
                self.ask(sql)
            self.assertIn(caught.exception.state, ("55000", "25006"), caught.exception)

    def assert_cluster_works(self):
        eventually(lambda: self.cluster.sql(2, "SELECT 1") == ["1"])
        self.assertEqual([["1"]] * 2, self.cluster.everywhere("SELECT id FROM t"))
        self.cluster.sql(2, "CREATE TABLE more (a int) USING gcl; DROP TABLE more")

    def test_a_base_backup(self):
        """Beside its primary, in its place when that was stopped, and when that has died."""
        self.copy()
        self.refused("a base backup of a primary does not join")
        self.assert_cluster_works()
        self.cluster.stop(2)
        self.refused("a base backup of a primary does not join")
        self.cluster.start(2)
        self.cluster.kill_all(2)
        self.refused("a base backup of a primary does not join")
        self.cluster.start(2)
        self.assert_cluster_works()

    def test_a_base_backup_without_the_pool(self):
        """It has the ordinary tables; and is no primary afterwards, though the one it was has died in the same life."""
        self.copy()
        self.set("gcl.pool", "''")
        self.start()
        self.assertEqual(["1"], self.ask(SERVED))
        self.assert_no_gcl_tables()
        self.stop()
        self.cluster.sql(2, "CREATE TABLE later (a int) USING gcl")  # which the copy lacks
        self.cluster.kill_all(2)
        self.set("gcl.pool", f"'{self.cluster.pool_dir()}/pool'")
        self.start()
        eventually(lambda: re.search("It is older than this primary's last stop", pathlib.Path(self.log).read_text("utf-8")))
        self.assertEqual(["1"], self.ask(SERVED))
        with self.assertRaises(SqlError) as caught:
            self.ask("SELECT * FROM t")
        self.assertEqual("55000", caught.exception.state)
        self.stop()
        self.cluster.start(2)
        self.assert_cluster_works()

    def test_a_standby(self):
        self.copy("-R")
        self.refused("or a standby, does not join")
        self.set("gcl.pool", "''")
        self.start()
        self.cluster.sql(2, "INSERT INTO own VALUES (2)")
        eventually(lambda: self.ask(SERVED) == ["2"])
        self.assert_no_gcl_tables()
        self.pg_ctl("promote")
        self.assertEqual([], self.ask("INSERT INTO own VALUES (3)"))
        self.assert_no_gcl_tables()
        self.stop()
        self.cluster.kill_all(2)
        self.set("gcl.pool", f"'{self.cluster.pool_dir()}/pool'")
        self.start()
        eventually(lambda: re.search("It is older than this primary's last stop", pathlib.Path(self.log).read_text("utf-8")))
        self.stop()
        self.cluster.start(2)
        self.assert_cluster_works()


if __name__ == "__main__":
    unittest.main(verbosity=2)
