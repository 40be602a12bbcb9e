"""The digest of the catalogs differs if an object means something else on one primary, not if only its name or number differs."""
import unittest

from harness import Cluster, Session, SqlError

BASE = """
CREATE ROLE one_of_them; CREATE ROLE another;
CREATE FUNCTION means(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
CREATE FUNCTION deep(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + 1; END';
CREATE FUNCTION atomic(int) RETURNS int LANGUAGE sql IMMUTABLE RETURN deep($1);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE FUNCTION below(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 < $2; END';
CREATE FUNCTION compared(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 - $2; END';
CREATE FUNCTION adds(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + $2; END';
CREATE AGGREGATE total(int) (SFUNC = adds, STYPE = int, INITCOND = '0');
CREATE OPERATOR <<< (LEFTARG = int, RIGHTARG = int, FUNCTION = below);
CREATE OPERATOR CLASS mine FOR TYPE int USING btree AS OPERATOR 1 <<<, OPERATOR 3 =, FUNCTION 1 compared(int, int);
CREATE DOMAIN narrow AS int DEFAULT 3 CHECK (means(VALUE) > 0);
CREATE TYPE mood AS ENUM ('bad', 'good'); CREATE TYPE pair AS (x int, y mood);
CREATE FUNCTION int_of(mood) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE CAST (mood AS int) WITH FUNCTION int_of(mood) AS ASSIGNMENT;
CREATE FUNCTION distance(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT ($1 - $2)::float8';
CREATE TYPE span AS RANGE (SUBTYPE = int, SUBTYPE_DIFF = distance);
CREATE COLLATION odd (provider = icu, locale = 'und');
CREATE TEXT SEARCH DICTIONARY words (TEMPLATE = simple);
CREATE TEXT SEARCH CONFIGURATION texts (COPY = simple); ALTER TEXT SEARCH CONFIGURATION texts ALTER MAPPING FOR word WITH words;
CREATE TABLE t (a int DEFAULT means(1), b narrow, c mood, d text COLLATE odd, e pair, f span, CHECK (atomic(a) > 0), CHECK (a <<< 1000)) USING gcl;
CREATE INDEX i ON t (a mine); CREATE INDEX ti ON t (to_tsvector('texts', d));
CREATE TRIGGER touches BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION touch();
CREATE VIEW totals AS SELECT total(a) AS a FROM t;
CREATE POLICY p ON t TO one_of_them USING (a < (SELECT a FROM totals));
CREATE STATISTICS st (dependencies) ON a, b FROM t;
CREATE RULE r AS ON DELETE TO t WHERE old.a = 0 DO INSTEAD NOTHING;
SET default_table_access_method = gcl;
CREATE TABLE parts (k bigint PRIMARY KEY, l bigserial, w text DEFAULT 'w', CONSTRAINT positive CHECK (k > 0)) PARTITION BY RANGE (k);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (1) TO (9); CREATE TABLE other_part PARTITION OF parts FOR VALUES FROM (10) TO (19);
CREATE INDEX positives ON parts (l) WHERE l > 0;
CREATE TABLE pointing (k bigint REFERENCES parts);
RESET default_table_access_method;
GRANT SELECT ON t TO one_of_them, another; GRANT EXECUTE ON FUNCTION means(int) TO one_of_them, another;
"""
FUNCTION = "UPDATE pg_proc SET {} WHERE proname = '{}'"
OTHER = "(SELECT oid FROM pg_roles WHERE rolname = 'another')"
# Each by hand on one primary.
DIFFERENCES = {
    "a function in a default": FUNCTION.format("prosrc = 'SELECT $1 + 2'", "means"),
    "a function that another one calls": FUNCTION.format("prosrc = 'BEGIN RETURN $1 + 2; END'", "deep"),
    "a function of a trigger": FUNCTION.format("prosrc = 'BEGIN RETURN NULL; END'", "touch"),
    "how often it may be called": FUNCTION.format("provolatile = 's'", "means"),
    "its settings": FUNCTION.format("proconfig = '{work_mem=1MB}'", "deep"),
    "with whose rights": FUNCTION.format("prosecdef = true", "deep"),
    "its owner": FUNCTION.format("proowner = " + OTHER, "deep"),
    "who may call it": FUNCTION.format("proacl = proacl[1:3]", "means"),
    "that not everybody may": FUNCTION.format("proacl = '{postgres=X/postgres}'", "deep"),
    "where an aggregate begins": "UPDATE pg_aggregate SET agginitval = '1' WHERE aggfnoid = 'total'::regproc",
    "what it does with each value": "UPDATE pg_aggregate SET aggtransfn = 'int4mi'::regproc WHERE aggfnoid = 'total'::regproc",
    "what that function does": FUNCTION.format("prosrc = 'BEGIN RETURN $1 - $2; END'", "adds"),
    "an operator's function": "UPDATE pg_operator SET oprcode = 'int4gt'::regproc WHERE oprname = '<<<'",
    "an operator's estimates": "UPDATE pg_operator SET oprrest = 'scalarltsel'::regproc WHERE oprname = '<<<'",
    "a class's operator": "UPDATE pg_amop SET amopopr = '<=(int,int)'::regoperator WHERE amopopr = '<<<(int,int)'::regoperator",
    "a class that lacks one": "DELETE FROM pg_amop WHERE amopopr = '<<<(int,int)'::regoperator",
    "a class's function": "UPDATE pg_amproc SET amproc = 'btint4cmp'::regproc WHERE amproc = 'compared'::regproc",
    "what that does": FUNCTION.format("prosrc = 'BEGIN RETURN $2 - $1; END'", "compared"),
    "a class that is the default": "UPDATE pg_opclass SET opcdefault = true WHERE opcname = 'mine'",
    "a cast's function": "UPDATE pg_cast SET castfunc = 'means(int)'::regprocedure WHERE castsource = 'mood'::regtype",
    "when a cast is made": "UPDATE pg_cast SET castcontext = 'i' WHERE castsource = 'mood'::regtype",
    "a cast that is not there": "DELETE FROM pg_cast WHERE castsource = 'mood'::regtype",
    "the owner of a type": "UPDATE pg_type SET typowner = " + OTHER + " WHERE typname = 'mood'",
    "who may use it": "UPDATE pg_type SET typacl = '{postgres=U/postgres}' WHERE typname = 'mood'",
    "a domain's default": "UPDATE pg_type SET typdefault = '4' WHERE typname = 'narrow'",
    "that a domain is not null": "UPDATE pg_type SET typnotnull = true WHERE typname = 'narrow'",
    "a domain without its check": "DELETE FROM pg_constraint WHERE contypid = 'narrow'::regtype",
    "a label": "UPDATE pg_enum SET enumlabel = 'worse' WHERE enumlabel = 'bad'",
    "the order of labels": "UPDATE pg_enum SET enumsortorder = 9 WHERE enumlabel = 'bad'",
    "a column of a composite type": "UPDATE pg_attribute SET attname = 'z' WHERE attrelid = 'pair'::regclass AND attname = 'x'",
    "a range's distance": "UPDATE pg_range SET rngsubdiff = 0 WHERE rngtypid = 'span'::regtype",
    "a collation": "UPDATE pg_collation SET colliculocale = 'de' WHERE collname = 'odd'",
    "a dictionary's options": "UPDATE pg_ts_dict SET dictinitoption = 'accept = false' WHERE dictname = 'words'",
    "a mapping": "DELETE FROM pg_ts_config_map WHERE mapcfg = 'texts'::regconfig AND mapdict = 'words'::regdictionary",
    "for whom a policy is": "UPDATE pg_policy SET polroles = ARRAY[" + OTHER + "] WHERE polname = 'p'",
    "a policy for everybody": "UPDATE pg_policy SET polroles = '{0}' WHERE polname = 'p'",
    "with whose rights a view of a policy reads": "UPDATE pg_class SET relowner = " + OTHER + " WHERE relname = 'totals'",
    "who may read that view": "UPDATE pg_class SET relacl = '{postgres=r/postgres,another=r/postgres}' WHERE relname = 'totals'",
    "statistics": "UPDATE pg_statistic_ext SET stxstattarget = 7 WHERE stxname = 'st'",
    "the owner of the table": "UPDATE pg_class SET relowner = " + OTHER + " WHERE relname = 't'",
    "who may read the table": "UPDATE pg_class SET relacl = relacl[1:2] WHERE relname = 't'",
    **{f"a table's {field}": f"UPDATE pg_class SET {field} = {value} WHERE relname = 'part'" for field, value in {
        "relname": "'renamed'", "relnamespace": "'pg_catalog'::regnamespace", "relpersistence": "'u'", "relreplident": "'f'",
        "reloptions": "'{fillfactor=50}'", "relrowsecurity": "true", "relforcerowsecurity": "true",
        "relpartbound": "(SELECT relpartbound FROM pg_class WHERE relname = 'other_part')"}.items()},
    "its TOAST relation's options": "UPDATE pg_class SET reloptions = '{autovacuum_enabled=false}' WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')",
    "its row type": "UPDATE pg_type SET typname = 'renamed' WHERE typname = 'part'",
    "its array type": "UPDATE pg_type SET typname = 'renamed' WHERE typname = '_part'",
    **{f"a column's {field}": f"UPDATE pg_attribute SET {field} = {value} WHERE attrelid = 'part'::regclass AND attname = 'w'" for field, value in {
        "attname": "'renamed'", "attnotnull": "true", "attislocal": "true", "attinhcount": "7", "attstorage": "'e'", "attcompression": "'p'",
        "attoptions": "'{n_distinct=5}'", "attacl": "'{another=r/postgres}'", "attidentity": "'a'"}.items()},
    "its default": "UPDATE pg_attrdef SET adbin = (SELECT adbin FROM pg_attrdef WHERE adrelid = 'part'::regclass AND adnum = 2) WHERE adrelid = 'part'::regclass AND adnum = 3",
    "a parent": "UPDATE pg_inherits SET inhseqno = 7 WHERE inhrelid = 'part'::regclass",
    "a partition that is being detached": "UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'part'::regclass",
    "a partition key": "UPDATE pg_partitioned_table SET partattrs = '2' WHERE partrelid = 'parts'::regclass",
    "a default partition": "UPDATE pg_partitioned_table SET partdefid = 'part'::regclass WHERE partrelid = 'parts'::regclass",
    "a sequence": "UPDATE pg_sequence SET seqmax = 7 WHERE seqrelid = 'parts_l_seq'::regclass",
    "whose a sequence is": "UPDATE pg_depend SET refobjsubid = 1 WHERE objid = 'parts_l_seq'::regclass AND deptype = 'a'",
    "an index": "UPDATE pg_index SET indisunique = true WHERE indexrelid = 'positives'::regclass",
    "a partial index": "UPDATE pg_index SET indpred = NULL WHERE indrelid = 'part'::regclass AND indpred IS NOT NULL",
    **{f"a constraint's {field}": f"UPDATE pg_constraint SET {field} = {value} WHERE conname = 'positive' AND conrelid = 'part'::regclass" for field, value in {
        "conname": "'renamed'", "convalidated": "false", "condeferrable": "true", "connoinherit": "true", "coninhcount": "7",
        "conbin": "(SELECT conbin FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c' LIMIT 1)"}.items()},
    "a foreign key": "UPDATE pg_constraint SET confdeltype = 'c' WHERE contype = 'f' AND conrelid = 'pointing'::regclass AND conparentid = 0",
    "a trigger that is off": "UPDATE pg_trigger SET tgenabled = 'D' WHERE tgname = 'touches'",
    "when a trigger fires": "UPDATE pg_trigger SET tgtype = 5 WHERE tgname = 'touches'",
    "a foreign key's trigger that is off": "UPDATE pg_trigger SET tgenabled = 'D' WHERE tgisinternal AND tgrelid = 'pointing'::regclass",
    "a rule that is off": "UPDATE pg_rewrite SET ev_enabled = 'D' WHERE rulename = 'r'",
    "a rule that is not in place of a statement": "UPDATE pg_rewrite SET is_instead = false WHERE rulename = 'r'",
    "what a policy is for": "UPDATE pg_policy SET polcmd = 'r' WHERE polname = 'p'",
    "what a policy checks": "UPDATE pg_policy SET polwithcheck = polqual WHERE polname = 'p'",
}
# What means the same.
EQUAL = {
    "the order of grants": FUNCTION.format("proacl = proacl[1:2] || proacl[4] || proacl[3]", "means"),
    "what is granted anyway": FUNCTION.format("proacl = acldefault('f', proowner)", "deep"),
    "the order of a table's grants": "UPDATE pg_class SET relacl = relacl[1:1] || relacl[3] || relacl[2] WHERE relname = 't'",
    "what no gcl table uses": "CREATE FUNCTION pg_temp.unused() RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT pg_temp.unused()",
}
DIGEST = "SELECT gcl_ddl_fingerprint()"


