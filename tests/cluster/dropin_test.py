"""What applications do without knowing of gcl: each script runs twice, on heap tables in one session, and on gcl tables
with its lines spread over the primaries, so that what one made another uses.  The answers must be the same.

A line begins with the primary that runs it; `-` runs on all, which must agree.
"""
import os
import re
import subprocess
import unittest

from harness import Cluster, Session, SqlError

TYPES = """
1 CREATE TABLE ty (id int PRIMARY KEY, i2 smallint, i8 bigint, f4 real, f8 double precision, n numeric, n2 numeric(9,3), m money, b bool, t text, c char(7), vc varchar(9), na name, by bytea, d date, tm time, tz timetz, ts timestamp, tsz timestamptz, iv interval, u uuid, ip inet, cd cidr, mac macaddr, js json, jb jsonb, bt bit(5), vb varbit, p point, bx box, r4 int4range, rn numrange, rm int4multirange, ai int[], at text[], an numeric[], aj jsonb[], rs tsrange[], tv tsvector, x xml, o oid, rc regclass, pth path, ls lseg)
2 INSERT INTO ty VALUES (1, -7, 2^40, 1.5, 'NaN', 123456789012345678901234567890.123456789, 1.0005, 12.34, true, 'täxt', 'ab', 'vc', 'name', '\\x00ff10', '2020-02-29', '12:34:56.789', '12:34:56+02', 'infinity', '2000-01-01 00:00+00', '1 year 2 mons 3 days 04:05:06', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.1.2.3/8', '10.0.0.0/8', '08:00:2b:01:02:03', '{"a": [1, 2]}', '{"b": {"c": null}}', B'10101', B'110', '(1,2)', '((0,0),(1,1))', '[1,5)', '(1.5,)', '{[1,3),[5,9)}', '{{1,2},{3,NULL}}', '{a,"b c",NULL,""}', '{1.10,NaN}', '{"{\\"k\\": 1}"}', '{"[2020-01-01,2020-01-02)"}', 'fat:2 cat:3', '<a>x</a>', 77, 'pg_class', '((0,0),(1,1),(2,0))', '((1,2),(3,4))')
3 INSERT INTO ty (id) VALUES (2)
1 INSERT INTO ty (id, n, f8, ai, t, jb) SELECT i, i::numeric / 7, sqrt(i), array_agg(j), repeat('é', i), jsonb_build_object('i', i, 'list', array_agg(j)) FROM generate_series(3, 60) i, generate_series(1, i) j GROUP BY i
- SELECT * FROM ty WHERE id < 3 ORDER BY id
- SELECT md5(string_agg(ty::text, '|' ORDER BY id)) FROM ty
2 UPDATE ty SET ai[2] = -1, jb = jb || '{"new": true}', n = n * 2, t = upper(t), iv = '1 hour', rm = NULL WHERE id % 3 = 0
- SELECT md5(string_agg(ty::text, '|' ORDER BY id)), sum(n), sum(cardinality(ai)) FROM ty
3 CREATE INDEX ON ty (n, (jb ->> 'i') DESC)
3 CREATE INDEX ON ty (lower(t) text_pattern_ops) WHERE b IS NOT TRUE
3 CREATE INDEX ON ty (ai)
3 CREATE INDEX ON ty (u, tsz, iv, ip, r4, by, vb)
- SELECT id FROM ty WHERE n BETWEEN 2 AND 9 ORDER BY n, id
- SELECT id FROM ty WHERE lower(t) LIKE 'éé%' AND b IS NOT TRUE ORDER BY id LIMIT 3
- SELECT id FROM ty WHERE ai > '{1,2,3}' ORDER BY ai, id LIMIT 4
- SELECT (ty).n, (ty).t FROM ty WHERE id = 5
- SELECT r.* FROM ty, LATERAL unnest(ai) WITH ORDINALITY r (v, k) WHERE id = 9 ORDER BY k
- SELECT id, jsonb_path_query(jb, '$.list[*] ? (@ > 55)') FROM ty ORDER BY 1, 2
1 DROP TABLE ty
"""

