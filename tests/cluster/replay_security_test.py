"""What a user's DDL has in it runs on the primary it was given to, and on no other: no function, default, bound, check or trigger."""
import unittest

from harness import Cluster, Session, SqlError, eventually

cluster = None


def setUpModule():
    global cluster
    cluster = unittest.enterModuleContext(Cluster(primaries=3))


# Each primary counts for itself what runs there, beyond any rollback.
COUNTER = "CREATE UNLOGGED SEQUENCE ran; GRANT ALL ON ran TO PUBLIC"
RAN = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM ran"
PLPGSQL = "CREATE FUNCTION {name}(a int DEFAULT 1) RETURNS int LANGUAGE plpgsql {how} AS $$ BEGIN PERFORM nextval('public.ran'); RETURN a; END $$"
SQL = "CREATE FUNCTION {name}(a int DEFAULT 1) RETURNS int LANGUAGE sql {how} AS $$ SELECT (nextval('public.ran') * 0 + a)::int $$"
DEFINER = "SECURITY DEFINER SET search_path = public"
FUNCTIONS = {
    "vp": (PLPGSQL, "VOLATILE"), "sp": (PLPGSQL, "STABLE"), "ip": (PLPGSQL, "IMMUTABLE"),
    "vs": (SQL, "VOLATILE"), "ss": (SQL, "STABLE"), "is": (SQL, "IMMUTABLE"),
    "vd": (SQL, "VOLATILE " + DEFINER), "id": (PLPGSQL, "IMMUTABLE STRICT " + DEFINER),
}
IMMUTABLE_CALLS = 'ip() * "is"() * id()'
CALLS = {  # each is 1
    "stable": f"(sp() * ss() * {IMMUTABLE_CALLS})",
    "volatile": f"(vp() * vs() * vd() * (nextval('public.ran'::text::regclass) * 0 + 1)::int * {IMMUTABLE_CALLS})",
}

BASE = """
CREATE TABLE base (a int, b int) USING gcl;
INSERT INTO base SELECT i, i FROM generate_series(1, 20) i;
CREATE TABLE ranges (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE lists (a int, b int) PARTITION BY LIST (a);
CREATE TABLE parent (a int, b int) USING gcl;
CREATE TABLE child (c int) INHERITS (parent) USING gcl;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.ran'); RETURN NULL; END $$;
"""

