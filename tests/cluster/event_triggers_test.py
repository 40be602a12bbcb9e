"""Event triggers that do DDL themselves: it is done on every primary, once, whatever the statement they fire for does before or after."""
import unittest

from catalogs import Catalogs
from harness import Cluster, SqlError

# Each does DDL for tables whose name tells so; `on` keeps it from firing for itself.
BASE = """
CREATE ROLE keeper; CREATE ROLE reader; CREATE SCHEMA app; GRANT ALL ON SCHEMA app, public TO keeper;
CREATE TABLE base (id int PRIMARY KEY, v int DEFAULT 3, w text) USING gcl;
INSERT INTO base SELECT i, i, 'w' || i FROM generate_series(1, 100) i;
CREATE TABLE noted (what text) USING gcl; GRANT ALL ON noted TO PUBLIC;
CREATE FUNCTION app.seven() RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN 7; END';
CREATE FUNCTION off() RETURNS boolean LANGUAGE sql AS $$ SELECT coalesce(current_setting('my.inside', true), '') = 'on' $$;

CREATE FUNCTION ended() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE made record; BEGIN
  IF public.off() THEN RETURN; END IF;
  PERFORM set_config('my.inside', 'on', true);
  FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' AND schema_name <> 'pg_temp'
      AND NOT (SELECT relispartition FROM pg_class WHERE oid = objid) LOOP
    INSERT INTO public.noted VALUES (made.object_identity);
    EXECUTE format('ALTER TABLE %s OWNER TO keeper', made.object_identity);
    EXECUTE format('GRANT SELECT ON %s TO reader', made.object_identity);
    EXECUTE format('COMMENT ON TABLE %s IS %L', made.object_identity, 'by ' || tg_tag);
    EXECUTE format('ALTER TABLE %s ADD ended int DEFAULT 5', made.object_identity);
    EXECUTE format('CREATE INDEX ON %s (ended)', made.object_identity);
    EXECUTE format('CREATE TABLE %s_of (ended int) USING gcl', made.object_identity);
    CREATE TEMP TABLE mine (a int); DROP TABLE mine;
  END LOOP;
  PERFORM set_config('my.inside', '', true); END $$;

CREATE FUNCTION dropped() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE gone record; BEGIN
  IF public.off() THEN RETURN; END IF;
  PERFORM set_config('my.inside', 'on', true);
  FOR gone IN SELECT * FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table' AND NOT is_temporary LOOP
    EXECUTE format('DROP TABLE IF EXISTS %s_of', gone.object_identity);
    EXECUTE format('CREATE VIEW public.gone_%s AS SELECT 1 AS one', gone.object_name);
  END LOOP;
  PERFORM set_config('my.inside', '', true); END $$;

CREATE FUNCTION started() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$ BEGIN
  IF public.off() THEN RETURN; END IF;
  PERFORM set_config('my.inside', 'on', true);
  CREATE SCHEMA IF NOT EXISTS later;
  IF tg_tag = 'ALTER TABLE' THEN ALTER TABLE public.base ADD IF NOT EXISTS started int DEFAULT 1; END IF;
  PERFORM set_config('my.inside', '', true); END $$;

CREATE FUNCTION rewritten() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
  IF public.off() THEN RETURN; END IF;
  PERFORM set_config('my.inside', 'on', true);
  EXECUTE format('CREATE TABLE public.rewritten_%s (a int) USING gcl', pg_event_trigger_table_rewrite_oid());
  COMMENT ON TABLE public.base IS 'rewritten';
  EXECUTE current_setting('my.rewrite');
  PERFORM set_config('my.inside', '', true); END $$;
"""
TRIGGERS = """
CREATE EVENT TRIGGER ended ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') EXECUTE FUNCTION ended();
CREATE EVENT TRIGGER dropped ON sql_drop EXECUTE FUNCTION dropped();
CREATE EVENT TRIGGER started ON ddl_command_start WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'DROP TABLE') EXECUTE FUNCTION started();
CREATE EVENT TRIGGER rewritten ON table_rewrite EXECUTE FUNCTION rewritten();
"""
MADE = """SELECT relowner::regrole, relacl, obj_description(c.oid), (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0),
    (SELECT count(*) FROM pg_index WHERE indrelid = c.oid), to_regclass(c.oid::regclass || '_of') IS NOT NULL FROM pg_class c WHERE c.oid = '{}'::regclass"""