class Digest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2))
        cls.one, cls.two = cls.cluster.session(1), cls.cluster.session(2)
        cls.one.run(BASE)
        cls.two.run("SET allow_system_table_mods = on; SET client_min_messages = error")

    def by_hand(self, statement):
        self.two.run("BEGIN; " + statement)
        try:
            return self.two.one(DIGEST)
        finally:
            self.two.run("ROLLBACK")

    def test_what_means_something_else(self):
        digest = self.one.one(DIGEST)
        self.assertEqual(digest, self.two.one(DIGEST))
        for what, statement in DIFFERENCES.items():
            with self.subTest(what):
                self.assertNotEqual([], self.two.run(f"BEGIN; {statement} RETURNING 1; ROLLBACK"), "nothing was changed")
                self.assertNotEqual(digest, self.by_hand(statement))
        self.assertEqual(digest, self.two.one(DIGEST))

    def test_what_means_the_same(self):
        digest = self.one.one(DIGEST)
        for what, statement in EQUAL.items():
            with self.subTest(what):
                self.assertEqual(digest, self.by_hand(statement))

    def test_a_statement_reads_no_more_of_the_catalogs_from_end_to_end_than_for_a_heap_table(self):
        read = {}
        for method in ("heap", "gcl"):
            session = self.cluster.session(1)
            session.run(f"BEGIN; CREATE TABLE mine (a int PRIMARY KEY, b text DEFAULT 'b', c int CHECK (deep(c) > 0)) USING {method};"
                        "CREATE INDEX ON mine (b); CREATE VIEW of_mine AS SELECT a FROM mine; ALTER TABLE mine ADD d int DEFAULT 1")
            read[method] = set(session.run("SELECT relname FROM pg_stat_xact_sys_tables WHERE seq_tup_read > 100"))
            session.run("ROLLBACK")
        self.assertLessEqual(read["gcl"], read["heap"])

    def test_a_statement_finds_it(self):
        self.two.run(DIFFERENCES["a function in a default"])
        with self.assertRaises(SqlError) as caught:
            self.one.run("ALTER TABLE t ADD g int")
        self.assertEqual("XX001", caught.exception.state)
        self.one.run("CREATE OR REPLACE FUNCTION means(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'; ALTER TABLE t ADD g int")
        self.assertEqual(self.one.one(DIGEST), self.two.one(DIGEST))

    def test_a_statement_finds_what_it_makes_of_something_else(self):
        made = {"adds": ("AGGREGATE summed(int) (SFUNC = adds, STYPE = int)",),
                "below": ("OPERATOR >>> (LEFTARG = int, RIGHTARG = int, FUNCTION = below)", "VIEW seen AS SELECT 1 <<< 2 AS x",
                          "OPERATOR CLASS another FOR TYPE int USING btree AS OPERATOR 1 <<<, OPERATOR 3 =, FUNCTION 1 btint4cmp(int, int)"),
                "deep": ("CAST (bool AS mood) WITH FUNCTION mood_of(bool)", "FUNCTION calls() RETURNS int LANGUAGE sql RETURN deep(1)",
                         "DOMAIN deeper AS int CHECK (deep(VALUE) > 0)", "TABLE made (a int DEFAULT deep(1)) USING gcl",
                         "TABLE made USING gcl AS SELECT 1 AS a; CREATE INDEX ON made (deep(a))")}
        self.one.run("CREATE FUNCTION mood_of(bool) RETURNS mood LANGUAGE sql RETURN CASE WHEN $1 AND deep(1) > 0 THEN 'good'::mood ELSE 'bad'::mood END")
        for function, statements in made.items():
            source = self.two.one(f"SELECT prosrc FROM pg_proc WHERE proname = '{function}'")
            for statement in statements:
                with self.subTest(statement):
                    self.one.run(f"BEGIN; CREATE {statement}; ROLLBACK")
                    self.two.run(FUNCTION.format("prosrc = prosrc || ' '", function))
                    with self.assertRaises(SqlError) as caught:
                        self.one.run(f"BEGIN; CREATE {statement}")
                    self.assertEqual("XX001", caught.exception.state, str(caught.exception))
                    self.one.run("ROLLBACK")
                    self.two.run(FUNCTION.format(f"prosrc = '{source}'", function))

    def test_what_each_primary_had_before(self):
        """Each primary's own functions and roles, with OIDs of its own, and grants in their order."""
        beside = []
        self.one.run("CREATE DATABASE older")
        for k, roles in ((1, ("first", "second")), (2, ("second", "first"))):
            session = Session(self.cluster.dsn(k).replace("dbname=postgres", "dbname=older"))
            self.cluster.sessions.append(session)
            beside.append(session)
            session.run("SET gcl.local_administration = on; CREATE ROLE {}; CREATE ROLE {}; RESET gcl.local_administration".format(*roles))
            session.run("CREATE FUNCTION older() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION ought() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
                        "CREATE EXTENSION fuzzystrmatch; GRANT EXECUTE ON FUNCTION older() TO first, second; ALTER FUNCTION ought() OWNER TO second")
        oids = "SELECT oid FROM pg_proc WHERE proname IN ('older', 'ought', 'soundex') UNION ALL SELECT oid FROM pg_roles WHERE rolname IN ('first', 'second')"
        self.assertEqual(set(), set(beside[0].run(oids)) & set(beside[1].run(oids)))
        beside[0].run("CREATE EXTENSION gcl; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO first, second")
        beside[0].run("CREATE TABLE u (a int DEFAULT older(), b text DEFAULT soundex('x')) USING gcl; CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION ought();"
                      "CREATE POLICY p ON u TO first, second USING (true); ALTER TABLE u ADD c int DEFAULT older()")
        beside[1].run("ALTER TABLE u OWNER TO first; GRANT ALL ON u TO second; REVOKE SELECT ON u FROM first")
        self.assertEqual(beside[0].one(DIGEST), beside[1].one(DIGEST))
        beside[1].run("SET allow_system_table_mods = on; BEGIN; UPDATE pg_proc SET proacl = proacl[1:3] WHERE proname = 'older'")
        self.assertNotEqual(beside[0].one(DIGEST), beside[1].one(DIGEST))
        beside[1].run("ROLLBACK")
        for session in beside:
            session.close()
            self.cluster.sessions.remove(session)
        self.one.run("DROP DATABASE older")
        for session in (self.one, self.two):
            session.run("SET gcl.local_administration = on; DROP ROLE first; DROP ROLE second; RESET gcl.local_administration")


if __name__ == "__main__":
    unittest.main(verbosity=2)