# Statements with {f} for the call of any function, and whether it runs on the coordinator.
ANY = [
    ("CREATE TABLE r1 PARTITION OF ranges FOR VALUES FROM ({f}) TO ({f} + 8) USING gcl", True),
    ("CREATE TABLE l1 PARTITION OF lists FOR VALUES IN ({f}, {f} + 1, NULL) USING gcl", True),
    ("CREATE TABLE loose (a int, b int) USING gcl; ALTER TABLE ranges ATTACH PARTITION loose FOR VALUES FROM ({f} + 20) TO (MAXVALUE)", True),
    ("CREATE TABLE d1 PARTITION OF lists DEFAULT USING gcl", False),
    ("CREATE SCHEMA made CREATE TABLE p (a int) PARTITION BY RANGE (a) CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ({f}) TO (9)", True),
    ("ALTER TABLE base ADD c int DEFAULT {f}", True),
    ("ALTER TABLE base ADD c int NOT NULL DEFAULT {f} CHECK (c > 0), ADD d varchar(5) DEFAULT ({f})::text, ADD e int DEFAULT random() + {f}", True),
    ("ALTER TABLE base ADD c int DEFAULT {f}, ALTER c SET DEFAULT 7", True),
    ("ALTER TABLE base ADD IF NOT EXISTS b int DEFAULT {f}", False),
    ("ALTER TABLE parent ADD c int DEFAULT {f}", None),
    ("ALTER TABLE ranges ADD c int DEFAULT {f}", None),
    ("CREATE DOMAIN dd AS int DEFAULT {f}; ALTER TABLE base ADD c dd, ADD d dd DEFAULT 2", True),
    ("CREATE DOMAIN dc AS int DEFAULT {f} CHECK (VALUE >= {f}); ALTER TABLE base ADD c dc, ADD d dc DEFAULT 2", True),
    ("CREATE DOMAIN dn AS int NOT NULL CHECK (VALUE >= {f}); ALTER TABLE base ADD c dn DEFAULT 3; ALTER TABLE base ADD d dn DEFAULT {f}", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE >= {f}); CREATE VIEW seen AS SELECT '{{4,5}}'::dv[] AS x, '6'::dv AS y", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE >= {f}); CREATE TYPE pair AS (x dv, y int); CREATE VIEW seen AS SELECT '(4,5)'::pair AS x", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE >= {f}); CREATE TABLE t (a int DEFAULT ('{{4}}'::dv[])[1]) USING gcl; ALTER TABLE t ADD b dv[] DEFAULT '{{4}}'", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE >= {f}); CREATE TYPE span AS RANGE (SUBTYPE = dv); ALTER TABLE base ADD s span DEFAULT '[3,4)'", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE >= {f}); CREATE AGGREGATE sums (dv) (SFUNC = array_append, STYPE = dv[], INITCOND = '{{3}}')", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE IS NULL OR VALUE >= {f}); CREATE TABLE keyed (a dv) PARTITION BY LIST (a);"
     "CREATE TABLE k1 PARTITION OF keyed FOR VALUES IN (3, {f}, NULL) USING gcl", True),
    ("CREATE DOMAIN dv AS text CHECK (VALUE <> ({f})::text); CREATE TABLE keyed (a dv) PARTITION BY RANGE (a);"
     "CREATE TABLE k1 PARTITION OF keyed FOR VALUES FROM ('a\"\\,{{') TO ('b''' || {f}) USING gcl", True),
    ("CREATE DOMAIN dv AS int CHECK (VALUE >= {f}); CREATE TABLE t (a dv) USING gcl; INSERT INTO t VALUES (4); ALTER DOMAIN dv ADD CHECK (VALUE < {f} + 8)", True),
    ("CREATE DOMAIN dv AS int; CREATE TABLE t (a dv) USING gcl; INSERT INTO t VALUES (4); ALTER DOMAIN dv ADD CONSTRAINT k CHECK (VALUE < {f} + 8) NOT VALID;"
     "ALTER DOMAIN dv VALIDATE CONSTRAINT k", True),
    ("CREATE DOMAIN dv AS int; ALTER DOMAIN dv SET DEFAULT {f}", False),
    ("ALTER TABLE base ADD CHECK (a >= {f})", True),
    ("ALTER TABLE base ADD CONSTRAINT k CHECK (a >= {f}) NOT VALID; ALTER TABLE base VALIDATE CONSTRAINT k", True),
    ("ALTER TABLE base ALTER a TYPE bigint USING a + {f}", True),
    ("ALTER TABLE base ALTER a SET DEFAULT {f}", False),
    ("ALTER TABLE base ALTER a SET DEFAULT {f}, ALTER a TYPE bigint", None),
    ("CREATE TABLE t (a int DEFAULT {f}, CHECK (a > {f})) USING gcl; CREATE TABLE u (LIKE t INCLUDING ALL) USING gcl", False),
    ("CREATE TABLE t USING gcl AS SELECT {f} AS a, {f} + a AS b FROM base", True),
    ("CREATE VIEW seen AS SELECT {f} AS x FROM base WHERE a > {f}", False),
    ("CREATE RULE r AS ON INSERT TO base WHERE {f} = 2 DO ALSO SELECT {f}", False),
    ("CREATE POLICY p ON base USING (a > {f}) WITH CHECK (b > {f})", False),
    ("CREATE TRIGGER t BEFORE UPDATE ON base FOR EACH ROW WHEN (OLD.a > {f}) EXECUTE FUNCTION touch()", False),
    ("CREATE TRIGGER t BEFORE TRUNCATE ON base FOR EACH STATEMENT WHEN ({f} = 1) EXECUTE FUNCTION touch();"
     "ALTER TABLE base ENABLE ALWAYS TRIGGER t; TRUNCATE base", True),
    ("CREATE TRIGGER t AFTER TRUNCATE ON base FOR EACH STATEMENT EXECUTE FUNCTION touch(); ALTER TABLE base ENABLE REPLICA TRIGGER t;"
     "SET session_replication_role = replica; TRUNCATE base; RESET session_replication_role", True),
    ("CREATE FUNCTION with_default(x int DEFAULT {f}) RETURNS int LANGUAGE sql AS 'SELECT x'", False),
    ("CREATE FUNCTION atomic() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT {f}; END", False),
    ("CREATE FUNCTION returns() RETURNS int LANGUAGE sql RETURN {f}", False),
    ("CREATE PROCEDURE calls() LANGUAGE plpgsql AS $$ DECLARE x int := {f}; BEGIN x := {f}; END $$", False),
]
# Only for functions that are immutable.
IMMUTABLE = [
    ("CREATE INDEX i ON base ((a + {f})) WHERE b > {f}; INSERT INTO base VALUES (1, 2)", True),
    ("CREATE INDEX i ON base ((b * {f}))", True),
    ("ALTER TABLE base ADD g int GENERATED ALWAYS AS (a + {f}) STORED", True),
    ("CREATE TABLE t (a int, g int GENERATED ALWAYS AS (a + {f}) STORED) USING gcl", None),
    ("CREATE STATISTICS s ON (a + {f}), b FROM base", None),
    ("CREATE TABLE h (a int) PARTITION BY HASH ((a + {f})); CREATE TABLE h0 PARTITION OF h FOR VALUES WITH (MODULUS 2, REMAINDER 0) USING gcl", True),
    ("CREATE TABLE q (a int, b int) PARTITION BY RANGE ((b + {f}), a); CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (1, {f}) TO (5, 6) USING gcl;"
     "CREATE INDEX ON q ((a * {f})); ALTER TABLE q ADD c int DEFAULT {f}", True),
]