AS_MADE = "keeper|{{keeper=arwdDxt/keeper,reader=r/keeper}}|by {}|{}|1|t"


class EventTriggers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}
        cls.sessions[1].run(BASE)
        for session in cls.sessions.values():  # schemas for temporary tables are each primary's own
            session.run("CREATE TEMP TABLE mine (a int); DROP TABLE mine")
        cls.catalogs = {k: Catalogs(cls.cluster.session(k)) for k in (1, 2, 3)}
        for catalogs in cls.catalogs.values():
            catalogs.remember()
        cls.sessions[1].run(TRIGGERS)
        for session in cls.sessions.values():
            session.run("SET my.rewrite = 'SELECT 1'")

    def setUp(self):
        self.changes()

    def tearDown(self):
        for session in self.sessions.values():
            session.run("ROLLBACK; RESET ROLE; RESET search_path; RESET default_table_access_method; RESET my.inside; SET my.rewrite = 'SELECT 1'")
        self.changes()

    def changes(self):
        """What is other than at the last look, and the same on all primaries."""
        found = {k: catalogs.change() for k, catalogs in self.catalogs.items()}
        for k in (2, 3):
            self.assertEqual([], sorted(set(found[1]) ^ set(found[k])), f"on primary 1 or {k} only")
        self.assertEqual(1, len({session.one("SELECT public.gcl_ddl_fingerprint()") for session in self.sessions.values()}))
        return found[1]

    def fails(self, state, session, text):
        with self.assertRaises(SqlError) as caught:
            session.run(text)
        self.assertEqual(state, caught.exception.state, str(caught.exception))
        return str(caught.exception)

    def same(self, query):
        answers = [session.run(query) for session in self.sessions.values()]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        return answers[0]

    def test_what_is_made_gets_owner_grants_and_more(self):
        for k, session in self.sessions.items():
            session.run(f"CREATE TABLE made{k} (a int PRIMARY KEY, b text) USING gcl; INSERT INTO made{k} VALUES (1, 'x')")
            self.assertEqual([AS_MADE.format("CREATE TABLE", 3).replace("|1|t", "|2|t")], self.same(MADE.format(f"made{k}")))
            session.run(f"SET default_table_access_method = gcl; CREATE TABLE copied{k} AS SELECT id, w FROM base; RESET default_table_access_method")
            self.assertEqual([AS_MADE.format("CREATE TABLE AS", 3)], self.same(MADE.format(f"copied{k}")))
            self.assertEqual(["100|500"], self.same(f"SELECT count(*), sum(ended) FROM copied{k}"))
            self.assertEqual(["2"], self.same(f"SELECT count(*) FROM noted WHERE what IN ('public.made{k}', 'public.copied{k}')"))

    def test_what_is_dropped_takes_something_along(self):
        for k, session in self.sessions.items():
            session.run(f"CREATE TABLE shed{k} (a int) USING gcl; CREATE TABLE barn{k} (a int) USING gcl; DROP TABLE shed{k}, barn{k}")
            self.assertEqual([f"gone_barn{k}", f"gone_shed{k}"], self.same(f"SELECT relname FROM pg_class WHERE relname ~ '(shed|barn){k}' ORDER BY 1"))

    def test_what_begins_finds_what_the_trigger_has_done(self):
        for k, session in self.sessions.items():
            session.run(f"ALTER TABLE base ADD at{k} timestamptz DEFAULT now(), ALTER v SET DEFAULT {k}; CREATE TABLE later.t{k} (a int) USING gcl")
            self.assertEqual([f"100|1|{k}"], self.same(
                f"SELECT count(*), max(started), (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'base'::regclass AND adnum = 2) FROM base WHERE at{k} < now()"))
            self.assertEqual([AS_MADE.format("CREATE TABLE", 2)], self.same(MADE.format(f"later.t{k}")))
            session.run("ALTER TABLE base DROP started; DROP SCHEMA later CASCADE")

    def test_what_is_rewritten(self):
        for k, session in self.sessions.items():
            session.run(f"CREATE TABLE wide{k} (a int, b int) USING gcl; INSERT INTO wide{k} SELECT i, i FROM generate_series(1, 50) i;"
                        f"ALTER TABLE wide{k} ALTER a TYPE text USING a || '!', ADD c double precision DEFAULT random()")
            self.assertEqual(["rewritten|50|50!"], self.same(f"SELECT obj_description('base'::regclass), count(DISTINCT c), max(a) FILTER (WHERE b = 50) FROM wide{k}"))
            self.assertEqual(["1"], self.same(f"SELECT count(*) FROM pg_class WHERE relname = 'rewritten_' || 'wide{k}'::regclass::oid"))

    def test_what_is_half_done_is_not_sent(self):
        for k, session in self.sessions.items():
            session.run(f"CREATE TABLE half{k} (a int) USING gcl; INSERT INTO half{k} VALUES (1)")
            self.changes()
            for inside in ("GRANT SELECT ON half{} TO reader", "CREATE VIEW of_half AS SELECT a FROM half{}", "CREATE INDEX ON half{} (a)",
                           "CREATE TRIGGER t BEFORE INSERT ON half{} EXECUTE FUNCTION suppress_redundant_updates_trigger()"):
                session.run(f"SET my.rewrite = '{inside.format(k)}'")
                self.fails("0A000", session, f"ALTER TABLE half{k} ALTER a TYPE text")
                self.assertEqual([], self.changes(), inside)
            session.run(f"CREATE FUNCTION makes() RETURNS int LANGUAGE plpgsql AS 'BEGIN CREATE TABLE inner_one (a int) USING gcl; RETURN 1; END'")
            self.changes()
            self.assertIn("inside another", self.fails("0A000", session, "SET default_table_access_method = gcl; CREATE TABLE outer_one AS SELECT makes() AS a"))
            self.assertEqual([], self.changes())
            session.run("RESET default_table_access_method; DROP FUNCTION makes()")

    def test_savepoints(self):
        for k, session in self.sessions.items():
            session.run(f"""BEGIN; CREATE TABLE first{k} (a int) USING gcl; SAVEPOINT a; CREATE TABLE undone{k} (a int) USING gcl; DROP TABLE first{k};
                ROLLBACK TO a; SAVEPOINT b; CREATE TABLE second{k} (a int) USING gcl; RELEASE b; ALTER TABLE base ADD sp{k} int; COMMIT""")
            for name in ("first", "second"):
                self.assertEqual([AS_MADE.format("CREATE TABLE", 2)], self.same(MADE.format(f"{name}{k}")))
            self.assertEqual(["0"], self.same(f"SELECT count(*) FROM pg_class WHERE relname ~ '(undone|gone_first){k}'"))
            self.changes()
            session.run(f"BEGIN; CREATE TABLE undone{k} (a int) USING gcl; ALTER TABLE base ADD undone int, ALTER w TYPE varchar; DROP TABLE second{k}; ROLLBACK")
            self.assertEqual([], self.changes())
            session.run("ALTER TABLE base DROP started")

    def test_a_savepoint_of_the_trigger(self):
        """What the statement did stays when what its trigger did is undone, and the other way round."""
        for k, session in self.sessions.items():
            session.run(f"""CREATE FUNCTION tries() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
                IF public.off() OR tg_tag <> 'CREATE TABLE' THEN RETURN; END IF;
                PERFORM set_config('my.inside', 'on', true);
                BEGIN CREATE TABLE tried{k} (a int) USING gcl; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;
                BEGIN CREATE TABLE kept{k} (a int) USING gcl; ALTER TABLE nowhere ADD a int; EXCEPTION WHEN undefined_table THEN NULL; END;
                BEGIN CREATE TABLE kept{k} (a int) USING gcl; EXCEPTION WHEN undefined_table THEN NULL; END;
                PERFORM set_config('my.inside', '', true); END $$;
                CREATE EVENT TRIGGER a_tries ON ddl_command_end EXECUTE FUNCTION tries()""")
            session.run(f"SET default_table_access_method = gcl; CREATE TABLE parted{k} (a int) PARTITION BY RANGE (a); RESET default_table_access_method")
            self.assertEqual([f"kept{k}|gcl", f"parted{k}|gcl"], self.same(f"SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname ~ '^(tried|kept|parted){k}$' ORDER BY 1"))
            session.run(f"DROP EVENT TRIGGER a_tries; DROP FUNCTION tries(); CREATE TABLE parted{k}1 PARTITION OF parted{k} FOR VALUES FROM (1) TO (9) USING gcl; INSERT INTO parted{k} VALUES (2, 5)")
            self.assertEqual(["2|5"], self.same(f"SELECT * FROM parted{k}"))

    def test_one_that_vetoes(self):
        self.sessions[1].run("CREATE FUNCTION vetoes() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;"
                             "CREATE EVENT TRIGGER zz_vetoes ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'COMMENT') EXECUTE FUNCTION vetoes()")
        self.changes()
        for session in self.sessions.values():
            for statement in ("CREATE TABLE unwanted (a int) USING gcl", "COMMENT ON TABLE base IS 'unwanted'"):
                self.fails("P0001", session, statement)
                session.run(f"BEGIN; SAVEPOINT a; CREATE VIEW wanted AS SELECT 1 AS one; SAVEPOINT b")
                self.fails("P0001", session, statement)
                session.run("ROLLBACK TO b; COMMIT")
                self.assertNotEqual([], self.changes())
                session.run("DROP VIEW wanted")
                self.changes()
        self.sessions[1].run("DROP EVENT TRIGGER zz_vetoes; DROP FUNCTION vetoes()")

    def test_settings_and_user_of_the_trigger_are_not_the_statements(self):
        self.sessions[1].run("""CREATE FUNCTION elsewhere() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET DateStyle = 'SQL, DMY' AS $$ BEGIN
            IF public.off() THEN RETURN; END IF; PERFORM set_config('my.inside', 'on', true);
            EXECUTE format('COMMENT ON SCHEMA app IS %L', current_user || ' ' || tg_tag); PERFORM set_config('my.inside', '', true); END $$;
            CREATE EVENT TRIGGER a_elsewhere ON ddl_command_end EXECUTE FUNCTION elsewhere(); GRANT ALL ON base TO keeper; ALTER TABLE base OWNER TO keeper""")
        for k, session in self.sessions.items():
            session.run(f"""SET ROLE keeper; SET search_path = app, public; CREATE TABLE mine{k} (a int) USING gcl; ALTER TABLE mine{k} ADD b int DEFAULT seven(), ADD c date DEFAULT '1.2.2003';
                SET default_table_access_method = gcl; CREATE TABLE days{k} (a date) PARTITION BY RANGE (a);
                CREATE TABLE days{k}a PARTITION OF days{k} FOR VALUES FROM ('1.2.2003') TO ('1.3.2003')""")
            session.run("RESET ROLE; RESET search_path; RESET default_table_access_method")
            self.assertEqual(["FOR VALUES FROM ('2003-01-02') TO ('2003-01-03')"], self.same(f"SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = 'app.days{k}a'::regclass"))
            self.assertEqual(["postgres CREATE TABLE"], self.same("SELECT obj_description('app'::regnamespace)"))
            self.assertEqual([f"keeper|app.seven()|'2003-01-02'::date"], self.same(
                f"SELECT c.relowner::regrole, string_agg(pg_get_expr(adbin, adrelid), '|' ORDER BY adnum) FROM pg_class c JOIN pg_attrdef ON adrelid = c.oid WHERE c.oid = 'app.mine{k}'::regclass AND adnum > 2 GROUP BY 1"))
        self.sessions[1].run("DROP EVENT TRIGGER a_elsewhere; DROP FUNCTION elsewhere(); ALTER TABLE base OWNER TO postgres")

    def test_what_was_missed_is_caught_up_in_the_same_order(self):
        self.cluster.stop(3)
        one = self.sessions[1]
        one.run("CREATE TABLE missed (a int) USING gcl; ALTER TABLE base ALTER v TYPE bigint, ADD missed int; CREATE TABLE later.missed (a int) USING gcl; DROP TABLE missed")
        self.cluster.start(3)
        self.sessions[3], look = self.cluster.session(3), self.cluster.session(3)
        self.same("SELECT c.oid, c.oid::regclass, relowner::regrole, relacl, obj_description(c.oid), relnatts FROM pg_class c"
                  " WHERE relname ~ 'missed|base|rewritten' ORDER BY 1")
        self.sessions[3].run("CREATE TEMP TABLE mine (a int); DROP TABLE mine")
        self.catalogs[3] = Catalogs(look)
        self.catalogs[3].remember()
        for k in (1, 2):
            self.catalogs[k].change()


if __name__ == "__main__":
    unittest.main(verbosity=2)