COLLATIONS = """
1 CREATE TABLE co (id int PRIMARY KEY, c text COLLATE "C", p text COLLATE "POSIX", u text COLLATE "und-x-icu", d text)
2 INSERT INTO co SELECT i, w, w, w, w FROM unnest(ARRAY['b', 'A', 'a', 'B', 'ä', 'Z', 'z', '', 'ab', 'a b', 'a-b', NULL]) WITH ORDINALITY x (w, i)
3 CREATE INDEX co_u ON co (u)
3 CREATE UNIQUE INDEX co_c ON co (c)
3 CREATE INDEX co_d ON co (d COLLATE "und-x-icu" DESC NULLS LAST)
- SELECT string_agg(c, ',' ORDER BY c), string_agg(u, ',' ORDER BY u), string_agg(d, ',' ORDER BY d) FROM co
- SET enable_seqscan = off; SET enable_sort = off; SELECT u FROM co ORDER BY u; SELECT id FROM co WHERE u > 'a' ORDER BY u; SELECT d FROM co ORDER BY d COLLATE "und-x-icu" DESC NULLS LAST; RESET ALL
! 2 INSERT INTO co VALUES (99, 'ab')
2 INSERT INTO co VALUES (100, NULL)
1 DROP TABLE co
"""

WIDE = """
1 CREATE TABLE wi (id int PRIMARY KEY, a text, b text, c text)
1 ALTER TABLE wi ALTER a SET STORAGE PLAIN, ALTER b SET STORAGE PLAIN, ALTER c SET STORAGE PLAIN
2 INSERT INTO wi SELECT i, repeat('a', 7600 + i), NULL, '' FROM generate_series(1, 200) i
- SELECT count(*), sum(length(a)) FROM wi
3 UPDATE wi SET a = repeat('b', 3000), b = repeat('c', 4000), c = NULL WHERE id % 2 = 0
- SELECT count(*), sum(length(a)), sum(length(b)), count(c) FROM wi
3 UPDATE wi SET a = NULL, b = '' WHERE id % 3 = 0
2 DELETE FROM wi WHERE id % 5 = 0
1 VACUUM wi
2 INSERT INTO wi SELECT i, 'x', repeat('y', 6000), 'z' FROM generate_series(1001, 1100) i
- SELECT count(*), sum(length(a)), sum(length(b)), count(a), count(c) FROM wi
- SET enable_seqscan = off; SELECT count(*), sum(length(b)) FROM wi WHERE id BETWEEN 50 AND 1050; RESET ALL
1 DROP TABLE wi
"""

NULLS = f"""
1 CREATE TABLE nu (id int PRIMARY KEY, {', '.join(f'c{i} {t}' for i, t in enumerate(['int', 'text', 'bool', 'bigint', 'numeric', 'char', 'date', 'smallint'] * 5))})
2 INSERT INTO nu SELECT i, {', '.join(f"CASE WHEN i * {k + 3} % 7 < 3 THEN {v} END" for k, v in enumerate(["i", "'t' || i", "i % 2 = 0", "i * 10000000000", "i / 3.0", "chr(65 + i % 26)", "date '2020-01-01' + i", "i::smallint"] * 5))} FROM generate_series(1, 300) i
- SELECT md5(string_agg(nu::text, '|' ORDER BY id)) FROM nu
3 UPDATE nu SET c1 = NULL, c9 = 'x', c39 = 3, c20 = c12 WHERE id % 4 = 1
3 CREATE INDEX ON nu (c0, c9 NULLS FIRST, c20)
- SELECT md5(string_agg(nu::text, '|' ORDER BY id)), count(c0), count(c39) FROM nu
- SET enable_seqscan = off; SELECT count(*), sum(id) FROM nu WHERE c0 IS NULL; SELECT id FROM nu WHERE c0 IS NULL AND c9 = 'x' ORDER BY id LIMIT 5; RESET ALL
2 ALTER TABLE nu ADD COLUMN extra text DEFAULT 'later'
1 ALTER TABLE nu DROP COLUMN c3
- SELECT md5(string_agg(nu::text, '|' ORDER BY id)) FROM nu
3 INSERT INTO nu (id, c2) VALUES (1001, true)
3 UPDATE nu SET extra = NULL WHERE id > 290
- SELECT count(extra), md5(string_agg(nu::text, '|' ORDER BY id)) FROM nu
1 DROP TABLE nu
"""