class Expressions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}
        for session in cls.sessions.values():
            session.run(COUNTER)
        cls.sessions[1].run("SET default_table_access_method = gcl;" + BASE)
        for name, (form, how) in FUNCTIONS.items():
            cls.sessions[1].run(form.format(name=f'"{name}"', how=how))

    def ran(self):
        return {k: int(session.one(RAN)) for k, session in self.sessions.items()}

    def walk(self, statements, calls):
        for i, (statement, runs_here) in enumerate(statements):
            coordinator = i % 3 + 1
            for name, call in calls.items():
                text = statement.format(f=call)
                with self.subTest(name, statement=text):
                    before = self.ran()
                    try:
                        self.sessions[coordinator].run(f"BEGIN; SET LOCAL default_table_access_method = gcl; {text}")
                    finally:
                        self.sessions[coordinator].run("ROLLBACK")
                    after = self.ran()
                    peers = {k: after[k] - before[k] for k in after if k != coordinator}
                    self.assertEqual({k: 0 for k in peers}, peers, "ran on primaries that did not ask for it")
                    if runs_here is not None:
                        self.assertEqual(runs_here, after[coordinator] > before[coordinator], "on the coordinator")

    def test_what_any_function_may_be_in(self):
        self.walk(ANY, CALLS)

    def test_what_immutable_functions_may_be_in(self):
        self.walk(IMMUTABLE, {"immutable": f"({IMMUTABLE_CALLS})"})


