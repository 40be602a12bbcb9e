"""Roles are every primary's: one OID, one verifier, the same memberships, settings and privileges."""
import glob
import os
import unittest

from catalogs import Catalogs
from harness import Cluster, Session, SqlError, eventually

ROLES = """SELECT oid, rolname, rolsuper, rolcreaterole, rolcanlogin, rolconnlimit, rolpassword, rolvaliduntil FROM pg_authid WHERE oid >= 16384 ORDER BY oid;
           SELECT roleid::regrole, member::regrole, grantor::regrole, admin_option FROM pg_auth_members WHERE member >= 16384 ORDER BY 1, 2;
           SELECT setrole::regrole, datname, setconfig FROM pg_db_role_setting LEFT JOIN pg_database d ON d.oid = setdatabase ORDER BY 1, 2"""


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.connect()

    @classmethod
    def connect(cls):
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}

    def on(self, k, text):
        self.sessions[k].run("ROLLBACK; RESET ALL; RESET SESSION AUTHORIZATION")
        return self.sessions[k].run(text)

    def same(self, query):
        first, *others = [self.on(k, query) for k in (1, 2, 3)]
        for answer in others:
            self.assertEqual(first, answer)
        return first

    def refused(self, state, k, text):
        with self.assertRaises(SqlError) as caught:
            self.on(k, text)
        self.assertEqual(state, caught.exception.state)
        return str(caught.exception)

    def tearDown(self):
        self.same(ROLES)
        self.same("SELECT gcl_ddl_fingerprint()")

    def test_from_current_takes_the_setting_of_the_session_that_says_so(self):
        self.on(2, "CREATE ROLE fc; SET work_mem = '7777kB'; SET my.own = 'a ''b''; c'; SET search_path = pg_catalog, \"Odd one\";"
                   "ALTER ROLE fc SET work_mem FROM CURRENT; ALTER ROLE fc IN DATABASE postgres SET my.own FROM CURRENT;"
                   "ALTER DATABASE postgres SET search_path FROM CURRENT;"
                   "CREATE FUNCTION public.fc() RETURNS text LANGUAGE sql SET work_mem FROM CURRENT AS 'SELECT pg_catalog.current_setting(''work_mem'')'")
        self.on(3, "SET my.own = 'd'; ALTER FUNCTION fc() SET my.own FROM CURRENT")
        self.assertEqual(["-|postgres|{\"search_path=pg_catalog, \\\"Odd one\\\"\"}", "fc|postgres|{\"my.own=a 'b'; c\"}", "fc||{work_mem=7777kB}"],
                         self.same(ROLES.split(";")[2]))
        self.assertEqual(["{work_mem=7777kB,my.own=d}"], self.same("SELECT proconfig FROM pg_proc WHERE proname = 'fc'"))
        self.on(1, "ALTER DATABASE postgres RESET ALL; DROP FUNCTION fc(); DROP ROLE fc")

    def test_without_a_right_on_roles_and_databases_nobody_waits(self):
        """The lock of the whole cluster is queued for by users with the right alone; others would hold up all DDL."""
        self.on(1, "CREATE ROLE mallory; CREATE ROLE neighbour; CREATE DATABASE shop")
        holder = self.cluster.session(2)
        holder.run("BEGIN; CREATE TABLE held (i int) USING gcl")
        statements = """CREATE ROLE q
            ALTER ROLE neighbour LOGIN
            ALTER ROLE neighbour SET work_mem = '5MB'
            ALTER ROLE neighbour RENAME TO q
            ALTER ROLE ALL SET work_mem = '5MB'
            ALTER ROLE ALL IN DATABASE shop SET work_mem = '5MB'
            COMMENT ON ROLE neighbour IS 'q'
            DROP ROLE neighbour
            DROP ROLE IF EXISTS neighbour
            GRANT neighbour TO mallory
            REVOKE neighbour FROM mallory
            CREATE DATABASE q
            ALTER DATABASE shop CONNECTION LIMIT 5
            ALTER DATABASE shop SET work_mem = '5MB'
            ALTER DATABASE shop RENAME TO q
            ALTER DATABASE shop OWNER TO mallory
            COMMENT ON DATABASE shop IS 'q'
            DROP DATABASE shop"""
        for k in (1, 2):
            mallory = self.cluster.session(k)
            mallory.run("SET ROLE mallory")
            for statement in map(str.strip, statements.splitlines()):
                with self.subTest(primary=k, statement=statement):
                    with self.assertRaises(SqlError) as caught:
                        mallory.run(statement)
                    self.assertEqual("42501", caught.exception.state, caught.exception)
        # What any role may do to itself waits.
        mallory.run("SET lock_timeout = '300ms'")
        with self.assertRaises(SqlError) as caught:
            mallory.run("ALTER ROLE mallory SET work_mem = '5MB'")
        self.assertEqual("55P03", caught.exception.state, caught.exception)
        holder.run("ROLLBACK")
        mallory.run("SET lock_timeout = 0; ALTER ROLE mallory SET work_mem = '5MB'; DROP DATABASE IF EXISTS nowhere")
        self.on(3, "DROP ROLE mallory, neighbour; DROP DATABASE shop")

    def test_without_a_right_no_worker_is_ended(self):
        """Workers that wait for nothing are ended for a statement on their database; by users with the right to it alone."""
        self.on(1, "CREATE ROLE mallory; CREATE DATABASE shop")
        shop = Session(self.cluster.dsn(1) + " dbname=shop")
        self.addCleanup(shop.close)
        shop.run("CREATE EXTENSION gcl; CREATE TABLE t (i int) USING gcl")
        workers = "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE '%apply%' AND datname = 'shop' ORDER BY pid"
        before = self.on(2, workers)
        self.assertNotEqual([], before)
        for way in ("READ ONLY", "READ WRITE"):
            mallory = self.cluster.session(2)
            mallory.run(f"SET ROLE mallory; SET SESSION CHARACTERISTICS AS TRANSACTION {way}")
            for statement in ("ALTER DATABASE shop CONNECTION LIMIT 5", "DROP DATABASE shop", "CREATE DATABASE q TEMPLATE shop"):
                with self.assertRaises(SqlError):
                    mallory.run(statement)
        self.assertEqual(before, self.on(2, workers))
        shop.run("ALTER TABLE t ADD COLUMN j int")
        shop.close()
        self.on(1, "DROP DATABASE shop; DROP ROLE mallory")

    def test_without_a_right_nothing_is_locked(self):
        self.on(1, """CREATE ROLE mallory; CREATE ROLE neighbour; CREATE SCHEMA s; GRANT CREATE, USAGE ON SCHEMA s TO mallory;
                      SET search_path = s; SET default_table_access_method = gcl;
                      CREATE DOMAIN d AS int; CREATE FUNCTION f() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
                      CREATE TABLE t (i int PRIMARY KEY, v d DEFAULT f(), n serial) USING gcl; CREATE VIEW w AS SELECT i FROM t;
                      CREATE RULE r AS ON UPDATE TO t DO ALSO NOTHING; CREATE POLICY p ON t;
                      CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
                      CREATE TABLE part (i int, v int) PARTITION BY LIST (i); ALTER TABLE t OWNER TO neighbour;
                      SET ROLE mallory; CREATE TABLE hers (i int, v int) PARTITION BY LIST (i);
                      CREATE TABLE his (i int, v int) USING gcl""")
        statements = """DROP TABLE t
            ALTER TABLE t ADD COLUMN z int
            ALTER TABLE t DISABLE TRIGGER ALL
            ALTER TABLE t OWNER TO mallory
            ALTER TABLE t RENAME TO q
            ALTER TABLE t RENAME COLUMN v TO q
            ALTER TABLE t SET SCHEMA public
            ALTER TABLE hers ATTACH PARTITION t FOR VALUES IN (1)
            ALTER INDEX t_pkey RENAME TO q
            ALTER TRIGGER g ON t RENAME TO q
            ALTER POLICY p ON t RENAME TO q
            ALTER POLICY p ON t TO PUBLIC
            ALTER DOMAIN d ADD CHECK (VALUE > 0)
            DROP INDEX t_pkey
            ALTER SEQUENCE t_n_seq RESTART
            ALTER TRIGGER g ON t DEPENDS ON EXTENSION gcl
            ALTER INDEX t_pkey DEPENDS ON EXTENSION gcl
            DROP VIEW w
            DROP TRIGGER g ON t
            DROP POLICY p ON t
            DROP RULE r ON t
            DROP DOMAIN d CASCADE
            DROP FUNCTION f() CASCADE
            DROP SCHEMA s CASCADE
            DROP OWNED BY neighbour
            REASSIGN OWNED BY neighbour TO mallory
            TRUNCATE t
            CREATE INDEX ON t (v)
            CREATE OR REPLACE VIEW w AS SELECT i FROM t
            CREATE RULE q AS ON INSERT TO t DO NOTHING
            CREATE POLICY q ON t
            CREATE STATISTICS q ON i, v FROM t
            CREATE TRIGGER q BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()
            CREATE TABLE q () INHERITS (t) USING gcl
            CREATE TABLE q PARTITION OF part FOR VALUES IN (1) USING gcl"""
        users = {k: self.cluster.session(k) for k in (1, 2, 3)}
        for user in users.values():
            user.run("SET search_path = s; BEGIN; LOCK TABLE t, part IN ROW EXCLUSIVE MODE; SELECT count(*) FROM w")
        for k in (1, 3):
            # Of its own locks, and of those that the first primary takes for it.
            mallory = self.cluster.session(k)
            mallory.run("SET search_path = s; SET ROLE mallory; SET lock_timeout = '25s'")
            for statement in map(str.strip, statements.splitlines()):
                with self.subTest(primary=k, statement=statement):
                    with self.assertRaises(SqlError) as caught:
                        mallory.run(statement)
                    self.assertEqual("42501", caught.exception.state, caught.exception)
            for statement in ("CREATE TABLE IF NOT EXISTS hers PARTITION OF part FOR VALUES IN (1) USING gcl",
                              "CREATE TABLE IF NOT EXISTS hers () INHERITS (t) USING gcl"):
                with self.subTest(primary=k, statement=statement):
                    mallory.run(statement)  # there is one: nothing is looked at but that
        for user in users.values():
            user.run("COMMIT")

        # The server locks what it says is none of hers; it does so here only.
        users[2].run("BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE")
        for statement in ("ALTER TABLE hers DETACH PARTITION t", "ALTER TABLE his NO INHERIT t"):
            with self.subTest(statement=statement):
                with self.assertRaises(SqlError) as caught:
                    mallory.run(statement)
                self.assertEqual("42P01", caught.exception.state, caught.exception)
        users[2].run("COMMIT")

        # It waits for its like, and not for writers.
        users[2].run("BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        for statement in ("CREATE STATISTICS q ON i, v FROM t", "CREATE STATISTICS IF NOT EXISTS q ON i, v FROM t"):
            with self.subTest(statement=statement):
                with self.assertRaises(SqlError) as caught:
                    mallory.run(statement)
                self.assertEqual("42501", caught.exception.state, caught.exception)
        users[2].run("COMMIT")

        # What is made is looked for where it would be made, not along the search path.
        self.on(1, "CREATE TABLE public.later (i int) USING gcl; CREATE VIEW public.shown AS SELECT i FROM public.later")
        self.on(2, "SET search_path = s, public; SET ROLE mallory; CREATE TABLE IF NOT EXISTS later (i int, j int) USING gcl;"
                   "CREATE OR REPLACE VIEW shown AS SELECT j FROM s.later")
        self.same("SELECT count(*) FROM s.shown")
        self.on(3, "DROP TABLE public.later, s.later CASCADE")

        self.on(1, "GRANT TRUNCATE, TRIGGER ON s.t TO mallory; GRANT neighbour TO mallory")
        self.on(2, "SET search_path = s; SET ROLE mallory; TRUNCATE t; ALTER TABLE t ADD COLUMN z int")
        self.on(3, "REVOKE neighbour FROM mallory; SET search_path = s; SET ROLE mallory; TRUNCATE t;"
                   "CREATE TRIGGER q BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()")
        self.on(1, "ALTER SCHEMA s OWNER TO mallory")
        self.on(2, "SET ROLE mallory; DROP VIEW s.w; DROP SCHEMA s CASCADE")
        self.on(3, "DROP ROLE mallory, neighbour")

    def test_every_statement_on_roles(self):
        catalogs = {k: Catalogs(self.cluster.session(k)) for k in (1, 2, 3)}
        for c in catalogs.values():
            c.remember()
        statements = """CREATE ROLE ro
            ALTER ROLE ro LOGIN CONNECTION LIMIT 7 VALID UNTIL '2030-01-01' PASSWORD 'secret'
            GRANT pg_monitor TO ro WITH ADMIN OPTION
            ALTER ROLE ro SET work_mem = '1MB'
            ALTER ROLE ro IN DATABASE postgres SET search_path = pg_catalog, public
            COMMENT ON ROLE ro IS 'of all'
            ALTER ROLE ro RENAME TO ro2
            CREATE USER "an ""odd"" one" SUPERUSER NOINHERIT CREATEDB CREATEROLE REPLICATION BYPASSRLS PASSWORD 'x''y\\z' IN ROLE ro2 ROLE pg_checkpoint ADMIN pg_signal_backend
            ALTER ROLE "an ""odd"" one" NOSUPERUSER INHERIT NOBYPASSRLS PASSWORD NULL
            CREATE GROUP gr USER ro2 SYSID 77
            ALTER GROUP gr DROP USER ro2
            ALTER GROUP gr ADD USER "an ""odd"" one"
            REVOKE ADMIN OPTION FOR pg_monitor FROM ro2
            SET password_encryption = md5; ALTER USER ro2 ENCRYPTED PASSWORD 'other'
            ALTER ROLE ALL SET enable_sort = on
            ALTER ROLE ALL RESET ALL
            ALTER ROLE ro2 RESET ALL
            REVOKE pg_monitor FROM ro2 CASCADE
            DROP ROLE "an ""odd"" one", gr
            DROP USER IF EXISTS ro2, nobody"""
        for i, statement in enumerate(map(str.strip, statements.split("\n"))):
            with self.subTest(statement):
                self.on(i % 3 + 1, statement)
                self.same(ROLES)
                changes = {k: c.change() for k, c in catalogs.items()}
                self.assertTrue(changes[1] or "REVOKE pg_monitor" in statement)
                self.assertEqual([changes[1]] * 2, [changes[2], changes[3]])

    def test_a_password_is_stored_alike_and_travels_as_its_verifier(self):
        secret = "in clear 4711"
        self.on(2, f"BEGIN; CREATE ROLE keeper LOGIN PASSWORD '{secret}'; SAVEPOINT s; ALTER ROLE keeper PASSWORD '{secret}!'; ROLLBACK TO s; COMMIT")
        verifier = self.same("SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper'")[0]
        self.assertTrue(verifier.startswith("SCRAM-SHA-256$"))
        pool = b""
        for path in glob.glob(os.path.join(self.cluster.pool_dir(), "*")):
            with open(path, "rb") as file:
                pool += file.read()
        self.assertIn(verifier.encode(), pool)  # else the next line says nothing
        self.assertNotIn(secret.encode(), pool)

    def test_privileges_hold_on_all(self):
        self.on(1, "CREATE ROLE reader; CREATE TABLE guarded (a int, b int) USING gcl; INSERT INTO guarded VALUES (1, 2); CREATE SEQUENCE guarded_s;"
                   "GRANT SELECT (a) ON guarded TO reader; GRANT USAGE ON SEQUENCE guarded_s TO reader; CREATE FUNCTION guarded_f() RETURNS int LANGUAGE sql AS 'SELECT 1';"
                   "REVOKE EXECUTE ON FUNCTION guarded_f FROM PUBLIC")
        for k in (1, 2, 3):
            self.assertEqual(["1"], self.on(k, "SET SESSION AUTHORIZATION reader; SELECT a FROM guarded"))
            self.refused("42501", k, "SET SESSION AUTHORIZATION reader; SELECT b FROM guarded")
            self.refused("42501", k, "SET SESSION AUTHORIZATION reader; SELECT guarded_f()")
            self.on(k, "SET SESSION AUTHORIZATION reader; SELECT nextval('guarded_s')")
        self.refused("2BP01", 2, "CREATE ROLE passing; BEGIN; GRANT SELECT ON guarded TO passing; DROP ROLE passing")
        self.refused("2BP01", 3, "DROP ROLE reader")
        self.on(2, "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader")
        self.on(3, "CREATE TABLE by_default (a int) USING gcl")
        for k in (1, 2, 3):
            self.on(k, "SET SESSION AUTHORIZATION reader; SELECT * FROM by_default")
        self.on(3, "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM reader; DROP TABLE guarded, by_default; DROP OWNED BY reader; DROP ROLE reader, passing")

    def test_owned_objects(self):
        self.on(1, "CREATE ROLE old_owner; CREATE ROLE new_owner; GRANT CREATE ON SCHEMA public TO old_owner, new_owner; SET ROLE old_owner;"
                   "CREATE TABLE owned (id serial PRIMARY KEY) USING gcl; CREATE TABLE owned_too (id int REFERENCES owned) USING gcl; CREATE VIEW owned_v AS SELECT id FROM owned")
        for k in (1, 2, 3):
            self.on(k, f"SET ROLE old_owner; CREATE TABLE mine_{k} (a int) USING heap")
        who = "SELECT relname, relowner::regrole FROM pg_class WHERE relname ~ '^(owned|mine)' AND relkind <> 'i' ORDER BY 1"
        self.on(2, "BEGIN; REASSIGN OWNED BY old_owner TO new_owner; ROLLBACK")
        self.assertEqual({"old_owner"}, {row.split("|")[1] for k in (1, 2, 3) for row in self.on(k, who)})
        self.on(2, "REASSIGN OWNED BY old_owner TO new_owner")
        self.assertEqual({"new_owner"}, {row.split("|")[1] for k in (1, 2, 3) for row in self.on(k, who)})
        self.assertEqual(5, len(self.on(3, who)))
        self.refused("42501", 1, "SET ROLE old_owner; DROP OWNED BY new_owner")
        self.on(3, "INSERT INTO owned DEFAULT VALUES; DROP OWNED BY new_owner, old_owner; DROP ROLE new_owner, old_owner")
        self.assertEqual([], self.same(who))

    def test_a_local_object_of_another_primary_keeps_a_role(self):
        self.on(1, "CREATE ROLE settled")
        self.on(2, "CREATE TABLE house (a int) USING heap; ALTER TABLE house OWNER TO settled")
        self.assertIn("primary 2", self.refused("2BP01", 1, "DROP ROLE settled"))
        self.on(2, "DROP TABLE house; DROP ROLE settled")

    def test_a_role_that_may_make_roles_and_no_more(self):
        self.on(1, "CREATE ROLE maker CREATEROLE")
        self.on(2, "SET SESSION AUTHORIZATION maker; CREATE ROLE made PASSWORD 'p' ROLE maker; ALTER ROLE made PASSWORD 'q' VALID UNTIL '2001-01-01'")
        self.refused("42501", 3, "SET SESSION AUTHORIZATION maker; ALTER ROLE made SUPERUSER PASSWORD 'r'")
        self.on(3, "SET SESSION AUTHORIZATION maker; DROP ROLE made; RESET SESSION AUTHORIZATION; DROP ROLE maker")

    def test_rolled_back(self):
        before = self.same(ROLES)
        self.on(1, "BEGIN; CREATE ROLE never; GRANT pg_monitor TO never; ROLLBACK")
        self.refused("22012", 2, "DO $$ BEGIN CREATE ROLE never; PERFORM 1 / 0; END $$")
        self.assertEqual(before, self.same(ROLES))

    def test_session_user_is_the_coordinators(self):
        self.on(1, "CREATE ROLE visitor; GRANT CREATE ON DATABASE postgres TO visitor; GRANT visitor TO CURRENT_USER")
        self.on(2, "SET SESSION AUTHORIZATION visitor; CREATE SCHEMA AUTHORIZATION SESSION_USER")
        self.assertEqual(["visitor"], self.same("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'visitor'"))
        self.on(1, "DROP SCHEMA visitor; DROP OWNED BY visitor; DROP ROLE visitor")

    def beside(self, k, text, database="beside"):
        session = Session(f"{self.cluster.dsn(k)} dbname={database}")
        try:
            return session.run(text)
        finally:
            session.close()

    def test_from_a_database_without_the_extension(self):
        self.on(1, "CREATE DATABASE without")
        def without(k, text):
            return self.beside(k, text, "without")
        without(1, "CREATE ROLE of_all LOGIN PASSWORD 'a' IN ROLE pg_monitor; ALTER ROLE of_all SET work_mem = '1MB'; ALTER ROLE of_all IN DATABASE without SET work_mem = '2MB'")
        verifier = self.same("SELECT rolpassword FROM pg_authid WHERE rolname = 'of_all'")
        without(2, "ALTER ROLE of_all PASSWORD 'b' NOLOGIN; REVOKE pg_monitor FROM of_all; GRANT CREATE ON DATABASE postgres, without TO of_all; GRANT SET ON PARAMETER log_lock_waits TO of_all")
        self.assertNotEqual(verifier, self.same("SELECT rolpassword FROM pg_authid WHERE rolname = 'of_all'"))
        self.assertEqual(["f"], self.same("SELECT rolcanlogin FROM pg_authid WHERE rolname = 'of_all'"))
        self.assertEqual([], self.same("SELECT 1 FROM pg_auth_members WHERE member = 'of_all'::regrole"))
        self.assertEqual(2, len(self.same("SELECT datname, datacl FROM pg_database WHERE datacl::text ~ 'of_all' ORDER BY 1")))
        self.assertEqual(["log_lock_waits"], self.same("SELECT parname FROM pg_parameter_acl"))
        # A transaction with a savepoint, one that rolls back, and one with a statement that fails on another primary.
        without(3, "BEGIN; CREATE ROLE one; SAVEPOINT s; CREATE ROLE two; ROLLBACK TO s; GRANT one TO of_all; COMMIT")
        without(3, "BEGIN; DROP ROLE one; ROLLBACK")
        self.assertEqual(["of_all", "one"], self.same("SELECT rolname FROM pg_roles WHERE rolname IN ('of_all', 'one', 'two', 'four', 'five') ORDER BY 1"))
        self.on(2, "CREATE TABLE keeps (a int) USING heap; ALTER TABLE keeps OWNER TO one")
        with self.assertRaisesRegex(SqlError, "2BP01: primary 2"):
            without(1, "DROP ROLE one")
        self.on(2, "DROP TABLE keeps")
        # OWNED statements are about the database's objects; here they stay, and say so.
        self.assertIn("on this primary only", "".join(without(1, "DROP OWNED BY one")))
        # What a transaction does besides ties it to its database.
        with self.assertRaisesRegex(SqlError, "0A000"):
            without(1, "BEGIN; CREATE ROLE three; CREATE EXTENSION gcl")
        without(1, "BEGIN; CREATE EXTENSION gcl; CREATE ROLE three; CREATE TABLE of_three (a int) USING gcl; ALTER TABLE of_three OWNER TO three; COMMIT")
        self.assertEqual(["three"], self.beside(3, "SELECT relowner::regrole FROM pg_class WHERE relname = 'of_three'", "without"))
        without(2, "DROP EXTENSION gcl CASCADE; DROP ROLE three")
        self.cluster.stop(2)
        without(1, "DROP ROLE one; CREATE ROLE four; ALTER ROLE of_all RENAME TO five; ALTER ROLE five PASSWORD 'c'")
        self.cluster.start(2)
        self.connect()
        self.assertEqual(["five", "four"], self.same("SELECT rolname FROM pg_roles WHERE rolname IN ('of_all', 'one', 'two', 'four', 'five') ORDER BY 1"))
        self.on(3, "REVOKE ALL ON DATABASE postgres, without FROM five; REVOKE ALL ON PARAMETER log_lock_waits FROM five; DROP ROLE four, five; DROP DATABASE without")

    def test_transactions_on_roles_come_one_after_the_other_in_all_databases(self):
        self.on(1, "CREATE DATABASE elsewhere")
        one, two = self.cluster.session(1), Session(f"{self.cluster.dsn(2)} dbname=elsewhere")
        for coordinator in (one, two):
            self.addCleanup(coordinator.close)
        one.run("BEGIN; CREATE ROLE the_first")
        two.run("SET lock_timeout = '200ms'")
        for statement in ("CREATE ROLE the_second", "CREATE DATABASE another"):
            with self.assertRaisesRegex(SqlError, "55P03"):
                two.run(statement)
        with self.assertRaisesRegex(SqlError, "55P03"):  # nor DDL of a database, which may be about a role
            self.on(3, "SET lock_timeout = '200ms'; CREATE TABLE not_now (a int) USING gcl")
        two.run("SET lock_timeout = 0")
        pid = two.pid()
        two.send("CREATE ROLE the_second")
        eventually(lambda: self.on(2, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND (wait_event_type = 'Lock' OR wait_event = 'GclDdlLock')") == ["1"])
        self.assertTrue(two.waits())
        one.run("COMMIT")
        two.result()
        two.close()
        self.on(3, "DROP ROLE the_first, the_second; DROP DATABASE elsewhere")

    def test_roles_outlive_the_database_they_were_made_in(self):
        self.on(1, "CREATE DATABASE shortlived")
        self.beside(1, "CREATE EXTENSION gcl", "shortlived")
        self.cluster.stop(3)
        self.beside(1, "CREATE ROLE long_lived; CREATE TABLE t (a int) USING gcl", "shortlived")
        self.on(1, "DROP DATABASE shortlived; CREATE TABLE of_long_lived (a int) USING gcl; ALTER TABLE of_long_lived OWNER TO long_lived")
        self.cluster.start(3)
        self.connect()
        self.assertEqual(["long_lived"], self.same("SELECT relowner::regrole FROM pg_class WHERE relname = 'of_long_lived'"))
        self.on(2, "DROP TABLE of_long_lived; DROP ROLE long_lived")

    def test_another_locale_or_encoding_is_no_obstacle(self):
        self.on(1, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        self.beside(2, "CREATE ROLE plain_name", "latin")
        self.same("SELECT oid FROM pg_roles WHERE rolname = 'plain_name'")
        with self.assertRaisesRegex(SqlError, "0A000"):
            self.beside(2, "SET client_encoding = 'UTF8'; CREATE ROLE \"näme\"", "latin")
        with self.assertRaisesRegex(SqlError, "55000"):
            self.beside(2, "ALTER ROLE plain_name NOLOGIN; CREATE EXTENSION gcl", "latin")
        self.on(3, "DROP ROLE plain_name; DROP DATABASE latin")

    def test_local_administration(self):
        self.on(1, "CREATE ROLE nobody_much CREATEROLE")
        with self.assertRaisesRegex(SqlError, "42501"):
            self.on(1, "SET SESSION AUTHORIZATION nobody_much; SET gcl.local_administration = on")
        self.on(2, "SET gcl.local_administration = on; CREATE ROLE of_two")
        self.assertEqual([[], ["of_two"], []], [self.on(k, "SELECT rolname FROM pg_roles WHERE rolname = 'of_two'") for k in (1, 2, 3)])
        self.refused("42704", 2, "ALTER ROLE of_two LOGIN")
        self.on(2, "SET gcl.local_administration = on; DROP ROLE of_two")
        self.on(3, "DROP ROLE nobody_much")

    def test_one_that_was_away_catches_up_in_the_order_of_all_databases(self):
        self.on(1, "CREATE DATABASE beside")
        beside = self.beside
        beside(1, "CREATE EXTENSION gcl")
        self.cluster.stop(3)
        self.on(1, "CREATE ROLE comes LOGIN PASSWORD 'a'; CREATE TABLE of_comes (a int) USING gcl; ALTER TABLE of_comes OWNER TO comes")
        beside(2, "CREATE TABLE in_beside (a int) USING gcl; ALTER TABLE in_beside OWNER TO comes")
        self.on(2, "DROP TABLE of_comes")
        beside(1, "DROP TABLE in_beside; DROP ROLE comes; CREATE ROLE goes")
        self.on(1, "CREATE ROLE comes; GRANT goes TO comes; ALTER ROLE comes PASSWORD 'b'; CREATE TABLE of_comes (a int) USING gcl; ALTER TABLE of_comes OWNER TO comes")
        self.cluster.start(3)
        self.connect()
        self.assertIn("comes", "".join(self.same(ROLES)))
        self.on(3, "DROP TABLE of_comes; DROP ROLE comes")
        beside(3, "DROP ROLE goes")
        self.on(1, "DROP DATABASE beside")


if __name__ == "__main__":
    unittest.main(verbosity=2)