MANY = f"""
1 CREATE TABLE ma ({', '.join(f'c{i} int' for i in range(1600))})
! 1 CREATE TABLE mb ({', '.join(f'c{i} int' for i in range(1601))})
2 INSERT INTO ma (c0, c799, c1599) SELECT i, i * 2, i * 3 FROM generate_series(1, 50) i
3 INSERT INTO ma VALUES ({', '.join(map(str, range(1600)))})
- SELECT count(*), sum(c0), sum(c799), sum(c1599), sum(c1598) FROM ma
2 UPDATE ma SET c1000 = 5 WHERE c0 < 10
- SELECT md5(string_agg(ma::text, '|' ORDER BY c0, c1)) FROM ma
1 DROP TABLE ma
"""

LISTS = f"""
1 CREATE TABLE li (id int PRIMARY KEY, v text)
2 INSERT INTO li SELECT i, 'v' || i FROM generate_series(1, 4000) i
- SELECT count(*), sum(id) FROM li WHERE id IN ({', '.join(str(i * 3) for i in range(3000))})
- SELECT count(*) FROM li WHERE id NOT IN ({', '.join(str(i * 2) for i in range(1500))})
- SELECT count(*) FROM li WHERE (id, v) IN (VALUES {', '.join(f"({i}, 'v{i + i % 2}')" for i in range(1, 500))})
- SELECT count(*) FROM li WHERE id = ANY ((SELECT array_agg(i) FROM generate_series(5, 9000, 7) i)::int[])
3 DELETE FROM li WHERE v IN ({', '.join(f"'v{i}'" for i in range(1, 4000, 5))})
- SELECT count(*), sum(id) FROM li
1 DROP TABLE li
"""

CLIENTS = """
1 CREATE TABLE cl (id int PRIMARY KEY, grp int NOT NULL, v text)
1 CREATE INDEX cl_grp ON cl (grp)
2 INSERT INTO cl SELECT i, i % 10, 'v' || i FROM generate_series(1, 1000) i
- CREATE TEMP TABLE tmp AS SELECT i AS id, i * i AS sq FROM generate_series(1, 100) i
- SELECT count(*), sum(sq), max(v) FROM cl JOIN tmp USING (id) WHERE grp = 3
3 UPDATE cl SET v = 'from tmp ' || sq FROM tmp WHERE tmp.id = cl.id AND grp = 4
3 DELETE FROM tmp USING cl WHERE tmp.id = cl.id AND grp = 5
3 INSERT INTO tmp SELECT id, length(v) FROM cl WHERE grp = 6
3 SELECT count(*), sum(sq) FROM tmp
- SELECT count(*), min(v), max(v) FROM cl WHERE v LIKE 'from%'
- CREATE TEMP VIEW vi AS SELECT grp, count(*) AS n, array_agg(id ORDER BY id) AS ids FROM cl GROUP BY grp
- SELECT grp, n, ids[1:3] FROM vi ORDER BY grp
- CREATE FUNCTION pg_temp.add_one(int, text) RETURNS int LANGUAGE plpgsql AS $$DECLARE n int; r record; BEGIN INSERT INTO cl VALUES ($1, -1, $2); FOR r IN SELECT * FROM cl WHERE grp = -1 LOOP n := r.id; END LOOP; RETURN n; EXCEPTION WHEN unique_violation THEN RETURN -1; END$$
2 SELECT pg_temp.add_one(5001, 'a'), pg_temp.add_one(5001, 'b'), pg_temp.add_one(7, 'c')
- SELECT * FROM cl WHERE grp = -1
- PREPARE pr (int) AS SELECT count(*), max(v) FROM cl WHERE grp = $1
- EXECUTE pr (4)
- EXECUTE pr (4)
- EXECUTE pr (4)
- EXECUTE pr (4)
- EXECUTE pr (4)
- EXECUTE pr (4)
1 DROP INDEX cl_grp
- EXECUTE pr (4)
2 CREATE INDEX cl_grp2 ON cl (grp, v)
- SET enable_seqscan = off; EXECUTE pr (4); RESET ALL
3 ALTER TABLE cl ALTER COLUMN v SET DEFAULT 'none'
3 ALTER TABLE cl RENAME COLUMN v TO w
! 1 INSERT INTO cl (id, grp, v) VALUES (1, 1, 1)
1 INSERT INTO cl (id, grp) VALUES (9001, 9)
2 ALTER TABLE cl RENAME COLUMN w TO v
- EXECUTE pr (9)
- BEGIN; DECLARE c CURSOR FOR SELECT id, v FROM cl WHERE grp = 4 ORDER BY id; FETCH 2 FROM c; MOVE 3 IN c; FETCH 2 FROM c; COMMIT
- BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id FROM cl WHERE grp = 4 ORDER BY id DESC; FETCH 1 FROM h; COMMIT; FETCH 2 FROM h; CLOSE h
2 WITH d AS (DELETE FROM cl WHERE id <= 10 RETURNING *), i AS (INSERT INTO cl SELECT id + 20000, grp, v FROM d RETURNING id) SELECT count(*), min(id), max(id) FROM i
- SELECT grp, count(*), string_agg(v, ',' ORDER BY id) FILTER (WHERE id > 20000) FROM cl GROUP BY ROLLUP (grp) ORDER BY grp
- SELECT id, rank() OVER (PARTITION BY grp ORDER BY id DESC) FROM cl WHERE id < 40 ORDER BY 1
3 SELECT * FROM (SELECT grp FROM cl EXCEPT SELECT sq % 7 FROM tmp) x ORDER BY 1
- SELECT count(*) FROM cl TABLESAMPLE BERNOULLI (100)
- DROP VIEW vi
- DROP TABLE tmp
1 DROP TABLE cl
"""

