"""The DDL log has an end (ddl.log-has-end): entries that all known primaries have applied are removed; a later primary starts from a copy."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import data_directory
from harness import GCLCTL, GO_ON, Cluster, Session, SqlError, eventually

PREPARES = "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'gcl_prepare_copy.{}' AND pid <> pg_backend_pid()"
KEPT = "SELECT kept_entries FROM gcl_stat_ddl_log_kept WHERE node = 1"


def is_empty(cluster, k=1):
    return cluster.sql(k, KEPT) == ["0"]


class TheLog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))

    def setUp(self):
        eventually(lambda: is_empty(self.cluster))

    def on(self, k, sql):
        return self.cluster.sql(k, sql)

    def holders(self):
        return self.on(1, "SELECT node, present FROM gcl_stat_ddl_log_kept WHERE holds ORDER BY node")

    def the_others_have_applied_all(self):
        """But for primary 3; each says so once a second."""
        eventually(lambda: self.on(1, "SELECT DISTINCT applied = entries FROM gcl_stat_ddl_log_kept WHERE node <> 3") == ["t"])

    def test_what_all_have_applied_is_removed(self):
        before = int(self.on(1, "SELECT max(entries) FROM gcl_stat_ddl_log_kept")[0])
        for i in range(20):
            self.on(i % 3 + 1, f"CREATE TABLE r{i} (a int) USING gcl; CREATE ROLE r{i} PASSWORD 'secret'; DROP TABLE r{i}; DROP ROLE r{i}")
        eventually(lambda: is_empty(self.cluster))
        for k in (1, 2, 3):
            rows = self.on(k, f"SELECT node, present, applied = entries AND applied >= {before} + 80, pages, pages < pages_max FROM gcl_stat_ddl_log_kept")
            self.assertEqual([f"{n}|t|t|0|t" for n in (1, 2, 3)], rows)
        self.assertEqual([], self.on(2, "SELECT rolname FROM pg_roles WHERE rolname ~ '^r[0-9]'"))

    def test_one_that_is_away_is_waited_for(self):
        self.cluster.stop(3)
        self.on(1, "CREATE TABLE away (a int) USING gcl; CREATE ROLE away PASSWORD 'secret'")
        self.on(2, "ALTER TABLE away ADD COLUMN b int DEFAULT 7")
        eventually(lambda: self.holders() == ["3|f"])
        self.assertEqual(["3"], self.on(2, KEPT))
        self.cluster.start(3)
        self.on(3, "INSERT INTO away VALUES (1)")
        self.assertEqual(["1|7"], self.on(2, "SELECT * FROM away"))
        eventually(lambda: is_empty(self.cluster))
        verifiers = self.cluster.everywhere("SELECT rolpassword FROM pg_authid WHERE rolname = 'away'")
        self.assertEqual([verifiers[0]] * 3, verifiers)
        self.on(3, "DROP TABLE away; DROP ROLE away")

    def test_a_database_that_is_kept_out_is_waited_for(self):
        self.on(3, "CREATE TABLE mine (a int)")
        self.cluster.stop(3)
        self.on(1, "CREATE TABLE mine (a int) USING gcl; CREATE ROLE beside")
        self.cluster.start(3)
        eventually(lambda: self.holders() == ["3|t"])
        self.on(2, "CREATE ROLE behind")
        # A role is in no database: its DDL does not wait for this one, nor does DDL from another database.
        eventually(lambda: self.on(3, "SELECT count(*) FROM pg_roles WHERE rolname IN ('beside', 'behind')") == ["2"])
        self.the_others_have_applied_all()
        self.assertEqual(["3|t"], self.holders())
        self.on(3, "DROP TABLE mine")
        eventually(lambda: is_empty(self.cluster), 60)
        self.on(3, "INSERT INTO mine VALUES (3)")
        self.on(1, "DROP TABLE mine; DROP ROLE beside, behind")

    def test_the_end_of_a_history_is_waited_for_where_it_is_kept_out(self):
        self.on(1, "CREATE DATABASE ending")
        ending = {k: Session(self.cluster.dsn(k) + " dbname=ending") for k in (1, 3)}
        ending[1].run("CREATE EXTENSION gcl; CREATE TABLE t (a int) USING gcl")
        ending[3].run("CREATE TABLE mine (a int)")
        ending[3].close()
        self.cluster.stop(3)
        ending[1].run("CREATE TABLE mine (a int) USING gcl")
        self.cluster.start(3)
        eventually(lambda: self.holders() == ["3|t"])
        ending[1].run("DROP EXTENSION gcl CASCADE")
        self.on(1, "CREATE ROLE passing; DROP ROLE passing")
        self.the_others_have_applied_all()
        self.assertEqual(["3|t"], self.holders())
        self.cluster.stop(3)
        self.cluster.start(3)
        again = Session(self.cluster.dsn(3) + " dbname=ending")
        with self.assertRaises(SqlError) as caught:
            again.run("SELECT * FROM t")
        self.assertEqual("55000", caught.exception.state)
        again.run("DROP TABLE mine")
        again.close()
        eventually(lambda: is_empty(self.cluster), 60)
        again = Session(self.cluster.dsn(3) + " dbname=ending")
        self.assertEqual(["0"], again.run("SELECT count(*) FROM pg_class WHERE relname IN ('t', 'mine')"))
        again.close()
        ending[1].close()
        self.on(1, "DROP DATABASE ending")

    def test_no_copy_is_taken_of_a_primary_that_lacks_something(self):
        # A database that two have, and the third makes when it has come back.
        self.cluster.stop(3)
        for k in (1, 2):
            self.on(k, "SET gcl.local_administration = on; CREATE DATABASE lacking")
        made = Session(self.cluster.dsn(1) + " dbname=lacking")
        made.run("CREATE EXTENSION gcl; CREATE TABLE t (a int) USING gcl")
        made.close()
        self.cluster.start(3)
        eventually(lambda: self.holders() == ["3|t"])
        self.refused("55000", "BEGIN; SELECT gcl_prepare_copy(5)", 3)
        self.on(3, "SET gcl.local_administration = on; CREATE DATABASE lacking")
        self.refused("55000", "BEGIN; SELECT gcl_prepare_copy(5)", 3)
        made = Session(self.cluster.dsn(2) + " dbname=lacking")
        made.run("ALTER TABLE t ADD COLUMN b int")
        made.close()
        eventually(lambda: is_empty(self.cluster))
        self.on(3, "BEGIN; SELECT gcl_prepare_copy(5); ROLLBACK")
        self.on(1, "DROP DATABASE lacking")

    def test_a_transaction_that_was_rolled_back_is_removed_too(self):
        session = self.cluster.session(1)
        session.run("CREATE TABLE parent (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED) USING gcl")
        with self.assertRaises(SqlError):
            session.run("BEGIN; ALTER TABLE parent ADD COLUMN b int; INSERT INTO parent VALUES (1), (1); COMMIT")
        session.run("ROLLBACK; DROP TABLE parent")
        eventually(lambda: is_empty(self.cluster))

    def test_who_may_ask_and_who_may_act(self):
        self.on(1, "CREATE ROLE nobody LOGIN")
        self.assertEqual(["3"], self.on(2, "SET ROLE nobody; SELECT count(*) FROM gcl_stat_ddl_log_kept"))
        for call in ("gcl_prepare_copy(4)", "gcl_forget_primary(3)"):
            with self.assertRaises(SqlError) as caught:
                self.on(2, f"SET ROLE nobody; SELECT {call}")
            self.assertEqual("42501", caught.exception.state)
        self.on(1, "DROP ROLE nobody")

    def refused(self, state, sql, k=1):
        with self.assertRaises(SqlError) as caught:
            self.on(k, sql)
        self.assertEqual(state, caught.exception.state, caught.exception)
        return str(caught.exception)

    def test_what_is_no_primary_is_refused(self):
        self.refused("25P01", "SELECT gcl_prepare_copy(4)")
        self.refused("25001", "BEGIN; SAVEPOINT s; SELECT gcl_prepare_copy(4)")
        for number in (-1, 0, 1, 8, 1000):
            self.refused("22023", f"BEGIN; SELECT gcl_prepare_copy({number})")
            self.refused("22023", f"SELECT gcl_forget_primary({number})")
        self.refused("55006", "BEGIN; SELECT gcl_prepare_copy(2)")
        self.refused("55006", "SELECT gcl_forget_primary(2)")

    def test_there_is_no_ddl_while_a_copy_is_made_and_only_then(self):
        copier = self.cluster.session(2)
        copier.run("BEGIN; SELECT gcl_prepare_copy(5)")
        self.refused("55P03", "SET lock_timeout = '200ms'; CREATE ROLE late", 3)
        self.on(3, "CREATE TEMP TABLE own (a int)")
        copier.run("ROLLBACK")
        self.on(3, "CREATE ROLE late; DROP ROLE late")
        self.assertNotIn("5", self.on(1, "SELECT node FROM gcl_stat_ddl_log_kept"))
        self.assertFalse(os.path.exists(f"{self.cluster.dir}/node2/data/gcl_ddl/copy"))


class Full(unittest.TestCase):
    def test_ddl_says_whom_the_log_waits_for(self):
        cluster = self.enterContext(Cluster(primaries=2, pool="64MB", settings=("autovacuum=off",)))
        cluster.sql(1, "CREATE TABLE t (a int) USING gcl")
        cluster.stop(2)
        session = cluster.session(1)
        with self.assertRaises(SqlError) as caught:
            for i in range(100):
                session.run(f"COMMENT ON TABLE t IS '{i}{'x' * 100_000}'")
        self.assertEqual("54000", caught.exception.state)
        self.assertRegex(cluster.log(1), r"the DDL log is full[^$]*primary 2[^$]*gcl_forget_primary\(2\)")
        self.assertGreater(i, 20)
        self.assertIn("primary 2 has applied", cluster.ctl("status", cluster.dir, check=False).stdout)
        session.run("INSERT INTO t VALUES (1)")
        session.run("SELECT gcl_forget_primary(2)")
        eventually(lambda: is_empty(cluster))
        session.run("COMMENT ON TABLE t IS 'short'")
        cluster.start(2)
        with self.assertRaises(SqlError) as caught:
            cluster.sql(2, "SELECT * FROM t")
        self.assertEqual("55000", caught.exception.state)
        self.assertIn("not one of this pool any more", str(caught.exception))
        cluster.sql(2, "CREATE TABLE own (a int)")


WRITES_UNTIL_TOLD = """DO $$ DECLARE i int := 0; BEGIN
  WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 99 AND granted) LOOP
    i := i + 1; INSERT INTO t VALUES (-i); COMMIT; PERFORM pg_sleep(0.002);
  END LOOP; END $$"""


class Later(unittest.TestCase):
    """Primaries that come when the log's beginning is gone."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off", "gcl.primaries=2"), started=(1, 2), spare=1))
        cls.cluster.sql(1, """CREATE ROLE owner LOGIN PASSWORD 'secret'; CREATE DATABASE second OWNER owner;
                              CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x') USING gcl; INSERT INTO t VALUES (1);
                              CREATE TABLE own (a int); INSERT INTO own VALUES (42)""")
        cls.second(1, "CREATE EXTENSION gcl; CREATE TABLE s (a serial, b int) USING gcl; INSERT INTO s (b) VALUES (5)")
        eventually(lambda: is_empty(cls.cluster))

    @classmethod
    def second(cls, k, sql):
        session = Session(cls.cluster.dsn(k) + " dbname=second")
        try:
            return session.run(sql)
        finally:
            session.close()

    def test_a_new_directory_comes_too_late(self):
        self.cluster.start(3)
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(3, "CREATE ROLE lost")
        self.assertEqual("55000", caught.exception.state)
        self.assertRegex(self.cluster.log(3), "comes too late[^$]*gcl_prepare_copy")
        self.cluster.sql(1, "CREATE ROLE kept; DROP ROLE kept")
        self.cluster.stop(3)
        self.assertIn("put it out of the way first", self.cluster.ctl("add-primary", self.cluster.dir, "--node", "3", check=False).stderr)
        shutil.rmtree(f"{self.cluster.dir}/node3/data")
        # Changes made meanwhile are in the copy's log, which is replayed to its end before the copy serves.
        writer = self.cluster.session(1)
        gate = self.cluster.session(1)
        writer.send(WRITES_UNTIL_TOLD)
        written = lambda: int(self.cluster.sql(2, "SELECT count(*) FROM t WHERE a < 0")[0])
        eventually(lambda: written() > 0)
        before = written()
        self.cluster.ctl("add-primary", self.cluster.dir, "--node", "3")
        self.assertGreater(written(), before)
        self.assertTrue(writer.waits())
        gate.run(GO_ON)
        writer.result()
        gate.close()
        writer.run("DELETE FROM t WHERE a < 0")
        self.cluster.start(3)
        self.cluster.sql(3, "INSERT INTO t VALUES (3); CREATE ROLE found")
        self.assertEqual(["1"], self.cluster.sql(1, "SELECT count(*) FROM pg_roles WHERE rolname = 'found'"))
        self.cluster.sql(2, "DELETE FROM t WHERE a = 3; DROP ROLE found")
        self.cluster.stop(3)
        self.cluster.sql(2, "SELECT gcl_forget_primary(3)")

    def test_a_backup_that_goes_on_beyond_the_transaction_is_not_used(self):
        c = self.cluster
        copier = c.session(2)
        copier.run("BEGIN; SELECT gcl_prepare_copy(6)")
        program = next(str(path) for path in pathlib.Path(c.dir, "prefix").rglob("pg_basebackup"))
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gcl-copy-") as target:
            os.chmod(target, 0o777)
            backup = subprocess.Popen([program, "-D", target + "/d", "-c", "fast", "-r", "32k", "-d", c.dsn(2)], cwd="/", stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, **data_directory.account())
            eventually(lambda: c.sql(2, "SELECT count(*) FROM pg_stat_progress_basebackup") == ["1"])
            with self.assertRaises(SqlError) as caught:
                copier.run("COMMIT")
            self.assertEqual("55006", caught.exception.state)
            backup.kill()
            backup.wait()
        self.assertNotIn("6", c.sql(1, "SELECT node FROM gcl_stat_ddl_log_kept"))
        c.sql(1, "CREATE ROLE after_all; DROP ROLE after_all")

    def test_one_that_is_made_again_is_started_when_it_is_made(self):
        c = self.cluster
        c.stop(3)
        shutil.rmtree(f"{c.dir}/node3/data")
        copier = c.session(2)
        copier.run("BEGIN; SELECT gcl_prepare_copy(6)")
        commands = []
        for command in (["add-primary", c.dir, "--node", "3"], ["start", c.dir, "--node", "3"]):
            commands.append(subprocess.Popen([GCLCTL, *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            eventually(lambda: c.sql(1, PREPARES.format(3)) == ["1"])
        with self.assertRaises(subprocess.TimeoutExpired):
            commands[1].wait(3)
        copier.run("ROLLBACK")
        for command in commands:
            said = command.communicate(timeout=120)[0]
            self.assertEqual(0, command.returncode, said)
        self.assertEqual(["1|x"], c.sql(3, "SELECT a, b FROM t WHERE a = 1"))

    def test_a_primary_is_added(self):
        c = self.cluster
        own = (("port", c.ports.base), ("cluster_name", "'gcl1'"), ("gcl.node_id", 1))  # of the one that it is made from
        for name, value in own:
            c.sql(1, f"ALTER SYSTEM SET {name} = {value}")
        copier = c.session(2)
        copier.run("BEGIN; SELECT gcl_prepare_copy(6)")
        adds = subprocess.Popen([GCLCTL, "add-primary", c.dir], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        eventually(lambda: c.sql(1, PREPARES.format(4)) == ["1"])
        for command in (["add-primary", c.dir], ["remove-primary", c.dir, "--node", "3"]):
            self.assertIn("another gclctl adds a primary", c.ctl(*command, check=False).stderr)
        copier.run("ROLLBACK")
        said, refused = adds.communicate(timeout=120)
        self.assertIn("4 primaries", said, refused)
        for name, _ in own:
            c.sql(1, f"ALTER SYSTEM RESET {name}")
        c.sql(2, "ALTER TABLE t ADD COLUMN c int DEFAULT 3")  # before it has come
        c.start(4)
        self.assertEqual(["1|x|3"], c.sql(4, "SELECT * FROM t"))
        self.assertEqual(["gcl4|4"], c.sql(4, "SELECT current_setting('cluster_name'), current_setting('gcl.node_id')"))
        self.assertEqual(c.sql(1, "SELECT rolpassword FROM pg_authid WHERE rolname = 'owner'"),
                         c.sql(4, "SELECT rolpassword FROM pg_authid WHERE rolname = 'owner'"))
        self.assertEqual(["42"], c.sql(4, "SELECT a FROM own"))
        c.sql(4, "CREATE TABLE made (a int PRIMARY KEY, b text) USING gcl; INSERT INTO made VALUES (4, 'four'); CREATE ROLE four")
        self.assertEqual(["4|four"], c.sql(1, "SELECT * FROM made"))
        self.assertEqual(["t"], c.sql(2, "SELECT oid::bigint >= 16384 + 4 * 67108864::bigint FROM pg_class WHERE relname = 'made'"))
        self.second(4, "INSERT INTO s (b) VALUES (6); ALTER TABLE s ADD COLUMN c int")
        self.assertEqual(["5", "6"], self.second(2, "SELECT b FROM s ORDER BY b"))
        eventually(lambda: is_empty(c))
        c.stop(4)
        c.start(4)
        self.assertEqual(["4|four"], c.sql(4, "SELECT * FROM made"))
        c.sql(2, "DROP TABLE made; DROP ROLE four")


if __name__ == "__main__":
    unittest.main()
