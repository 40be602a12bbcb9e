"""Every kind of DDL is done on all primaries alike, stays on its coordinator, or is refused without a trace: no catalog differs silently."""
import unittest

from catalogs import Catalogs
from ddl_kinds import BASE, FORMS
from harness import Cluster, SqlError, eventually


# Whatever else a session can set: the other way round.
TURNED = """SELECT format('ALTER ROLE postgres SET %I = %L', name, CASE setting WHEN 'on' THEN 'off' ELSE 'on' END) FROM pg_settings
    WHERE vartype = 'bool' AND context IN ('user', 'superuser') AND name !~ '^(log|debug|trace|wal|transaction)_|^(jit_dump|zero_|ignore_|track_act)'"""
ODD = {"default_transaction_isolation": "serializable", "statement_timeout": "1ms", "lock_timeout": "1ms", "idle_session_timeout": "1ms",
       "idle_in_transaction_session_timeout": "1ms", "search_path": "nowhere", "timezone_abbreviations": "Australia", "DateStyle": "SQL, DMY",
       "IntervalStyle": "sql_standard", "TimeZone": "Asia/Tokyo", "extra_float_digits": "-15", "bytea_output": "escape", "xmloption": "document",
       "xmlbinary": "hex", "backslash_quote": "off", "restrict_nonsystem_relation_kind": "view", "role": "pg_monitor",
       "default_text_search_config": "pg_catalog.german", "session_authorization": "nobody_special", "session_replication_role": "local",
       "plpgsql.extra_errors": "all", "plpgsql.variable_conflict": "use_column", "force_parallel_mode": "regress", "client_min_messages": "error",
       "plan_cache_mode": "force_custom_plan", "constraint_exclusion": "on", "default_toast_compression": "lz4", "synchronous_commit": "off"}


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}
        cls.catalogs = {k: Catalogs(cls.cluster.session(k)) for k in (1, 2, 3)}
        cls.cluster.sql(1, BASE)
        # Sessions that connect from now on have odd settings: the workers that repeat what the sessions above do.
        one = cls.sessions[1]
        one.run("LOAD 'plpgsql'; CREATE ROLE nobody_special")
        cls.addClassCleanup(one.run, "RESET ALL; ALTER ROLE postgres RESET ALL; DROP ROLE nobody_special")
        odd = one.run(TURNED) + [f"ALTER ROLE postgres SET {name} = '{value}'" for name, value in ODD.items()]
        one.run("; ".join(["BEGIN", *odd, "COMMIT"]), 60)

    def outcome(self, coordinator, statement):
        session = self.sessions[coordinator]
        session.run("ROLLBACK; RESET ALL")
        state = None
        try:
            session.run(statement, 60)
        except SqlError as error:
            state = error.state
        session.run("ROLLBACK")
        changes = {k: catalogs.change() for k, catalogs in self.catalogs.items()}
        changed = [k for k in changes if changes[k]]
        if state:
            self.assertEqual({}, {k: changes[k] for k in changed}, f"{statement} failed and left a trace")
            return state
        if changed == []:
            return "nothing"
        if changed == [coordinator]:
            return "local"
        for k in changes:
            self.assertEqual(changes[coordinator], changes[k], f"primary {k} differs after: {statement}")
        return "everywhere"

    def test_every_kind(self):
        eventually(lambda: not any(s.run("SELECT FROM pg_stat_activity WHERE backend_type = 'gcl ddl apply'") for s in self.sessions.values()))
        for catalogs in self.catalogs.values():
            catalogs.remember()
        for i, (kind, statements) in enumerate(FORMS.items()):
            for statement, wanted in statements:
                with self.subTest(kind, statement=statement):
                    self.assertEqual(wanted, self.outcome(i % 3 + 1, statement))


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2))
        cls.one, cls.two = cls.cluster.session(1), cls.cluster.session(2)

    def fails(self, state, session, text):
        with self.assertRaises(SqlError) as caught:
            session.run(text)
        self.assertEqual(state, caught.exception.state)
        return str(caught.exception)

    def test_a_local_table_of_another_primary_is_in_the_way(self):
        self.two.run("CREATE TABLE taken (a int) USING heap")
        for clause in ("", "IF NOT EXISTS "):
            self.assertIn("primary 2", self.fails("42P07", self.one, f"CREATE TABLE {clause}taken (a int) USING gcl"))
        self.assertEqual([], self.one.run("SELECT 1 FROM pg_class WHERE relname = 'taken'"))
        self.one.run("CREATE TABLE IF NOT EXISTS taken (b int) USING heap; DROP TABLE taken")
        self.one.run("DROP TABLE IF EXISTS taken")
        self.assertEqual(["0"], self.two.run("SELECT count(*) FROM taken"))

    def test_two_primaries_create_the_same_name_at_once(self):
        for what in ("TABLE same (a int PRIMARY KEY) USING gcl", "SCHEMA same", "TYPE same_type AS (a int)", "SEQUENCE same_seq"):
            with self.subTest(what):
                self.one.run(f"BEGIN; CREATE {what}")
                self.two.send(f"CREATE {what}")
                self.assertTrue(self.two.blocked())
                self.one.run("COMMIT")
                with self.assertRaises(SqlError) as caught:
                    self.two.result()
                self.assertIn(caught.exception.state, ("42P07", "42P06", "42710"))
        fingerprints = [s.one("SELECT gcl_ddl_fingerprint()") for s in (self.one, self.two)]
        self.assertEqual(fingerprints[0], fingerprints[1])

    def test_what_vacuum_corrects_on_one_primary_does_not_stop_ddl(self):
        self.one.run("CREATE TABLE vacuumed (a int) USING gcl; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
                     "CREATE TRIGGER t BEFORE INSERT ON vacuumed FOR EACH ROW EXECUTE FUNCTION nothing(); DROP TRIGGER t ON vacuumed; VACUUM vacuumed")
        self.assertEqual("f", self.one.one("SELECT relhastriggers FROM pg_class WHERE relname = 'vacuumed'"))
        self.assertEqual("t", self.two.one("SELECT relhastriggers FROM pg_class WHERE relname = 'vacuumed'"))
        self.two.run("ALTER TABLE vacuumed ADD b int")

    def test_an_extension_of_one_primary_takes_nothing_along_that_is_everybodys(self):
        for session in (self.one, self.two):
            session.run("CREATE EXTENSION citext")
        self.one.run("CREATE VIEW leaning AS SELECT 'x'::citext = 'X' AS c")
        self.fails("2BP01", self.one, "DROP EXTENSION citext CASCADE")
        self.two.run("DROP VIEW leaning")
        self.one.run("DROP EXTENSION citext CASCADE")

    def test_what_each_primary_would_decide_for_itself_is_refused(self):
        self.fails("XX001", self.one, "CREATE DOMAIN made_at AS timestamptz DEFAULT timestamptz 'now'")
        self.fails("XX001", self.one, "CREATE DOMAIN made_at AS timestamptz CHECK (value <= timestamptz 'now')")
        self.one.run("CREATE DOMAIN made_at AS timestamptz DEFAULT now() CHECK (value <= now())")
        self.two.run("DROP DOMAIN made_at")

    def test_what_a_user_puts_before_the_catalogs_is_not_found(self):
        """With the rights of the owner of the function that does the DDL, anything could be done there."""
        self.one.run("""CREATE ROLE mallory LOGIN; GRANT pg_monitor TO mallory; CREATE FUNCTION noted() RETURNS boolean LANGUAGE plpgsql AS
            $$BEGIN PERFORM set_config('noted.by', current_setting('noted.by', true) || ' ' || current_user, false); RETURN true; END$$;
            CREATE FUNCTION ddl() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$BEGIN
            CREATE TYPE put_enum AS ENUM ('a'); CREATE DOMAIN put_domain AS int CHECK (value > 0);
            CREATE TABLE put (a int PRIMARY KEY, b put_enum, c put_domain, d text) USING gcl; INSERT INTO put VALUES (1);
            ALTER TABLE put ADD e timestamptz DEFAULT now(); CREATE VIEW put_view AS SELECT * FROM put; COMMENT ON TABLE put IS 'x';
            CREATE FUNCTION put_it() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE ROLE put_role; DROP ROLE put_role;
            DROP TABLE put CASCADE; DROP TYPE put_enum; DROP DOMAIN put_domain; DROP FUNCTION put_it(); END$$""")
        mallory = self.cluster.session(1)
        mallory.run("SET ROLE mallory; SET noted.by = 'nobody'; SET client_min_messages = error")
        views = mallory.run("""SELECT format('CREATE TEMP VIEW %1$I AS SELECT %2$s FROM pg_catalog.%1$I WHERE public.noted()', relname,
            string_agg(format(CASE atttypid WHEN 'anyarray'::regtype THEN '%1$I::text AS %1$I' ELSE '%I' END, attname), ', '))
            FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0
            WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') AND has_table_privilege(c.oid, 'SELECT') GROUP BY relname""")
        types = mallory.run("""SELECT format('CREATE DOMAIN pg_temp.%1$I AS pg_catalog.%1$I CHECK (public.noted())', typname) FROM pg_type
            WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0""")
        for made in (views, types):
            for statement in made:
                mallory.run(statement)
            mallory.run("SELECT public.ddl()")
            self.assertEqual("nobody", mallory.one("SELECT current_setting('noted.by')"))
        mallory.run("SELECT * FROM gcl_stat_relations; SELECT * FROM gcl_stat_pool; SELECT * FROM gcl_stat_hot_pages; SELECT * FROM gcl_stat_ddl")
        self.assertEqual("nobody", mallory.one("SELECT current_setting('noted.by')"))
        mallory.run("SELECT FROM pg_class")
        self.assertEqual("nobody mallory", mallory.one("SELECT current_setting('noted.by')")[:14])
        mallory.run("DISCARD TEMP")  # at its end, it would do so beside the next statement
        mallory.close()
        self.one.run("DROP FUNCTION noted() CASCADE; DROP FUNCTION ddl(); DROP ROLE mallory")

    def test_no_vacuum_full_of_some_tables(self):
        self.one.run("CREATE TABLE mine (a int) USING heap; CREATE TABLE everybodys (a int) USING gcl")
        files = "SELECT relname, relfilenode FROM pg_class WHERE relkind IN ('r', 't', 'i') ORDER BY oid"
        before = self.one.run(files)
        for statement in ("VACUUM FULL", "VACUUM (FULL, ANALYZE) mine, everybodys"):
            self.fails("0A000", self.one, statement)
            self.assertEqual(before, self.one.run(files), statement)
        self.one.run("VACUUM (FULL false) mine, everybodys; VACUUM; VACUUM FULL mine")
        self.assertEqual(1, len(set(before) ^ set(self.one.run(files))) // 2)
        self.one.run("DROP TABLE mine; DROP TABLE everybodys")

    def test_no_reindex_leaves_half_an_index(self):
        self.one.run("CREATE SCHEMA half; CREATE TABLE half.t (id int PRIMARY KEY, v text) USING gcl")
        for statement in ("REINDEX SCHEMA half", "REINDEX SCHEMA CONCURRENTLY half", "REINDEX TABLE CONCURRENTLY half.t"):
            self.fails("0A000", self.one, statement)
        self.two.run("VACUUM half.t; DROP SCHEMA half CASCADE")

    def test_nor_a_part_of_a_table(self):
        for session in (self.one, self.two):
            session.run("CREATE EXTENSION fuzzystrmatch")
        for what in ("x text DEFAULT soundex('x')", "x text GENERATED ALWAYS AS (soundex(s)) STORED", "x text CHECK (soundex(x) <> '')"):
            with self.subTest(what):
                self.one.run(f"CREATE TABLE leaning (s text, {what}) USING gcl")
                self.fails("0A000", self.one, "DROP EXTENSION fuzzystrmatch CASCADE")
                self.two.run("DROP TABLE leaning")
        self.one.run("CREATE TABLE leaning (s text) USING gcl; CREATE POLICY p ON leaning USING (soundex(s) <> '')")
        self.fails("0A000", self.one, "DROP EXTENSION fuzzystrmatch CASCADE")
        self.two.run("DROP TABLE leaning")
        for session in (self.one, self.two):
            session.run("DROP EXTENSION fuzzystrmatch")


if __name__ == "__main__":
    unittest.main(verbosity=2)