CATALOG = """
1 CREATE TABLE ca (id int NOT NULL, code varchar(10) DEFAULT 'x', n numeric(8,2) CHECK (n > 0), g int GENERATED ALWAYS AS (id * 2) STORED, ts timestamptz DEFAULT '2020-01-01 UTC', CONSTRAINT ca_pk PRIMARY KEY (id, code))
1 CREATE UNIQUE INDEX ca_u ON ca (code, n DESC NULLS LAST) INCLUDE (ts) WHERE n > 1
2 INSERT INTO ca (id, n) VALUES (1, 2), (2, 3)
! 3 INSERT INTO ca (id, n) VALUES (3, -1)
! 3 INSERT INTO ca (id, n) VALUES (1, 9)
! 3 INSERT INTO ca (id, n, g) VALUES (7, 9, 1)
- SELECT id, code, n, g FROM ca ORDER BY id
- \\d ca
- \\d ca_u
- \\d ca_pk
- \\di ca*
- \\dt ca
- SELECT column_name, data_type, is_nullable, column_default, character_maximum_length, numeric_scale, is_generated FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'ca' ORDER BY ordinal_position
- SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_schema = current_schema() AND table_name = 'ca' AND constraint_name ~ '^ca' ORDER BY 1
- SELECT column_name, ordinal_position FROM information_schema.key_column_usage WHERE table_schema = current_schema() AND table_name = 'ca' ORDER BY 2
- SELECT pg_get_indexdef(indexrelid), indisunique, indisprimary, indkey FROM pg_index WHERE indrelid = 'ca'::regclass ORDER BY 1
- SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'ca'::regclass ORDER BY 1
- SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.attgenerated FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = 'ca'::regclass AND a.attnum > 0 ORDER BY a.attnum
- SELECT i.relname, am.amname, array_agg(pg_get_indexdef(x.indexrelid, k, true) ORDER BY k) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am am ON am.oid = i.relam, generate_series(1, x.indnatts) k WHERE x.indrelid = 'ca'::regclass GROUP BY 1, 2 ORDER BY 1
- SELECT has_table_privilege('ca', 'SELECT'), to_regclass('ca') IS NOT NULL, pg_table_is_visible('ca'::regclass)
1 DROP TABLE ca
"""


