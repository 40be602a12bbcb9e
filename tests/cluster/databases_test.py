"""Databases of a cluster: those without the extension, and what the default access method gcl means in them."""
import os
import signal
import unittest

from harness import Cluster, Session, SqlError, eventually

GCL = "options='-c default_table_access_method=gcl'"


class Databases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))

    def on(self, k, database, text, *options):
        session = Session(" ".join((self.cluster.dsn(k), f"dbname={database}", *options)))
        try:
            return session.run(text)
        finally:
            session.close()

    def refused(self, state, says, k, database, text, *options):
        session = Session(" ".join((self.cluster.dsn(k), f"dbname={database}", *options)))
        try:
            with self.assertRaises(SqlError) as caught:
                session.run(text)
            self.assertEqual(state, caught.exception.state)
            self.assertIn(says, "\n".join(session.collected))
        finally:
            session.close()

    def everywhere(self, query):
        """The one answer of all primaries."""
        answers = [self.on(k, "postgres", query) for k in (1, 2, 3)]
        self.assertEqual([answers[0]] * 3, answers)
        return answers[0]

    def names(self):
        return self.everywhere("SELECT oid, datname, datdba::regrole, datconnlimit, datacl FROM pg_database WHERE oid > 16384 AND datname <> 'postgres' ORDER BY 1")

    def files(self, k):
        """Directories of databases on primary K."""
        return set(os.listdir(f"{self.cluster.dir}/node{k}/data/base")) - {"1", "4", "5", "pgsql_tmp"}

    def test_a_database_is_made_altered_and_dropped_on_all(self):
        self.on(1, "postgres", "CREATE ROLE owner_of_databases CREATEDB")
        self.on(2, "template1", "SET SESSION AUTHORIZATION owner_of_databases; CREATE DATABASE \"odd \"\"one\" CONNECTION LIMIT 7 STRATEGY file_copy")
        self.on(3, "postgres", "CREATE DATABASE plain")
        self.assertEqual(["odd \"one|owner_of_databases|7|", "plain|postgres|-1|"], [row.split("|", 1)[1] for row in self.names()])
        self.on(1, "plain", "ALTER DATABASE plain OWNER TO owner_of_databases; GRANT CREATE ON DATABASE plain TO pg_monitor; ALTER DATABASE plain CONNECTION LIMIT 9")
        self.on(2, "plain", "COMMENT ON DATABASE plain IS 'of all'; ALTER DATABASE plain SET work_mem = '7MB'; ALTER ROLE owner_of_databases IN DATABASE plain SET work_mem = '8MB'")
        self.on(3, "postgres", "BEGIN; ALTER DATABASE plain RENAME TO never; ROLLBACK; ALTER DATABASE plain RENAME TO plainer; REVOKE CONNECT ON DATABASE plainer, postgres FROM pg_monitor")
        self.assertIn("plainer|owner_of_databases|9|{=Tc/owner_of_databases,owner_of_databases=CTc/owner_of_databases,pg_monitor=C/owner_of_databases}", self.names()[1])
        self.assertEqual(["of all"], self.everywhere("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'plainer'"))
        self.assertEqual(["{work_mem=7MB}", "{work_mem=8MB}"], self.everywhere("SELECT setconfig FROM pg_db_role_setting s JOIN pg_database d ON d.oid = setdatabase WHERE datname = 'plainer' ORDER BY 1"))
        self.refused("25001", "transaction block", 1, "postgres", "BEGIN; CREATE DATABASE blocked")
        self.refused("25001", "transaction block", 1, "postgres", "BEGIN; DROP DATABASE plainer")
        self.refused("42P04", "already exists", 1, "postgres", "CREATE DATABASE plainer")
        self.refused("3D000", "does not exist", 1, "postgres", "DROP DATABASE nowhere")
        self.refused("42501", "owner", 1, "postgres", "CREATE ROLE stranger; SET SESSION AUTHORIZATION stranger; DROP DATABASE plainer")
        self.refused("42809", "template", 1, "postgres", "DROP DATABASE template1")
        self.refused("55006", "currently open", 1, "plainer", "DROP DATABASE plainer")
        self.on(1, "postgres", "DROP DATABASE IF EXISTS nowhere; DROP ROLE stranger")
        before = [self.files(k) for k in (1, 2, 3)]
        self.on(2, "postgres", "DROP DATABASE plainer")
        self.on(3, "postgres", "SET SESSION AUTHORIZATION owner_of_databases; DROP DATABASE \"odd \"\"one\"")
        self.assertEqual([], self.names())
        for k in (1, 2, 3):
            self.assertEqual(2, len(before[k - 1] - self.files(k)))
        self.on(1, "postgres", "DROP ROLE owner_of_databases")

    def test_what_fails_on_one_primary_is_left_nowhere(self):
        before = [self.files(k) for k in (1, 2, 3)]
        self.on(2, "postgres", "SET gcl.local_administration = on; CREATE DATABASE of_two")
        self.refused("42P04", "primary 2", 1, "postgres", "CREATE DATABASE of_two")
        self.assertEqual([], self.on(1, "postgres", "SELECT 1 FROM pg_database WHERE datname = 'of_two'"))
        # A rollback waits for nobody: the others hear of it a moment later.
        eventually(lambda: [before[0], before[2]] == [self.files(1), self.files(3)])
        # What one has and another one has not is done where it is.
        self.on(2, "postgres", "ALTER DATABASE of_two CONNECTION LIMIT 3; GRANT CREATE ON DATABASE of_two TO pg_monitor; ALTER ROLE CURRENT_USER IN DATABASE of_two SET work_mem = '1MB'")
        self.on(2, "postgres", "DROP DATABASE of_two")
        self.on(3, "postgres", "CREATE DATABASE used")
        for k in (1, 2):
            user = Session(f"{self.cluster.dsn(k)} dbname=used")
            user.run("SELECT 1")
            self.refused("55006", "primary 1" if k == 1 else "is being accessed", 2, "postgres", "DROP DATABASE used")
            self.on(k, "used", "SELECT 1")
            user.close()
        user = Session(f"{self.cluster.dsn(1)} dbname=used")
        user.run("SELECT 1")
        self.on(2, "postgres", "DROP DATABASE used WITH (FORCE)")
        self.assertEqual([], self.names())
        user.close()
        self.assertEqual(before, [self.files(k) for k in (1, 2, 3)])

    def used_pages(self):
        return int(self.on(1, "postgres", "SELECT sum(pages) FROM gcl_stat_pool WHERE kind <> 'free'")[0])

    def test_a_database_with_many_gcl_tables_is_dropped_at_once(self):
        self.on(1, "postgres", "CREATE DATABASE many")
        self.on(2, "postgres", "CREATE TABLE stays (a int PRIMARY KEY) USING gcl; INSERT INTO stays VALUES (1)")
        before = self.used_pages()
        self.on(3, "many", "CREATE EXTENSION gcl; DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('CREATE TABLE t%s (id serial PRIMARY KEY, v text) USING gcl', i); END LOOP; END $$")
        self.on(2, "many", "INSERT INTO t1 (v) SELECT 'x' FROM generate_series(1, 1000); ALTER TABLE t2 ADD w int DEFAULT 3; TRUNCATE t3; DROP TABLE t4; CREATE TABLE local (a int) USING heap")
        self.on(1, "postgres", "ALTER DATABASE many SET default_transaction_read_only = on")
        self.assertGreater(self.used_pages(), before + 1200)
        self.refused("2BP01", "local_administration", 1, "postgres", "SET gcl.local_administration = on; DROP DATABASE many")
        self.refused("0A000", "share the pages", 1, "postgres", "CREATE DATABASE copy TEMPLATE many")
        self.refused("0A000", "by its name", 1, "postgres", "ALTER DATABASE many RENAME TO more")
        self.on(2, "postgres", "DROP DATABASE many")
        eventually(lambda: self.used_pages() <= before + 100)  # the DDL log is not shortened
        self.assertEqual([], self.names())
        # Its history begins anew, also for one that has been away.
        self.cluster.stop(3)
        self.on(1, "postgres", "CREATE DATABASE many")
        self.on(1, "many", "CREATE EXTENSION gcl; CREATE TABLE t1 (other int PRIMARY KEY) USING gcl; INSERT INTO t1 VALUES (7)")
        self.on(2, "postgres", "DROP DATABASE many; CREATE DATABASE many")
        self.on(2, "many", "CREATE EXTENSION gcl; CREATE TABLE t1 (third int PRIMARY KEY) USING gcl; INSERT INTO t1 VALUES (8)")
        self.cluster.start(3)
        for k in (1, 2, 3):
            self.assertEqual(["8"], self.on(k, "many", "SELECT third FROM t1"))
        self.names()
        self.on(3, "postgres", "DROP DATABASE many; DROP TABLE stays")

    def test_files_of_a_replay_that_a_crash_ended_are_in_nobodys_way(self):
        """As a crash leaves them in the middle of CREATE DATABASE: no row of pg_database knows them."""
        self.cluster.stop(3)
        self.on(1, "postgres", "CREATE DATABASE half_made")
        oid = self.on(1, "postgres", "SELECT oid FROM pg_database WHERE datname = 'half_made'")[0]
        left = f"{self.cluster.dir}/node3/data/base/{oid}"
        os.mkdir(left)
        with open(f"{left}/1249", "wb") as file:
            file.write(b"half")
        owner = os.stat(f"{self.cluster.dir}/node3/data/base")
        for path in (left, f"{left}/1249"):
            os.chown(path, owner.st_uid, owner.st_gid)
        self.cluster.start(3)
        self.assertEqual(["postgres"], self.on(3, "half_made", "SELECT current_user"))
        self.on(2, "postgres", "DROP DATABASE half_made")
        self.assertNotIn(oid, self.files(3))

    def test_what_can_fail_comes_before_the_files_of_a_database_go(self):
        self.on(1, "postgres", "CREATE DATABASE doomed")
        self.on(1, "doomed", "CREATE EXTENSION gcl")
        before = self.files(1)
        bystander, coordinator = self.cluster.session(1), self.cluster.session(1)
        pid, positions = coordinator.pid(), f"{self.cluster.dir}/node1/data/global/9700"
        bystanders = bystander.pid()
        os.kill(bystanders, signal.SIGSTOP)  # all processes close their files before PostgreSQL removes any
        try:
            coordinator.send("DROP DATABASE doomed")
            eventually(lambda: self.on(1, "postgres", f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}") == ["ProcSignalBarrier"])
            self.assertEqual(before, self.files(1))
            os.chmod(positions, 0)
        finally:
            os.kill(bystanders, signal.SIGCONT)
        try:
            coordinator.result()
        finally:
            os.chmod(positions, 0o600)
        self.assertEqual([], self.names())
        self.assertEqual(1, len(before - self.files(1)))

    def test_the_database_a_worker_is_connected_to_is_dropped(self):
        self.on(1, "template1", "CREATE ROLE passing; DROP DATABASE postgres")
        for k in (2, 3):
            self.assertEqual([], self.on(k, "template1", "SELECT 1 FROM pg_database WHERE datname = 'postgres'"))
        self.cluster.stop(3)
        self.on(1, "template1", "CREATE DATABASE postgres; ALTER DATABASE postgres RENAME TO first; ALTER DATABASE first RENAME TO postgres; DROP DATABASE postgres")
        self.on(1, "template1", "CREATE DATABASE postgres")
        self.on(1, "postgres", "CREATE EXTENSION gcl; DROP ROLE passing")
        self.cluster.start(3)
        self.on(3, "postgres", "CREATE TABLE again (a int) USING gcl; DROP TABLE again")
        self.names()

    def test_what_was_in_a_database_of_its_name_is_not_done_again(self):
        self.on(1, "postgres", "CREATE DATABASE again")
        self.cluster.stop(3)  # so that the log keeps what follows
        self.on(1, "again", "CREATE EXTENSION gcl")
        self.on(2, "again", "CREATE TABLE t (a int) USING gcl")
        self.on(1, "postgres", "DROP DATABASE again; CREATE DATABASE again")
        self.on(1, "again", "CREATE EXTENSION gcl")
        self.on(2, "again", "CREATE TABLE other (a int) USING gcl")
        self.cluster.start(3)
        for k in (1, 2, 3):
            self.assertEqual(["other"], self.on(k, "again", "SELECT relname FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'gcl')"))
        self.on(2, "postgres", "DROP DATABASE again")

    def test_a_primary_that_lacks_the_extension_does_not_make_another_one(self):
        for k in (1, 2):
            self.on(k, "postgres", "SET gcl.local_administration = on; CREATE DATABASE late")
        self.cluster.stop(3)
        self.on(1, "late", "CREATE EXTENSION IF NOT EXISTS gcl; CREATE TABLE t (a int) USING gcl")
        self.cluster.start(3)
        self.on(3, "postgres", "SET gcl.local_administration = on; CREATE DATABASE late")
        for statement in ("CREATE EXTENSION gcl", "CREATE EXTENSION IF NOT EXISTS gcl"):
            self.refused("42710", "next DDL in the database on a primary that has the extension", 3, "late", statement)
        self.cluster.stop(1)
        self.cluster.stop(2)
        self.refused("42710", "next DDL in the database on a primary that has the extension", 3, "late", "CREATE EXTENSION gcl")  # no other one says so
        self.cluster.start(1)
        self.cluster.start(2)
        self.on(2, "late", "COMMENT ON TABLE t IS 'of all'")
        self.on(3, "late", "CREATE EXTENSION IF NOT EXISTS gcl; INSERT INTO t VALUES (3)")
        self.assertEqual(["3"], self.on(1, "late", "SELECT * FROM t"))
        self.on(3, "postgres", "DROP DATABASE late")

    def test_what_a_role_owns_is_reassigned_in_its_database_also_later(self):
        self.on(1, "postgres", "CREATE DATABASE app; CREATE ROLE leaver; CREATE ROLE heir; CREATE TABLE kept (a int) USING gcl; ALTER TABLE kept OWNER TO leaver")
        self.on(1, "app", "CREATE EXTENSION gcl; CREATE TABLE passed_on (a int) USING gcl; ALTER TABLE passed_on OWNER TO leaver;"
                "CREATE TABLE dropped (a int) USING gcl; ALTER TABLE dropped OWNER TO heir")
        self.cluster.stop(3)
        self.on(1, "app", "DROP OWNED BY heir; REASSIGN OWNED BY leaver TO heir")
        self.on(2, "postgres", "REASSIGN OWNED BY leaver TO heir; DROP ROLE leaver")
        self.cluster.start(3)
        for k in (1, 2, 3):
            self.assertEqual(["passed_on|heir"], self.on(k, "app", "SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('passed_on', 'dropped')"))
            self.assertEqual(["heir"], self.on(k, "postgres", "SELECT relowner::regrole FROM pg_class WHERE relname = 'kept'"))
            self.assertEqual(["0"], self.on(k, "postgres", "SELECT count(*) FROM pg_roles WHERE rolname = 'leaver'"))
        self.on(3, "postgres", "DROP DATABASE app; DROP TABLE kept; DROP ROLE heir")

    def test_what_was_done_to_roles_outlives_the_history_it_was_done_in(self):
        self.cluster.stop(3)
        self.on(1, "postgres", "CREATE DATABASE short; CREATE DATABASE shorter; CREATE ROLE temporary")
        for name in ("short", "shorter"):
            self.on(1, name, f"CREATE EXTENSION gcl; BEGIN; CREATE ROLE of_{name}; CREATE TABLE t (a int) USING gcl; COMMIT")
        self.on(2, "short", "BEGIN; DROP OWNED BY temporary; DROP ROLE temporary; COMMIT")
        self.on(1, "short", "DROP EXTENSION gcl CASCADE")
        self.on(1, "shorter", "DROP EXTENSION gcl CASCADE")
        self.on(1, "postgres", "ALTER ROLE of_short CONNECTION LIMIT 7; ALTER ROLE of_shorter CONNECTION LIMIT 8")
        self.cluster.start(3)
        for k in (1, 2, 3):
            self.assertEqual(["of_short|7", "of_shorter|8"], self.on(k, "postgres", "SELECT rolname, rolconnlimit FROM pg_roles WHERE rolname ~ '^of_short|temporary' ORDER BY 1"))
            self.assertEqual(["0"], self.on(k, "short", "SELECT count(*) FROM pg_class WHERE relname = 't'"))
        self.on(3, "postgres", "DROP DATABASE short; DROP DATABASE shorter; DROP ROLE of_short, of_shorter")

    def test_the_extension_where_a_primary_lacks_the_database(self):
        self.on(1, "postgres", "SET gcl.local_administration = on; CREATE DATABASE mine")
        for _ in range(2):
            self.refused("3D000", "primary", 1, "mine", "CREATE EXTENSION gcl")
        self.refused("3D000", "CREATE DATABASE makes a database on every primary", 1, "mine", "CREATE EXTENSION gcl")
        for k in (2, 3):
            self.on(k, "postgres", "SET gcl.local_administration = on; CREATE DATABASE mine")
        self.on(1, "mine", "CREATE EXTENSION gcl; CREATE TABLE t (a int) USING gcl")
        self.assertEqual([], self.on(3, "mine", "SELECT * FROM t"))
        self.on(2, "postgres", "DROP DATABASE mine")

    def test_the_default_method_in_a_database_without_the_extension(self):
        self.on(2, "postgres", "CREATE DATABASE bare")
        for text in ("CREATE TABLE t (a int)", "CREATE TABLE t AS SELECT 1 AS a", "SELECT 1 AS a INTO t", "CREATE MATERIALIZED VIEW t AS SELECT 1 AS a",
                     "CREATE TABLE t (a int) PARTITION BY LIST (a)", "CREATE SCHEMA s CREATE TABLE t (a int)", "CREATE TABLE t (a int) USING gcl",
                     "DO 'BEGIN CREATE TABLE t (a int); END'"):
            with self.subTest(text):
                self.refused("42704", "CREATE EXTENSION gcl", 1, "bare", text, GCL)
        self.assertEqual(["1"], self.on(2, "bare", "CREATE TABLE h (a int) USING heap; CREATE TABLE IF NOT EXISTS h (b int); CREATE TEMP TABLE t (a int);"
                                        "CREATE TEMP TABLE t2 AS SELECT 1 AS a; SELECT * FROM t2", GCL)[-1:])
        # However the default is set: by ALTER ROLE and ALTER DATABASE without a warning, by ALTER SYSTEM, by SET.
        self.on(1, "bare", "ALTER DATABASE bare SET default_table_access_method = gcl")
        self.assertEqual(["gcl"], self.on(1, "bare", "SHOW default_table_access_method"))
        self.refused("42704", "CREATE EXTENSION gcl", 1, "bare", "CREATE TABLE t (a int)")
        self.on(1, "bare", "ALTER DATABASE bare RESET default_table_access_method")
        self.refused("42704", "CREATE EXTENSION gcl", 1, "bare", "SET default_table_access_method = gcl; CREATE TABLE t (a int)")
        self.on(1, "bare", "ALTER SYSTEM SET default_table_access_method = gcl")
        self.on(1, "bare", "ALTER SYSTEM RESET default_table_access_method")
        for other in ("gcl2", ""):
            self.refused("22023", "default_table_access_method", 1, "bare", f"SET default_table_access_method = '{other}'")
        # With the extension, and the setting from the start; parallel workers too.
        self.on(3, "bare", "CREATE EXTENSION gcl; CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 9); SET force_parallel_mode = on;"
                           "SELECT count(*) FROM t; CREATE TEMP TABLE mine (a int); CREATE TABLE p (a int) PARTITION BY LIST (a)", GCL)
        for k in (1, 2, 3):
            self.assertEqual(["p", "t"], self.on(k, "bare", "SELECT relname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'gcl' AND relkind <> 'i' ORDER BY 1"))
        self.on(1, "postgres", "DROP DATABASE bare")


if __name__ == "__main__":
    unittest.main(verbosity=2)