class Doors(unittest.TestCase):
    """Ways for a user who owns only a schema to become another user on another primary."""
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}
        cls.sessions[1].run("CREATE ROLE mallory LOGIN; CREATE SCHEMA AUTHORIZATION mallory")
        cls.mallory(1, """CREATE FUNCTION rise() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
              IF current_setting('session_replication_role') = 'replica' THEN
                PERFORM set_config('session_authorization', (SELECT rolname FROM pg_roles WHERE oid = 10), false);
                ALTER ROLE mallory SUPERUSER;
              END IF;
              RETURN 1; END $$;
            CREATE FUNCTION rising() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.rise(); RETURN NULL; END $$;
            CREATE FUNCTION rise_later() RETURNS int STABLE LANGUAGE sql AS 'SELECT mallory.rise()'""")

    @classmethod
    def mallory(cls, k, text):
        session = cls.sessions[k]
        session.run("ROLLBACK; RESET ALL; SET SESSION AUTHORIZATION mallory; SET default_table_access_method = gcl; SET search_path = mallory")
        try:
            return session.run(text)
        finally:
            session.run("ROLLBACK; RESET ALL; RESET SESSION AUTHORIZATION")

    def tearDown(self):
        for k, session in self.sessions.items():
            self.assertEqual("f", session.one("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), f"on primary {k}")
        self.assertEqual(1, len({s.one("SELECT gcl_ddl_fingerprint()") for s in self.sessions.values()}))

    def test_a_bound_that_would_become_a_superuser(self):
        self.mallory(1, "CREATE TABLE p (a int) PARTITION BY RANGE (a); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (rise()) TO (9) USING gcl")
        for session in self.sessions.values():
            self.assertEqual("FOR VALUES FROM (1) TO (9)",
                             session.one("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = 'mallory.p1'::regclass"))

    def test_what_the_server_itself_brings(self):
        by_query = "coalesce(query_to_xml('SELECT mallory.rise()', false, false, '')::text, '')"
        self.mallory(2, "CREATE TABLE q (a text) PARTITION BY LIST (a);"
                        f"CREATE TABLE q1 PARTITION OF q FOR VALUES IN ({by_query}, set_config('my.own', 'x', false))")
        self.mallory(3, f"CREATE DOMAIN checked AS text CHECK ({by_query} <> VALUE AND set_config('my.own', 'x', false) <> VALUE);"
                        "CREATE TABLE c (a int); ALTER TABLE c ADD b checked DEFAULT 'y', ADD c checked[] DEFAULT '{y}';"
                        "ALTER TABLE c ADD d text DEFAULT table_to_xml('mallory.c', false, false, '')::text")

    def test_triggers_that_fire_always(self):
        self.mallory(3, "CREATE TABLE t (a int); CREATE TRIGGER t BEFORE TRUNCATE ON t EXECUTE FUNCTION rising(); ALTER TABLE t ENABLE ALWAYS TRIGGER t;"
                        "TRUNCATE t")
        for session in self.sessions.values():
            self.assertEqual("A", session.one("SELECT tgenabled FROM pg_trigger WHERE tgrelid = 'mallory.t'::regclass"))

    def test_defaults_checks_and_folded_constants(self):
        self.mallory(1, "CREATE FUNCTION fold() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT mallory.rise()'; CREATE TABLE f (a int);"
                        "ALTER TABLE f ADD b int DEFAULT rise_later(); ALTER TABLE f ADD c int DEFAULT fold(), ADD CHECK (a <> fold());"
                        "CREATE INDEX ON f ((a + fold())); CREATE DOMAIN risen AS int CHECK (VALUE <> mallory.rise() + 1);"
                        "ALTER TABLE f ADD d risen DEFAULT 1; ALTER TABLE f ADD e risen[] DEFAULT '{1}';"
                        "CREATE AGGREGATE ag (risen) (SFUNC = array_append, STYPE = risen[], INITCOND = '{1}')")

    def test_whom_a_function_or_a_role_becomes_is_stored_and_nobody_becomes_it(self):
        self.sessions[1].run("CREATE ROLE other; GRANT other TO mallory; GRANT USAGE ON SCHEMA mallory TO other")
        self.mallory(2, """CREATE FUNCTION s() RETURNS int LANGUAGE sql SET session_authorization FROM CURRENT AS 'SELECT 1';
            CREATE FUNCTION r() RETURNS int LANGUAGE plpgsql IMMUTABLE SET role TO other AS 'BEGIN RETURN mallory.rise(); END';
            ALTER FUNCTION s() SET role FROM CURRENT; ALTER ROLE mallory SET role = other; ALTER ROLE mallory RESET role;
            CREATE TABLE u (a int); ALTER TABLE u ADD b int DEFAULT r()""")
        self.sessions[1].run("CREATE TABLE after_it (a int CHECK (a > 0)) USING gcl")
        for session in self.sessions.values():
            self.assertEqual(["{role=other}", "{session_authorization=mallory,role=none}"],
                             session.run("SELECT proconfig FROM pg_proc WHERE pronamespace = 'mallory'::regnamespace AND proconfig IS NOT NULL ORDER BY proname"))

    def test_a_primary_that_catches_up_runs_nothing_either(self):
        self.cluster.stop(3)
        self.mallory(1, "CREATE TABLE late (a int) PARTITION BY RANGE (a); CREATE TABLE late1 PARTITION OF late FOR VALUES FROM (rise()) TO (9);"
                        "ALTER TABLE late ADD b int DEFAULT rise_later(); ALTER TABLE late ADD c int DEFAULT rise()")
        self.cluster.start(3)
        self.sessions[3] = self.cluster.session(3)

    def test_event_triggers_that_fire_always(self):
        sessions = []
        self.sessions[1].run("CREATE DATABASE evented")
        for k in (1, 2, 3):
            sessions.append(Session(self.cluster.dsn(k).replace("dbname=postgres", "dbname=evented")))
            self.cluster.sessions.append(sessions[-1])
            self.assertEqual("evented", sessions[-1].one("SELECT current_database()"))
            sessions[-1].run("CREATE TABLE noted (what text) USING heap; CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS "
                             "$$ BEGIN INSERT INTO public.noted VALUES (tg_tag); END $$;"
                             "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION note(); ALTER EVENT TRIGGER e ENABLE ALWAYS")
        sessions[0].run("CREATE EXTENSION gcl")
        for session in sessions:
            session.run("TRUNCATE noted")
        sessions[1].run("CREATE TABLE t (a int) USING gcl; DROP TABLE t")
        self.assertEqual([["0"], ["2"], ["0"]], [session.run("SELECT count(*) FROM noted") for session in sessions])


class Values(unittest.TestCase):
    """What the coordinator has found is so on all primaries."""
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster
        cls.sessions = {k: cls.cluster.session(k) for k in (1, 2, 3)}
        for session in cls.sessions.values():
            session.run("SET default_table_access_method = gcl")

    def same(self, query):
        answers = [session.run(query) for session in self.sessions.values()]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        return answers[0]

    def fails(self, state, session, text):
        with self.assertRaises(SqlError) as caught:
            session.run(text)
        self.assertEqual(state, caught.exception.state)
        return str(caught.exception)

    def tearDown(self):
        self.same("SELECT gcl_ddl_fingerprint()")

    def test_defaults_and_bounds_that_read_tables_and_settings(self):
        self.sessions[1].run("""CREATE TABLE sums (v int); INSERT INTO sums SELECT generate_series(1, 10);
            CREATE FUNCTION total() RETURNS int STABLE LANGUAGE sql AS 'SELECT sum(v) FROM sums';
            CREATE FUNCTION wide() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(v) FROM sums); END $$;
            SET my.own = 'of one'; ALTER TABLE sums ADD t int DEFAULT total(), ADD w int DEFAULT wide() NOT NULL, ADD s text DEFAULT current_setting('my.own');
            CREATE TABLE p (a int) PARTITION BY RANGE (a); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (total()) TO (wide() + 5)""")
        self.assertEqual(["10|55|55|of one"], self.same("SELECT count(*), min(t), max(w), min(s) FROM sums"))
        self.assertEqual(["FOR VALUES FROM (55) TO (60)"], self.same("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = 'public.p1'::regclass"))
        self.assertEqual(["total()|wide()|current_setting('my.own'::text)"],
                         self.same("SELECT string_agg(pg_get_expr(adbin, adrelid), '|' ORDER BY adnum) FROM pg_attrdef WHERE adrelid = 'sums'::regclass"))

    def test_bounds_of_any_type_and_any_setting(self):
        self.sessions[2].run("CREATE DOMAIN word AS text CHECK (length(VALUE) < 20); CREATE DOMAIN short AS word NOT NULL;"
                             "SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Tokyo'; SET IntervalStyle = iso_8601; SET extra_float_digits = -10;"
                             "SET bytea_output = escape; SET quote_all_identifiers = on")
        odd = "'q\"o,{t\\e}' || chr(39)"
        for i, (kind, bound) in enumerate([
                ("timestamptz", "now()"), ("date", "now()::date"), ("interval", "'-1 year -2 days 3 hours'::interval"), ("float8", "pi() / 3"),
                ("numeric(9,2)", "1::numeric / 3"), ("bytea", "'\\x5c00'::bytea"), ("text", odd), ("varchar(3)", "lower('ABC')"), ("bool", "1 > 2"),
                ("word", odd), ("short", "upper('x')"), ("int[]", "ARRAY[1, 2 + 3]"), ("name", "current_user"), ("uuid", "gen_random_uuid()"),
                ("char", "'c'"), ("bit(3)", "B'101'"), ("oid", "12::oid"), ("text COLLATE \"C\"", "'NULL'"), ("float4", "random()")]):
            with self.subTest(kind):
                self.sessions[2].run(f"CREATE TABLE b{i} (a {kind}) PARTITION BY LIST (a); CREATE TABLE b{i}_1 PARTITION OF b{i} FOR VALUES IN ({bound});"
                                     f"CREATE TABLE r{i} (a {kind}) PARTITION BY RANGE (a); CREATE TABLE c{i} (a {kind});"
                                     f"ALTER TABLE r{i} ATTACH PARTITION c{i} FOR VALUES FROM ({bound}) TO (MAXVALUE)")
        self.sessions[2].run("RESET ALL; SET default_table_access_method = gcl")
        self.same("SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname ~ '^(b.*_1|c)' AND relpartbound IS NOT NULL ORDER BY 1")

    def test_a_foldable_key_routes_rows_alike(self):
        self.sessions[3].run("""CREATE FUNCTION two() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 2; END';
            CREATE SCHEMA k CREATE TABLE t (a int, b text) PARTITION BY RANGE ((a * two()), (lower(b) COLLATE "C"))
              CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0, MINVALUE) TO (10, MINVALUE) CREATE TABLE t2 PARTITION OF t DEFAULT""")
        for k, session in self.sessions.items():
            session.run(f"INSERT INTO k.t VALUES ({k}, 'X'), ({k + 4}, 'y')")
        self.assertEqual(["k.t1|1", "k.t1|2", "k.t1|3", "k.t2|5", "k.t2|6", "k.t2|7"], self.same("SELECT tableoid::regclass, a FROM k.t ORDER BY a"))
        self.same("SELECT pg_get_partkeydef('k.t'::regclass), (SELECT count(*) FROM pg_depend WHERE objid = 'k.t'::regclass)")

    def test_columns_that_some_children_have(self):
        self.sessions[1].run("""CREATE TABLE up (a int); CREATE TABLE mid (b int DEFAULT 4) INHERITS (up); CREATE TABLE down (c text) INHERITS (mid);
            INSERT INTO up VALUES (1); INSERT INTO mid VALUES (2, 2); INSERT INTO down VALUES (3, 3);
            ALTER TABLE up ADD b int DEFAULT length(current_user), ADD c text DEFAULT random()::text, ADD IF NOT EXISTS a int DEFAULT nothing();
            CREATE DOMAIN plain AS int DEFAULT length(current_database()); ALTER TABLE up ADD d plain, ADD e plain DEFAULT NULL, ADD f int DEFAULT NULL;
            ALTER TABLE up ADD g int DEFAULT length(current_user), ALTER g SET DEFAULT 5""")
        self.same("SELECT tableoid::regclass, * FROM up ORDER BY 2")
        self.assertEqual([], self.same("SELECT 1 FROM up WHERE c IS NULL AND a <> 3 OR d <> 8 OR e IS NOT NULL OR g <> length(current_user)"))
        self.same("SELECT adrelid::regclass, adnum, pg_get_expr(adbin, adrelid), (SELECT count(*) FROM pg_depend WHERE objid = d.oid) FROM pg_attrdef d"
                  " WHERE adrelid IN ('up'::regclass, 'mid'::regclass, 'down'::regclass) ORDER BY 1, 2")

    def test_support_functions_of_operator_classes_order_bounds_everywhere(self):
        self.sessions[1].run("""CREATE FUNCTION backwards(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT btint4cmp($2, $1)';
            CREATE OPERATOR CLASS reverse FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 backwards(int, int);
            CREATE TABLE o (a int) PARTITION BY RANGE (a reverse); CREATE TABLE o1 PARTITION OF o FOR VALUES FROM (10) TO (5);
            CREATE TABLE o2 PARTITION OF o FOR VALUES FROM (5) TO (MAXVALUE)""")
        self.sessions[2].run("INSERT INTO o VALUES (7), (3)")
        self.assertEqual(["o2|3", "o1|7"], self.same("SELECT tableoid::regclass, a FROM o ORDER BY a"))

    def test_functions_over_relations_that_others_do_not_have(self):
        one, two = self.sessions[1], self.sessions[2]
        one.run("""CREATE TEMP TABLE mine (a int); CREATE TABLE local (a int) USING heap; INSERT INTO local VALUES (4);
            CREATE FUNCTION of_mine() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM mine';
            CREATE FUNCTION of_local() RETURNS int LANGUAGE sql AS 'SELECT max(a) FROM local';
            CREATE FUNCTION of_rows() RETURNS int LANGUAGE plpgsql AS $$ DECLARE r local%ROWTYPE; BEGIN SELECT * INTO r FROM local; RETURN r.a; END $$;
            CREATE OR REPLACE FUNCTION of_local() RETURNS int LANGUAGE sql AS 'SELECT min(a) FROM local'""")
        self.assertEqual(["4|4|0"], one.run("SELECT of_local(), of_rows(), of_mine()"))
        self.fails("42P01", two, "SELECT of_local()")
        two.run("CREATE TABLE local (a int) USING heap; INSERT INTO local VALUES (6)")
        self.assertEqual(["6"], two.run("SELECT of_local()"))
        self.fails("42P01", one, "CREATE FUNCTION nowhere() RETURNS int LANGUAGE sql AS 'SELECT a FROM nowhere'")  # its coordinator looks, as ever
        one.run("DROP FUNCTION of_local(); DROP FUNCTION of_rows(); DROP FUNCTION of_mine(); DROP TABLE local")
        two.run("DROP TABLE local")

    def test_a_body_that_every_primary_parses_says_what_to_do(self):
        one = self.sessions[1]
        one.run("CREATE EXTENSION citext")
        create = "CREATE FUNCTION equals() RETURNS bool LANGUAGE sql RETURN 'x'::citext = 'X'"
        self.assertRegex(self.fails("42704", one, create), "primary [23]: ")
        one.run(f"""DO $do$ DECLARE hint text; BEGIN EXECUTE $${create}$$; EXCEPTION WHEN undefined_object THEN
                    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT; PERFORM set_config('my.hint', hint, false); END $do$""")
        self.assertIn("as a string", one.one("SELECT current_setting('my.hint')"))
        one.run("DROP EXTENSION citext")

    def test_rows_of_local_tables_are_not_checked_for_others(self):
        one, two = self.sessions[1], self.sessions[2]
        one.run("CREATE DOMAIN amount AS int; CREATE DOMAIN price AS amount")
        two.run("CREATE TABLE till (a price) USING heap")
        one.run("ALTER DOMAIN amount ADD CONSTRAINT small CHECK (VALUE < 1000000)")
        two.run("INSERT INTO till VALUES (-1)")
        for statement in ("ADD CHECK (VALUE > 0)", "VALIDATE CONSTRAINT later"):
            one.run("BEGIN; ALTER DOMAIN amount ADD CONSTRAINT later CHECK (VALUE > -5) NOT VALID")
            self.assertIn("primary 2", self.fails("55000", one, f"ALTER DOMAIN amount {statement}"))
            one.run("ROLLBACK")
        two.run("ALTER DOMAIN amount ADD CONSTRAINT own CHECK (VALUE < 9); DROP TABLE till")
        one.run("ALTER DOMAIN amount ADD CHECK (VALUE > 0)")

    def test_rows_that_come_while_a_constraint_waits_are_not_checked_either(self):
        one, two = self.sessions[1], self.sessions[2]
        one.run('''CREATE DOMAIN awaited AS int; CREATE FUNCTION poison(int) RETURNS bool VOLATILE LANGUAGE sql AS
                   $$ SELECT set_config('default_transaction_read_only', 'on', false); SELECT nextval('evaluated'::text::regclass) > 0 $$;
                   CREATE FUNCTION rejects(int) RETURNS bool VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 5; END' ''')
        two.run("CREATE TABLE loc (a awaited) USING heap; CREATE UNLOGGED SEQUENCE evaluated")
        for work in "INSERT INTO loc VALUES (1)", "CREATE TABLE loc_too (a awaited) USING heap; INSERT INTO loc_too VALUES (1)":
            for statement in "ADD CHECK (poison(VALUE))", "ADD CHECK (rejects(VALUE))", "VALIDATE CONSTRAINT later":
                with self.subTest(statement, work=work):
                    one.run("ALTER DOMAIN awaited ADD CONSTRAINT later CHECK (VALUE > 0) NOT VALID")
                    two.run("DROP TABLE IF EXISTS loc_too; TRUNCATE loc; BEGIN; LOCK TABLE loc IN ROW EXCLUSIVE MODE")
                    one.send(f"BEGIN; ALTER DOMAIN awaited {statement}; COMMIT")
                    eventually(lambda: two.one("SELECT count(*) FROM pg_locks WHERE relation = 'loc'::regclass AND NOT granted") != "0")
                    two.run(f"{work}; COMMIT")
                    with self.assertRaises(SqlError) as caught:
                        one.result()
                    self.assertEqual("55000", caught.exception.state)
                    self.assertIn("primary 2", str(caught.exception))
                one.run("ROLLBACK; ALTER DOMAIN awaited DROP CONSTRAINT later; CREATE TABLE after (a int) USING gcl; DROP TABLE after")
        self.assertEqual("f", two.one("SELECT is_called FROM evaluated"))
        two.run("DROP TABLE loc, loc_too; DROP SEQUENCE evaluated")
        one.run("DROP DOMAIN awaited; DROP FUNCTION poison, rejects")


if __name__ == "__main__":
    unittest.main()