def error_of(session, sql):
    try:
        return session.run(sql)
    except SqlError as error:
        return str(error)


class DropIn(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        cls.cluster.sql(1, "CREATE SCHEMA heap_side")

    def play(self, script):
        sessions = {k: Session(f"{self.cluster.dsn(k)} options='-c default_table_access_method=gcl'") for k in (1, 2, 3)}
        heap = Session(f"{self.cluster.dsn(1)} options='-c default_table_access_method=heap -c search_path=heap_side'")
        for session in (heap, *sessions.values()):
            self.addCleanup(session.close)
        for line in filter(None, script.splitlines()):
            fails, where, sql = re.match(r"(! )?(\S) (.*)", line).groups()
            expected = error_of(heap, sql)
            self.assertEqual(bool(fails), isinstance(expected, str), f"{sql[:300]}: {expected}")
            for k in (1, 2, 3) if where == "-" else (int(where),):
                self.assertEqual(self.plain(expected), self.plain(error_of(sessions[k], sql)), f"primary {k}: {sql[:300]}")

    @staticmethod
    def plain(answer):
        text = answer if isinstance(answer, str) else "\n".join(answer)
        return re.sub(r"\bheap_side\b", "public", text).splitlines()

    def test_types(self):
        self.play(TYPES)

    def test_collations(self):
        self.play(COLLATIONS)

    def test_rows_near_the_page_s_size(self):
        self.play(WIDE)

    def test_null_bitmaps(self):
        self.play(NULLS)

    def test_1600_columns(self):
        self.play(MANY)

    def test_long_lists(self):
        self.play(LISTS)

    def test_temporary_objects_functions_and_prepared_statements(self):
        self.play(CLIENTS)

    def test_what_tools_ask_the_catalogs(self):
        self.play(CATALOG)

    def test_a_row_that_is_too_large_says_so(self):
        one, two = self.cluster.session(1), self.cluster.session(2)
        one.run("CREATE TABLE big (id int PRIMARY KEY, v bytea) USING gcl; ALTER TABLE big ALTER v SET STORAGE PLAIN")
        largest = 0
        for size in range(7900, 8400, 7):
            try:
                two.run(f"INSERT INTO big VALUES ({size}, convert_to(repeat('x', {size}), 'UTF8'))")
                self.assertIn(largest, (0, size - 7), "a size was refused, a larger one accepted")
                largest = size
            except SqlError as error:
                self.assertIn(error.state, ("0A000", "54000"))
                self.assertIn("big", str(error))
        self.assertGreater(largest, 7900)
        self.assertEqual(f"{largest}", one.one("SELECT max(length(v)) FROM big"))
        with self.assertRaises(SqlError):
            one.run(f"UPDATE big SET v = v || v WHERE id = {largest}")
        self.assertEqual("1", one.one(f"SELECT count(*) FROM big WHERE length(v) = {largest}"))
        one.run("DROP TABLE big")

    def test_dump_and_restore(self):
        self.cluster.sql(1, "SET default_table_access_method = gcl; CREATE TABLE du_a (id int PRIMARY KEY, v text NOT NULL DEFAULT"
                            " 'd', n numeric, a int[], UNIQUE (v, n)); CREATE INDEX du_i ON du_a (n DESC) WHERE n > 5;"
                            " CREATE TABLE du_b (k text COLLATE \"C\" PRIMARY KEY, j jsonb CHECK (j IS NOT NULL));"
                            " INSERT INTO du_a SELECT i, 'v' || i, i / 3.0, ARRAY[i, NULL] FROM generate_series(1, 500) i;"
                            " INSERT INTO du_b SELECT chr(32 + i), jsonb_build_object('i', i) FROM generate_series(1, 90) i")
        self.cluster.sql(1, "CREATE DATABASE copy")
        tables = ["-t", "du_a", "-t", "du_b"]
        first = self.dump(2, "postgres", *tables)
        self.restore(3, "CREATE EXTENSION gcl;\n" + first)
        for k in (1, 2, 3):
            self.assertEqual(self.lines(first), self.lines(self.dump(k, "copy", *tables)))
        self.assertIn("default_table_access_method = gcl", first)

    def test_a_whole_dump_goes_into_a_cluster_and_out_of_it(self):
        for name in ("trees", "trees_again", "trees_plain"):
            self.cluster.sql(2, f"CREATE DATABASE {name}")
        self.restore(1, """CREATE EXTENSION gcl; SET default_table_access_method = gcl;
            CREATE TABLE a_tree (id int GENERATED ALWAYS AS IDENTITY, k int, v text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
            CREATE TABLE a_tree_low PARTITION OF a_tree FOR VALUES FROM (0) TO (100) PARTITION BY LIST (k);
            CREATE TABLE a_tree_seven PARTITION OF a_tree_low FOR VALUES IN (7);
            CREATE TABLE a_tree_rest PARTITION OF a_tree DEFAULT;
            CREATE INDEX ON a_tree (v); CREATE TABLE above (i int); CREATE TABLE below (j int) INHERITS (above);
            CREATE TABLE leaf (id int, n serial);
            INSERT INTO a_tree (k, v) SELECT CASE WHEN i % 2 = 0 THEN 7 ELSE i + 1000 END, 'v' || i FROM generate_series(1, 50) i;
            INSERT INTO below VALUES (1, 2); INSERT INTO leaf SELECT i FROM generate_series(1, 9) i""", "trees")
        answer = ("SELECT count(*), md5(string_agg(tableoid::regclass || t::text, ',' ORDER BY id)) FROM a_tree t;"
                  "SELECT * FROM above; SELECT max(n) FROM leaf")
        kinds = "SELECT DISTINCT coalesce(amname, '-') FROM pg_class c LEFT JOIN pg_am a ON a.oid = relam WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1"
        expected = self.ask(2, "trees", answer)
        dump = self.dump(2, "trees", "--no-table-access-method")
        self.ask(3, "trees_again", "CREATE EXTENSION gcl")
        self.restore(3, dump, "trees_again", "-c default_table_access_method=gcl")
        for k in (1, 2, 3):
            self.assertEqual(expected, self.ask(k, "trees_again", answer))
            self.assertEqual(["gcl"], self.ask(k, "trees_again", kinds))
        self.ask(1, "trees_again", "INSERT INTO a_tree (k) VALUES (7); INSERT INTO leaf DEFAULT VALUES")  # sequences went along
        self.assertEqual(["51|t", "t"], self.ask(2, "trees_again", "SELECT count(*), max(id) > 50 FROM a_tree; SELECT max(n) > 9 FROM leaf"))

        plain = self.dump(1, "trees", "--no-table-access-method", "--extension=plpgsql")
        self.assertNotRegex(plain, r"\bgcl")
        self.restore(2, plain, "trees_plain")
        self.assertEqual(expected, self.ask(2, "trees_plain", answer))
        self.assertEqual(["-", "heap"], self.ask(2, "trees_plain", kinds))
        self.cluster.sql(1, "DROP DATABASE trees; DROP DATABASE trees_again")

    def ask(self, k, database, text):
        session = Session(self.dsn(k, database))
        try:
            return session.run(text)
        finally:
            session.close()

    def dsn(self, k, database):
        return re.sub(r"dbname=\S+", f"dbname={database}", self.cluster.dsn(k))

    def dump(self, k, database, *arguments):
        done = subprocess.run(["pg_dump", "-d", self.dsn(k, database), *arguments], text=True, capture_output=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

    @staticmethod
    def lines(text):
        """Without an order: a table's rows have none."""
        return sorted(line for line in text.splitlines() if not re.match(r"\\(un)?restrict ", line))

    def restore(self, k, text, database="copy", options=""):
        done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.dsn(k, database)], input=text, text=True,
                              capture_output=True, timeout=60, env={**os.environ, "PGOPTIONS": options})
        self.assertEqual((0, ""), (done.returncode, done.stderr))


if __name__ == "__main__":
    unittest.main(verbosity=2)
