"""DDL run on one primary is done on all when the client hears of it, and leaves no trace when it is rolled back."""
import os
import statistics
import unittest

from harness import Cluster, Session, SqlError, eventually

SHAPE = """SELECT c.oid, c.relname, c.relkind, am.amname, c.reltype, c.relnatts FROM pg_class c
           LEFT JOIN pg_am am ON am.oid = c.relam WHERE c.relname LIKE '{}%' ORDER BY c.relname"""


class Ddl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))

    def tearDown(self):
        self.same_everywhere("SELECT gcl_ddl_fingerprint()")

    def same_everywhere(self, query):
        first, *others = self.cluster.everywhere(query)
        for k, answer in enumerate(others, 2):
            self.assertEqual(first, answer, f"primary {k} differs from primary 1: {query}")
        return first

    def test_create_table_and_indexes_have_the_same_oids(self):
        self.cluster.sql(2, "CREATE TABLE shape_a (id int PRIMARY KEY, v text UNIQUE, w int) USING gcl")
        self.cluster.sql(3, "CREATE INDEX shape_a_w ON shape_a (w DESC, v)")
        self.assertEqual(4, len(self.same_everywhere(SHAPE.format("shape_a"))))
        self.same_everywhere("SELECT oid, conname, contype, conindid FROM pg_constraint WHERE conname LIKE 'shape%' ORDER BY 1")
        self.cluster.sql(1, "INSERT INTO shape_a VALUES (1, 'one', 10), (2, 'two', 20)")
        for answer in self.cluster.everywhere("SET enable_seqscan = off; SELECT id FROM shape_a WHERE w > 15"):
            self.assertEqual(["2"], answer)

    def test_index_built_on_one_primary_serves_all(self):
        self.cluster.sql(1, "CREATE TABLE built (id int, v int) USING gcl")
        self.cluster.sql(2, "INSERT INTO built SELECT i, i % 100 FROM generate_series(1, 20000) i")
        self.cluster.sql(3, "CREATE INDEX built_v ON built (v)")
        for answer in self.cluster.everywhere("SET enable_seqscan = off; SELECT count(*), sum(id) FROM built WHERE v = 42"):
            self.assertEqual([f"200|{sum(range(42, 20000, 100))}"], answer)

    def test_an_older_snapshot_on_another_primary_does_not_use_a_new_index(self):
        self.cluster.sql(1, "CREATE TABLE broken (id int PRIMARY KEY, v int) USING gcl")
        self.cluster.sql(1, "INSERT INTO broken VALUES (1, 10), (2, 20)")
        older = self.cluster.session(2)
        older.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM broken")
        # The update stays on its page: the index gets an entry for the new version only.
        self.cluster.sql(1, "UPDATE broken SET v = 11 WHERE id = 1")
        self.cluster.sql(1, "CREATE INDEX broken_v ON broken (v)")
        self.assertEqual(["t"], self.same_everywhere("SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'broken_v'::regclass"))
        older.run("SET enable_seqscan = off")
        self.assertEqual(["1"], older.run("SELECT id FROM broken WHERE v = 10"))
        self.assertEqual([], older.run("SELECT id FROM broken WHERE v = 11"))
        older.run("COMMIT")
        self.assertEqual(["1"], older.run("SELECT id FROM broken WHERE v = 11"))
        self.assertIn("Index", older.run("EXPLAIN SELECT id FROM broken WHERE v = 11")[0])

    def test_drop_reaches_all(self):
        self.cluster.sql(1, "CREATE TABLE gone (id int PRIMARY KEY) USING gcl")
        self.cluster.sql(2, "DROP TABLE gone")
        self.assertEqual([], self.same_everywhere(SHAPE.format("gone")))

    def test_truncate_reaches_all(self):
        self.cluster.sql(1, "CREATE TABLE emptied (id int PRIMARY KEY) USING gcl")
        self.cluster.sql(1, "INSERT INTO emptied SELECT generate_series(1, 1000)")
        self.cluster.sql(2, "TRUNCATE emptied")
        self.assertEqual(["0"], self.same_everywhere("SELECT count(*) FROM emptied"))
        self.cluster.sql(3, "INSERT INTO emptied VALUES (1)")
        self.assertEqual(["1"], self.same_everywhere("SELECT count(*) FROM emptied"))

    def test_rollback_leaves_no_trace(self):
        session = self.cluster.session(2)
        session.run("BEGIN; CREATE TABLE undone (id int PRIMARY KEY) USING gcl; INSERT INTO undone VALUES (1)")
        session.run("ROLLBACK")
        self.assertEqual([], self.same_everywhere(SHAPE.format("undone")))
        self.cluster.sql(3, "CREATE TABLE undone (id int) USING gcl")
        self.assertEqual(1, len(self.same_everywhere(SHAPE.format("undone"))))

    def test_savepoint_rolled_back_is_left_out(self):
        self.cluster.sql(1, "BEGIN; CREATE TABLE half_a (id int) USING gcl; SAVEPOINT s;"
                            "CREATE TABLE half_b (id int) USING gcl; ROLLBACK TO s; COMMIT")
        self.assertEqual(1, len(self.same_everywhere(SHAPE.format("half_"))))

    def test_failed_statement_leaves_no_trace(self):
        self.cluster.sql(1, "CREATE TABLE twice (id int) USING gcl")
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(2, "CREATE TABLE twice (id int) USING gcl")
        self.assertEqual("42P07", caught.exception.state)
        self.cluster.sql(2, "INSERT INTO twice VALUES (1), (1)")
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(3, "CREATE UNIQUE INDEX twice_id ON twice (id)")
        self.assertEqual("23505", caught.exception.state)
        self.assertEqual(1, len(self.same_everywhere(SHAPE.format("twice"))))

    def test_concurrent_ddl_from_all_primaries(self):
        sessions = {k: self.cluster.session(k) for k in (1, 2, 3)}
        for i in range(3):
            for k, session in sessions.items():
                session.send(f"CREATE TABLE many_{k}_{i} (id int PRIMARY KEY) USING gcl")
            for session in sessions.values():
                session.result(60)
        self.assertEqual(18, len(self.same_everywhere(SHAPE.format("many_"))))

    def refused(self, state, k, text):
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(k, text)
        self.assertEqual(state, caught.exception.state)

    def test_what_depends_on_a_local_table_stays_local(self):
        self.cluster.sql(2, "CREATE TABLE mine (a int) USING heap; CREATE TABLE ours (a int) USING gcl; CREATE VIEW mine_view AS SELECT m.a FROM mine m, ours;"
                            "CREATE VIEW mine_too AS SELECT * FROM mine_view; CREATE FUNCTION mine_f(mine) RETURNS int LANGUAGE sql AS 'SELECT 1';"
                            "COMMENT ON VIEW mine_too IS 'here'; GRANT SELECT ON mine_view TO PUBLIC; ALTER VIEW mine_view RENAME TO mine_seen;"
                            "ALTER FUNCTION mine_f COST 2; CREATE OR REPLACE VIEW mine_too AS SELECT a, 1 AS b FROM mine_seen; CREATE TEMP VIEW mine_temp AS SELECT a FROM ours")
        count = "SELECT count(*) FROM pg_class WHERE relname LIKE 'mine%' UNION ALL SELECT count(*) FROM pg_proc WHERE proname = 'mine_f'"
        self.assertEqual([["0", "0"], ["3", "1"], ["0", "0"]], self.cluster.everywhere(count))
        for statement in ("CREATE TABLE theirs (a mine) USING gcl", "CREATE TABLE theirs (a mine[]) USING gcl",
                          "CREATE UNLOGGED SEQUENCE mine_s; ALTER TABLE ours ALTER a SET DEFAULT nextval('mine_s')",
                          "DROP VIEW mine_too, ours_view", "CREATE SCHEMA mixed CREATE TABLE t (a int)"):
            with self.subTest(statement):
                self.cluster.sql(2, "CREATE OR REPLACE VIEW ours_view AS SELECT a FROM ours")
                self.refused("0A000", 2, statement)
        self.cluster.sql(2, "DROP VIEW mine_too; DROP FUNCTION mine_f; DROP VIEW mine_seen; DROP TABLE mine")

    def test_what_is_replaced_stays_whose_it_was(self):
        self.cluster.sql(1, "CREATE TABLE all_have (a int) USING gcl; CREATE VIEW all_see AS SELECT a FROM all_have;"
                            "CREATE FUNCTION all_call(int) RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM all_have; END;"
                            "CREATE TABLE one_has (a int) USING heap; CREATE VIEW one_sees AS SELECT a FROM one_has;"
                            "CREATE FUNCTION one_calls(int, OUT n bigint) BEGIN ATOMIC SELECT count(*) FROM one_has; END")
        self.refused("0A000", 1, "CREATE OR REPLACE VIEW all_see AS SELECT a FROM one_has")
        self.refused("0A000", 1, "CREATE OR REPLACE VIEW one_sees AS SELECT a FROM all_have")
        self.refused("0A000", 1, "CREATE OR REPLACE FUNCTION all_call(int) RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM one_has; END")
        self.refused("0A000", 1, "CREATE OR REPLACE FUNCTION one_calls(int, OUT n bigint) BEGIN ATOMIC SELECT count(*) FROM all_have; END")
        self.cluster.sql(2, "CREATE OR REPLACE VIEW all_see AS SELECT a FROM all_have WHERE a > 0;"
                            "CREATE OR REPLACE FUNCTION all_call(int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
        self.cluster.sql(1, "CREATE OR REPLACE VIEW one_sees AS SELECT a FROM one_has WHERE a > 0; DROP VIEW one_sees;"
                            "CREATE OR REPLACE FUNCTION one_calls(int, OUT n bigint) BEGIN ATOMIC SELECT 1 + count(*) FROM one_has; END;"
                            "DROP FUNCTION one_calls; DROP VIEW all_see; DROP FUNCTION all_call")

    def test_what_is_altered_stays_shared(self):
        self.cluster.sql(1, "CREATE UNLOGGED SEQUENCE own_s; CREATE TABLE own (a int) USING heap;"
                            "CREATE FUNCTION own_check(int, own DEFAULT NULL) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';"
                            "CREATE DOMAIN kept AS int; CREATE TABLE kept_t (a int, b kept) USING gcl; CREATE VIEW kept_v AS SELECT a FROM kept_t;"
                            "CREATE TYPE kept_c AS (a int); CREATE TABLE kept_p (p kept_c) USING gcl; CREATE TABLE own_typed OF kept_c USING heap;"
                            "CREATE FUNCTION kept_f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE DOMAIN bare AS int;"
                            "CREATE OPERATOR ==@ (FUNCTION = int4eq, LEFTARG = int, RIGHTARG = int)")
        estimate = "CREATE FUNCTION pg_temp.own_sel(internal, oid, internal, int) RETURNS float8 LANGUAGE internal AS 'eqsel';"
        for statement in ("ALTER DOMAIN kept SET DEFAULT nextval('own_s')", "ALTER DOMAIN bare SET DEFAULT nextval('own_s')",
                          "ALTER DOMAIN kept ADD CHECK (own_check(VALUE))", "ALTER DOMAIN bare ADD CHECK (own_check(VALUE))",
                          "ALTER VIEW kept_v ALTER a SET DEFAULT nextval('own_s')",
                          "CREATE RULE r AS ON INSERT TO kept_v DO INSTEAD INSERT INTO own VALUES (NEW.a)",
                          "ALTER TYPE kept_c RENAME ATTRIBUTE a TO z CASCADE",
                          estimate + "ALTER OPERATOR ==@ (int, int) SET (RESTRICT = pg_temp.own_sel)",
                          estimate + "CREATE OPERATOR <=@ (FUNCTION = int4le, LEFTARG = int, RIGHTARG = int, RESTRICT = pg_temp.own_sel);"
                                     "ALTER OPERATOR <=@ (int, int) SET (RESTRICT = NONE)"):
            with self.subTest(statement):
                self.refused("0A000", 1, statement)
        self.cluster.sql(1, "INSERT INTO kept_t (a) VALUES (1)")
        self.cluster.sql(2, "INSERT INTO kept_t (a) VALUES (1)")
        self.assertEqual(["1|", "1|"], self.same_everywhere("SELECT a, b FROM kept_t"))
        self.same_everywhere("SELECT (p).a FROM kept_p")
        self.cluster.sql(1, "DROP TABLE own_typed")
        self.cluster.sql(1, "ALTER DOMAIN kept SET DEFAULT 3; ALTER VIEW kept_v ALTER a SET DEFAULT 4; ALTER TYPE kept_c RENAME ATTRIBUTE a TO z CASCADE;"
                            "ALTER FUNCTION kept_f() COST 7; ALTER DOMAIN bare ADD CHECK (VALUE > 0)")
        self.same_everywhere("SELECT procost, typdefault FROM pg_proc, pg_type WHERE proname = 'kept_f' AND typname = 'kept'")
        self.cluster.sql(1, "DROP TABLE kept_p, kept_t CASCADE; DROP TYPE kept_c; DROP DOMAIN kept; DROP DOMAIN bare; DROP FUNCTION kept_f;"
                            "DROP FUNCTION own_check; DROP SEQUENCE own_s; DROP TABLE own; DROP OPERATOR ==@ (int, int)")

    def test_what_is_local_is_altered_here(self):
        self.cluster.sql(2, "CREATE TABLE own (a int) USING heap; CREATE FUNCTION own_add(own, own) RETURNS bool LANGUAGE sql AS 'SELECT true';"
                            "CREATE OPERATOR <=@ (FUNCTION = own_add, LEFTARG = own, RIGHTARG = own); CREATE DOMAIN own_d AS own;"
                            "ALTER FUNCTION own_add COST 2; ALTER OPERATOR <=@ (own, own) SET (RESTRICT = NONE);"
                            "ALTER DOMAIN own_d ADD CONSTRAINT c CHECK ((VALUE).a > 0); ALTER DOMAIN own_d SET DEFAULT NULL;"
                            "ALTER DOMAIN own_d RENAME CONSTRAINT c TO d; COMMENT ON CONSTRAINT d ON DOMAIN own_d IS 'here'")
        own = "SELECT count(*) FROM pg_proc WHERE proname = 'own_add' AND procost = 2"
        self.assertEqual([["0"], ["1"], ["0"]], self.cluster.everywhere(own))
        self.cluster.sql(2, "CREATE TYPE pg_temp.own_e AS ENUM ('a'); ALTER TYPE pg_temp.own_e ADD VALUE 'b';"
                            "CREATE TEXT SEARCH CONFIGURATION pg_temp.own_ts (COPY = simple);"
                            "ALTER TEXT SEARCH CONFIGURATION pg_temp.own_ts DROP MAPPING FOR word; DROP TABLE own CASCADE")

    def test_a_constraint_of_a_domain_waits_for_its_columns_alone(self):
        self.cluster.sql(1, "SET default_table_access_method = gcl; CREATE TABLE apart (a int); CREATE DOMAIN narrow AS int; CREATE DOMAIN narrower AS narrow;"
                            "CREATE TABLE wide (a narrower) PARTITION BY LIST (a); CREATE TABLE wide_1 PARTITION OF wide FOR VALUES IN (1);"
                            "CREATE VIEW wide_v AS SELECT a FROM wide; CREATE TABLE wide_up (a narrow); CREATE TABLE wide_down () INHERITS (wide_up);"
                            "CREATE TABLE once (a narrow); ALTER TABLE once DROP COLUMN a")
        altering, writers = self.cluster.session(2), {k: self.cluster.session(k) for k in (1, 2, 3)}
        for kind in ("narrow[]", "narrow_pair", "narrower[]"):  # the server reads no rows of these
            self.cluster.sql(1, f"CREATE TYPE narrow_pair AS (x int, y narrow); CREATE TABLE boxed (a {kind}) USING gcl")
            writers[3].run("BEGIN; LOCK TABLE boxed IN ROW EXCLUSIVE MODE")
            self.refused("0A000", 2, "SET lock_timeout = '20s'; ALTER DOMAIN narrow ADD CHECK (VALUE > 0)")
            writers[3].run("COMMIT")
            self.cluster.sql(1, "DROP TABLE boxed; DROP TYPE narrow_pair")
        for statement in ("ADD CONSTRAINT c CHECK (VALUE > 0)", "DROP CONSTRAINT c; ALTER DOMAIN narrow ADD CONSTRAINT c CHECK (VALUE > 0) NOT VALID",
                          "VALIDATE CONSTRAINT c", "SET NOT NULL"):
            altering.run(f"BEGIN; ALTER DOMAIN narrow {statement}")
            for k, writer in writers.items():
                with self.subTest(statement=statement, primary=k):
                    writer.run("SET lock_timeout = '25s'; INSERT INTO apart VALUES (1); INSERT INTO once DEFAULT VALUES")
            if "NOT VALID" not in statement:
                for table in ("wide_1", "wide_up", "wide_down"):
                    with self.subTest(statement=statement, table=table):
                        writers[1].run("SET lock_timeout = '200ms'")
                        with self.assertRaises(SqlError) as caught:
                            writers[1].run(f"INSERT INTO {table} VALUES (1)")
                        self.assertEqual("55P03", caught.exception.state)
            altering.run("COMMIT")
        for k, writer in writers.items():
            with self.assertRaises(SqlError) as caught:
                writer.run("RESET lock_timeout; INSERT INTO wide_down VALUES (-1)")
            self.assertEqual("23514", caught.exception.state)
        self.cluster.sql(3, "DROP TABLE wide, wide_up, wide_down, once, apart CASCADE; DROP DOMAIN narrow CASCADE")

    def test_ddl_of_a_plain_user(self):
        self.cluster.sql(1, "CREATE ROLE plain")
        self.cluster.sql(1, "GRANT CREATE ON SCHEMA public TO plain")
        self.cluster.sql(3, "SET ROLE plain; CREATE TYPE plain_mood AS ENUM ('a', 'b'); CREATE TABLE plain_t (id int PRIMARY KEY, m plain_mood, w float8) USING gcl;"
                            "INSERT INTO plain_t VALUES (1, 'b'); ALTER TABLE plain_t ADD r float8 DEFAULT random(); GRANT SELECT ON plain_t TO PUBLIC")
        self.assertEqual(["plain|plain"], self.same_everywhere("SELECT relowner::regrole, typowner::regrole FROM pg_class, pg_type WHERE relname = 'plain_t' AND typname = 'plain_mood'"))
        self.same_everywhere("SELECT * FROM plain_t")
        self.refused("42501", 1, "SET ROLE pg_monitor; ALTER TABLE plain_t ADD COLUMN z int")

    def test_settings_that_say_what_a_statement_means_travel(self):
        self.cluster.sql(2, """SET timezone_abbreviations = 'Australia'; CREATE TABLE meant (a timestamptz DEFAULT '2000-01-01 12:00 EST') USING gcl""")
        self.assertEqual(["2000-01-01 02:00:00+00"], self.same_everywhere("SET TimeZone = UTC; INSERT INTO meant DEFAULT VALUES; SELECT max(a) FROM meant"))
        self.cluster.sql(3, "SET allow_system_table_mods = on; CREATE TABLE pg_catalog.meant_too (a int) USING gcl")
        self.cluster.sql(1, "SET allow_system_table_mods = on; DROP TABLE meant, pg_catalog.meant_too")

    def test_no_setting_of_a_server_or_database_stops_ddl(self):
        plain = """SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE, ISOLATION LEVEL READ COMMITTED, NOT DEFERRABLE; SET statement_timeout = 0;
                   SET lock_timeout = 0; SET row_security = on; SET ROLE NONE;"""
        odd = ("default_transaction_read_only = on", "default_transaction_isolation = serializable", "default_transaction_deferrable = on",
               "row_security = off", "lock_timeout = '1ms'", "statement_timeout = '50ms'")

        def sql(k, text):
            """In a session of the test's own, which has as long as it needs from its first statement on."""
            session = Session(f"{self.cluster.dsn(k)} options='-c statement_timeout=0 -c lock_timeout=0'")
            try:
                return session.run(text)
            finally:
                session.close()

        sql(1, "CREATE ROLE weak; CREATE TABLE odd (a int) USING gcl")
        try:
            sql(1, "BEGIN; " + "".join(f"ALTER DATABASE postgres SET {setting}; " for setting in (*odd, "role = weak")) + "COMMIT")
            sql(2, plain + "; ".join(f"ALTER SYSTEM SET {setting}" for setting in odd) + "; SELECT pg_reload_conf()")
            for k in (1, 2, 3):
                sql(k, plain + f"CREATE TABLE odd_{k} (a int PRIMARY KEY) USING gcl; ALTER TABLE odd ADD c_{k} timestamptz DEFAULT now()")
            self.cluster.stop(2)
            sql(1, plain + "ALTER TABLE odd ADD d int DEFAULT 7; DROP TABLE odd_1, odd_2, odd_3")
            self.cluster.start(2)
        finally:
            sql(2, plain + "ALTER SYSTEM RESET ALL; SELECT pg_reload_conf(); ALTER DATABASE postgres RESET ALL")
            eventually(lambda: sql(2, "SHOW row_security") == ["on"])  # its postmaster has read the file
        self.assertEqual(["5"], self.same_everywhere("SELECT relnatts FROM pg_class WHERE relname ~ '^odd'"))
        self.cluster.sql(1, "DROP ROLE weak; DROP TABLE odd")

    def test_a_database_that_lets_nobody_in_has_ddl_all_the_same(self):
        self.cluster.sql(2, "CREATE DATABASE closed")
        one, two = (Session(f"{self.cluster.dsn(k)} dbname=closed") for k in (1, 2))
        self.addCleanup(one.close)
        one.run("CREATE EXTENSION gcl")
        two.run("CREATE TABLE t (a int) USING gcl")
        two.close()
        for k in (2, 3):
            self.cluster.sql(k, "ALTER DATABASE closed ALLOW_CONNECTIONS false")
        for k in (2, 3):  # the next ones have to connect
            self.cluster.sql(k, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gcl ddl apply'")
        eventually(lambda: all("gcl ddl apply" not in self.cluster.workers(k) for k in (2, 3)))
        one.run("CREATE INDEX ON t (a)")
        self.cluster.stop(3)
        one.run("ALTER TABLE t ADD b int; INSERT INTO t VALUES (1, 2)")
        self.cluster.start(3)
        self.cluster.sql(3, "ALTER DATABASE closed ALLOW_CONNECTIONS true")
        three = Session(f"{self.cluster.dsn(3)} dbname=closed")
        self.assertEqual(["1|2"], three.run("SELECT * FROM t"))
        three.run("DROP EXTENSION gcl CASCADE")
        three.close()

    def test_a_rewrite_waits_for_writers_of_all_primaries(self):
        self.cluster.sql(1, "CREATE TABLE changing (id int PRIMARY KEY, v int) USING gcl; INSERT INTO changing SELECT i, i FROM generate_series(1, 50) i")
        writer, coordinator = self.cluster.session(3), self.cluster.session(1)
        writer.run("BEGIN; INSERT INTO changing VALUES (51, 51)")
        coordinator.send("ALTER TABLE changing ALTER v TYPE text USING 'v' || v")
        self.assertTrue(coordinator.blocked())
        writer.run("COMMIT")
        coordinator.result()
        self.assertEqual(["51|v51"], self.same_everywhere("SELECT count(*), max(v) FILTER (WHERE id = 51) FROM changing"))
        self.cluster.sql(2, "INSERT INTO changing VALUES (52, 'x'); UPDATE changing SET v = 'y' WHERE id = 51")
        self.assertEqual(["51|y"], self.same_everywhere("SET enable_seqscan = off; SELECT * FROM changing WHERE id = 51"))
        self.assertEqual(["0"], self.same_everywhere("SELECT relfrozenxid FROM pg_class WHERE relname = 'changing'"))

    def test_a_stopped_primary_catches_up(self):
        self.cluster.sql(1, "CREATE TABLE before_stop (id int PRIMARY KEY) USING gcl")
        self.cluster.stop(3)
        self.cluster.sql(1, "CREATE TABLE while_away (id int PRIMARY KEY, v text) USING gcl")
        self.cluster.sql(2, "INSERT INTO while_away VALUES (1, 'x')")
        # What came and went has no pages any more when it is replayed, or they are another's.
        for table in ("came", "replaced"):
            self.cluster.sql(1, f"CREATE TABLE {table} (id int PRIMARY KEY, v text UNIQUE) USING gcl")
            self.cluster.sql(1, f"INSERT INTO {table} SELECT i, i FROM generate_series(1, 500) i")
            self.cluster.sql(2, f"CREATE INDEX ON {table} (v, id); ALTER TABLE {table} ADD COLUMN w int DEFAULT 1;"
                                f" ALTER TABLE {table} ALTER COLUMN w SET NOT NULL; ALTER TABLE {table} ADD CHECK (w > 0)")
        self.cluster.sql(1, "TRUNCATE replaced; INSERT INTO replaced VALUES (7, 'seven', 77)")
        self.cluster.sql(2, "DROP TABLE came")
        self.cluster.sql(2, "DROP TABLE before_stop")
        self.cluster.start(3)
        self.assertEqual(["1|x"], self.cluster.sql(3, "SELECT * FROM while_away"))
        self.assertEqual([], self.same_everywhere(SHAPE.format("before_stop")))
        self.assertEqual([], self.same_everywhere(SHAPE.format("came")))
        self.assertEqual(["7|seven|77"], self.same_everywhere("SET enable_seqscan = off; SELECT * FROM replaced WHERE v = 'seven'"))
        self.assertEqual(2, len(self.same_everywhere(SHAPE.format("while_away"))))

    def test_what_came_and_went_while_a_primary_was_away_does_not_stop_it(self):
        self.cluster.stop(3)
        self.cluster.sql(1, "CREATE TABLE passing (id int PRIMARY KEY, v int) USING gcl; INSERT INTO passing VALUES (1, 1);"
                            "CREATE INDEX ON passing (v); ALTER TABLE passing ALTER v TYPE text; ALTER TABLE passing ADD CHECK (id > 0)")
        self.cluster.sql(2, "ALTER TABLE passing ALTER id TYPE bigint, ALTER v SET NOT NULL; TRUNCATE passing; DROP TABLE passing")
        self.cluster.start(3)
        self.assertEqual([], self.same_everywhere(SHAPE.format("passing")))

    def test_a_cascade_says_what_it_takes_along_elsewhere(self):
        one, two, three = (self.cluster.session(k) for k in (1, 2, 3))
        one.run("CREATE SCHEMA falls; CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE falls.base (id int PRIMARY KEY) USING gcl; CREATE FUNCTION said() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        two.run("CREATE TABLE mine (m mood, n int DEFAULT said(), CHECK (n > 0)) USING heap; CREATE TABLE falls.mine (id serial PRIMARY KEY, CHECK (id > 0)) USING heap")
        three.run("CREATE TABLE other (id int) USING heap; CREATE VIEW both_tables AS SELECT id FROM falls.base JOIN other USING (id); CREATE VIEW of_all AS SELECT id FROM falls.base")
        said = one.run("DROP TYPE mood CASCADE")
        self.assertEqual(["column m of table mine"], self.notices(said, 2))
        self.assertEqual([], self.notices(said, 3))
        self.assertEqual(["default value for column n of table mine"], self.notices(one.run("DROP FUNCTION said() CASCADE"), 2))
        said = one.run("DROP SCHEMA falls CASCADE")
        self.assertEqual(["table falls.mine"], self.notices(said, 2))
        self.assertEqual(["view both_tables"], self.notices(said, 3))
        self.assertIn("drop cascades to", "".join(said))  # the server's own
        one.run("CREATE SCHEMA falls")
        two.run("DO $$ BEGIN FOR i IN 1..100 LOOP EXECUTE format('CREATE TABLE falls.t%s (a int) USING heap', i); END LOOP; END $$; CREATE TEMP TABLE nobodys (a int)")
        said = "".join(one.run("DROP SCHEMA falls CASCADE"))
        self.assertRegex(said, r"primary 2: .*table falls\.t\d+,.* and \d+ more")
        two.run("DROP TABLE mine")
        three.run("DROP TABLE other")

    def notices(self, lines, k):
        """What primary K has lost of its own."""
        said = "\n".join(lines)
        at = said.find(f"primary {k}: drop cascades to what is this primary's own: ")
        return [] if at < 0 else said[at:].split(": ", 2)[2].split("\n")[0].split(", ")

    def test_a_database_that_cannot_catch_up_keeps_only_itself_out(self):
        self.cluster.sql(1, "CREATE DATABASE beside")
        beside = [Session(f"{self.cluster.dsn(k)} dbname=beside") for k in (1, 2)]
        beside[0].run("CREATE EXTENSION gcl; CREATE TABLE t (a int) USING gcl")
        self.cluster.sql(1, "CREATE TABLE shared (id int PRIMARY KEY, v int) USING gcl; INSERT INTO shared SELECT i, i FROM generate_series(1, 500) i")
        self.cluster.sql(3, "CREATE TABLE in_the_way (v int); INSERT INTO in_the_way VALUES (3); UPDATE shared SET v = v; SELECT pg_stat_force_next_flush()")
        for setting in ("naptime = 1", "vacuum_threshold = 1", "vacuum_scale_factor = 0"):
            self.cluster.sql(3, f"ALTER SYSTEM SET autovacuum_{setting}")
        self.cluster.stop(3)
        log = f"{self.cluster.dir}/node3/log"
        size = os.path.getsize(log)
        self.cluster.sql(1, "CREATE TABLE in_the_way (v int) USING gcl; CREATE INDEX shared_v ON shared (v)")
        self.cluster.sql(2, "UPDATE shared SET v = v + 1000")
        self.cluster.ctl("start", self.cluster.dir, "--node", "3", check=False)
        self.assertEqual(["3"], self.cluster.sql(3, "SELECT v FROM in_the_way"))
        for statement in ("SELECT count(*) FROM shared", "INSERT INTO shared VALUES (0)", "VACUUM shared", "CREATE TABLE more (v int) USING gcl", "CREATE ROLE more"):
            with self.assertRaises(SqlError) as caught:
                self.cluster.sql(3, statement)
            self.assertEqual("55000", caught.exception.state, f"{statement}: {caught.exception}")
        # Primary 3's other database has all DDL of all primaries; the others' DDL in this one is done when it can be.
        beside.append(Session(f"{self.cluster.dsn(3)} dbname=beside"))
        for k, session in enumerate(beside, 1):
            session.run(f"CREATE TABLE t_{k} (a int) USING gcl; INSERT INTO t VALUES ({k})")
        self.assertEqual([["1|3"]] * 3, [session.run("SELECT min(a), max(a) FROM t") for session in beside])
        self.assertEqual(1, len({session.one("SELECT gcl_ddl_fingerprint()") for session in beside}))
        eventually(lambda: self.cluster.sql(2, "SELECT state FROM gcl_stat_ddl_log WHERE node = 3") == ["failing"])  # as it said last
        self.cluster.sql(2, "ALTER TABLE shared ADD w int DEFAULT 5")
        # Autovacuum fails, too: it would leave entries in the index that this primary does not know.
        eventually(lambda: "automatic vacuum of table" in self.text_from(log, size), 60)  # why it failed
        self.assertEqual(["t|0"], self.cluster.sql(3, "SELECT n_dead_tup >= 500, autovacuum_count FROM pg_stat_all_tables WHERE relname = 'shared'"))
        self.cluster.sql(3, "DROP TABLE in_the_way; ALTER SYSTEM RESET ALL; SELECT pg_reload_conf()")
        eventually(lambda: self.answers(3, "SELECT count(*) FROM in_the_way"), 60)
        self.assertEqual(["7|5"], self.same_everywhere("SET enable_seqscan = off; SELECT id, w FROM shared WHERE v = 1007"))
        beside[2].run("DROP EXTENSION gcl CASCADE")
        for session in beside:
            session.close()

    def text_from(self, path, position):
        with open(path, encoding="utf-8") as file:
            file.seek(position)
            return file.read()

    def answers(self, k, query):
        try:
            return self.cluster.sql(k, query) == ["0"]
        except SqlError:
            return False


class Cost(unittest.TestCase):
    def test_a_statement_costs_so_many_messages(self):
        cluster = self.enterContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        sessions = {k: cluster.session(k) for k in (1, 3)}
        for session in sessions.values():  # workers are there, and are idle
            for _ in range(3):
                session.run("CREATE TABLE warm (a int) USING gcl")
                session.run("DROP TABLE warm")
        sessions[1].run("CREATE TABLE t (a int PRIMARY KEY, b text, c int) USING gcl")
        sent = "SELECT counter, value FROM gcl_stat_counters() WHERE layer = 'ddl' AND counter LIKE '% sent'"
        created, locked = {"statement and prepare sent": 1, "commit sent": 1}, {"lock sent": 1, "statement and prepare sent": 1, "commit sent": 1}
        for k, statement, costs in (
                (1, "CREATE TABLE u (a int, b text, c int) USING gcl", created),
                (3, "CREATE TABLE v (a int, b text, c int) USING gcl", created),
                (1, "CREATE VIEW w AS SELECT a FROM t", created),
                (1, "ALTER TABLE t ADD COLUMN d int DEFAULT 7", locked),
                (3, "ALTER TABLE t ADD COLUMN e int DEFAULT 7", locked | {"lock sent": 2}),
                (3, "TRUNCATE t", locked | {"lock sent": 2}),
                (1, "INSERT INTO t VALUES (1)", {}), (1, "CREATE TEMP TABLE x (a int)", {})):
            with self.subTest(statement=statement, primary=k):
                before = dict(row.split("|") for row in sessions[k].run(sent))
                sessions[k].run(statement)
                after = dict(row.split("|") for row in sessions[k].run(sent))
                cost = {name: int(after[name]) - int(before[name]) for name in after if after[name] != before[name]}
                self.assertEqual(costs, cost)

    def test_every_answer_wakes_the_session_that_waits_for_it(self):
        cluster = self.enterContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        session = cluster.session(1)
        session.run("CREATE DOMAIN d AS int; CREATE TABLE t (a d) USING gcl; INSERT INTO t VALUES (1)")
        late = "SELECT value FROM gcl_stat_counters() WHERE layer = 'ddl' AND counter = 'answers found late'"
        before = int(session.one(late))
        for _ in range(200):
            for statement in ("ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE < 11)", "ALTER DOMAIN d DROP CONSTRAINT c",
                              "CREATE DOMAIN e AS int", "DROP DOMAIN e", "CREATE TABLE u (a int) USING gcl", "DROP TABLE u"):
                session.run(statement)
        # Now and then an answer comes when the process that wakes has had no processor for long.
        self.assertLess(int(session.one(late)) - before, 5)

    def test_a_statement_waits_for_one_fsync(self):
        cluster = self.enterContext(Cluster(primaries=3, settings=("autovacuum=off", "wal_writer_delay=10s", "fsync=on")))
        session = cluster.session(1)
        session.run("CREATE TABLE warm (a int) USING gcl")
        others, syncs, open_when_answered = [cluster.session(k) for k in (2, 3)], [], []

        def synced():
            session.run("SELECT pg_stat_force_next_flush()")
            return int(session.one("SELECT wal_sync FROM pg_stat_wal"))

        for i in range(30):
            before = synced()
            session.run(f"CREATE TABLE t_{i} (a int, b text, c int) USING gcl")
            open_when_answered += [look.one("SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()") for look in others]
            syncs.append(synced() - before)
        # A flush for each commit of the coordinator; others of its server's processes come in between now and then.
        self.assertEqual((1, 1), (min(syncs), statistics.median(syncs)), syncs)
        # The others' are durable later, with their positions, several at once: if that is not before this one looks.
        self.assertGreater(open_when_answered.count("t"), 15, open_when_answered)


if __name__ == "__main__":
    unittest.main(verbosity=2)
