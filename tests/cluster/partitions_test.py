"""Partitioned tables and inheritance whose tables are gcl tables: their DDL, and their rows, on all primaries."""
import unittest

from catalogs import Catalogs
from harness import Cluster, SqlError

GCL = "SET default_table_access_method = gcl; "

# On one tree, one after the other, each on another primary.
STATEMENTS = [
    (GCL + "CREATE TABLE p (id int, d int, w text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)", "everywhere"),
    ("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) USING gcl", "everywhere"),
    (GCL + "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) PARTITION BY HASH (id)", "everywhere"),
    (GCL + "CREATE TABLE p2a PARTITION OF p2 FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE p2b PARTITION OF p2 FOR VALUES WITH (MODULUS 2, REMAINDER 1)", "everywhere"),
    ("CREATE TABLE p_heap PARTITION OF p FOR VALUES FROM (200) TO (300) USING heap", "0A000"),
    ("CREATE TABLE p_rest PARTITION OF p DEFAULT USING gcl", "everywhere"),
    ("INSERT INTO p SELECT i, i, 'w' || i FROM generate_series(0, 299) i", "nothing"),
    ("CREATE TABLE IF NOT EXISTS p1 PARTITION OF p FOR VALUES FROM (0) TO (100) USING gcl", "nothing"),
    ("CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (400) USING gcl", "23514"),  # rows of the default partition
    ("CREATE INDEX p_w ON p (w)", "everywhere"),
    ("CREATE INDEX p_only ON ONLY p (id); CREATE INDEX p1_only ON p1 (id); ALTER INDEX p_only ATTACH PARTITION p1_only", "everywhere"),
    ("CREATE UNIQUE INDEX p_u ON p (d, w, id)", "everywhere"),
    ("ALTER TABLE p ADD COLUMN c int DEFAULT 5, ADD COLUMN r float8 DEFAULT random()", "everywhere"),
    ("ALTER TABLE p ALTER COLUMN c TYPE bigint", "everywhere"),
    ("ALTER TABLE p ADD CONSTRAINT positive CHECK (c > 0)", "everywhere"),
    ("ALTER TABLE p RENAME COLUMN c TO cc", "everywhere"),
    ("ALTER TABLE p ALTER cc SET NOT NULL, ALTER cc SET DEFAULT 6", "everywhere"),
    ("ALTER TABLE p DROP CONSTRAINT positive; ALTER TABLE p DROP COLUMN r", "everywhere"),
    ("CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.w := NEW.w || ''!''; RETURN NEW; END'; CREATE TRIGGER t BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION touched()", "everywhere"),
    ("ALTER TABLE p DISABLE TRIGGER t", "everywhere"),
    (GCL + "CREATE TABLE loose (LIKE p INCLUDING DEFAULTS); INSERT INTO loose SELECT i, i, 'x', 1 FROM generate_series(500, 509) i; CREATE TRIGGER own AFTER INSERT ON loose EXECUTE FUNCTION touched()", "everywhere"),
    ("ALTER TABLE p ATTACH PARTITION loose FOR VALUES FROM (500) TO (600)", "everywhere"),
    ("CREATE TABLE heap_loose (LIKE p) USING heap", "local"),
    ("ALTER TABLE p ATTACH PARTITION heap_loose FOR VALUES FROM (600) TO (700)", "42P01"),
    ("ALTER TABLE p DETACH PARTITION loose CONCURRENTLY", "0A000"),
    ("ALTER TABLE p DETACH PARTITION loose", "everywhere"),
    ("ALTER TABLE p ATTACH PARTITION loose FOR VALUES FROM (500) TO (600)", "everywhere"),
    (GCL + "CREATE TABLE child (id int, d int, FOREIGN KEY (id, d) REFERENCES p ON DELETE CASCADE) PARTITION BY LIST (id)", "everywhere"),
    (GCL + "CREATE TABLE child_1 PARTITION OF child FOR VALUES IN (1, 2, 3); CREATE TABLE child_rest PARTITION OF child DEFAULT", "everywhere"),
    (GCL + "CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (700) TO (800)", "everywhere"),
    ("CREATE STATISTICS p_s ON id, d FROM p", "everywhere"),
    ("CREATE VIEW p_v AS SELECT id FROM p", "everywhere"),
    ("GRANT SELECT ON p TO pg_monitor; COMMENT ON TABLE p IS 'a tree'", "everywhere"),
    ("ALTER INDEX p_w RENAME TO p_ww", "everywhere"),
    ("DROP INDEX p_ww", "everywhere"),
    ("TRUNCATE p4", "0A000"),
    ("LOCK TABLE p IN EXCLUSIVE MODE", "25P01"),
    ("BEGIN; CREATE TABLE p5 PARTITION OF p FOR VALUES FROM (800) TO (900) USING gcl; SAVEPOINT s; ALTER TABLE p ADD COLUMN z int; ROLLBACK TO s; ALTER TABLE p DETACH PARTITION p5; DROP TABLE p5; COMMIT", "nothing"),
    ("DROP TABLE p4", "2BP01"),
    ("ALTER TABLE p DETACH PARTITION p4; TRUNCATE p4; DROP TABLE p4", "everywhere"),
    # Local trees stay local.
    ("SET default_table_access_method = heap; CREATE TABLE lp (a int) PARTITION BY LIST (a); CREATE TABLE lp1 PARTITION OF lp DEFAULT; CREATE INDEX ON lp (a); ALTER TABLE lp ADD b int", "local"),
    # Inheritance.
    ("CREATE TABLE parent (a int, b text) USING gcl; CREATE TABLE kid (c int) INHERITS (parent) USING gcl", "everywhere"),
    ("CREATE TABLE heap_kid (c int) INHERITS (parent) USING heap", "0A000"),
    ("INSERT INTO kid VALUES (1, 'x', 2); ALTER TABLE parent ADD COLUMN d int DEFAULT 4; ALTER TABLE parent ALTER a TYPE bigint", "everywhere"),
    ("ALTER TABLE kid NO INHERIT parent", "everywhere"),
    ("ALTER TABLE kid INHERIT parent", "everywhere"),
    ("ALTER TABLE parent RENAME COLUMN b TO bb; ALTER TABLE parent DROP COLUMN d", "everywhere"),
    ("DROP TABLE parent CASCADE", "everywhere"),
]


class Partitions(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3))
        self.connect()

    def connect(self):
        self.sessions = {k: self.cluster.session(k) for k in (1, 2, 3)}

    def on(self, k, text):
        self.sessions[k].run("ROLLBACK; RESET ALL")
        return self.sessions[k].run(text, 60)

    def same(self, query):
        first, *others = [self.on(k, query) for k in (1, 2, 3)]
        for k, answer in enumerate(others, 2):
            self.assertEqual(first, answer, f"primary {k}: {query}")
        return first

    def run_all(self, catalogs, coordinators):
        for c in catalogs.values():
            c.remember()
        for i, (statement, wanted) in enumerate(STATEMENTS):
            coordinator, state = coordinators[i % len(coordinators)], None
            with self.subTest(statement):
                try:
                    self.on(coordinator, statement)
                except SqlError as error:
                    state = error.state
                self.on(coordinator, "ROLLBACK")
                changes = {k: c.change() for k, c in catalogs.items()}
                changed = [k for k in catalogs if changes[k]]
                outcome = state or ("nothing" if not changed else "local" if changed == [coordinator] else "everywhere")
                self.assertEqual(wanted, outcome)
                if outcome == "everywhere":
                    for k in catalogs:
                        self.assertEqual(changes[coordinator], changes[k])

    def rows(self):
        self.assertEqual(["310|49895"], self.same("SELECT count(*), sum(id) FROM p"))
        self.assertEqual(["loose|10", "p1|100", "p2|100", "p_rest|100"], self.same("SELECT rtrim(tableoid::regclass::text, 'ab'), count(*) FROM p GROUP BY 1 ORDER BY 1"))
        for query in ("SELECT w FROM p WHERE id = 150 AND d = 150", "SELECT w FROM p WHERE d = 505"):
            self.assertEqual(1, len(self.same("SET enable_seqscan = off; " + query)))
        self.same("SELECT gcl_ddl_fingerprint()")

    def test_every_statement_reaches_all(self):
        self.run_all({k: Catalogs(self.cluster.session(k)) for k in (1, 2, 3)}, (1, 2, 3))
        self.rows()

    def test_one_that_was_away_catches_up(self):
        self.cluster.stop(3)
        self.run_all({k: Catalogs(self.cluster.session(k)) for k in (1, 2)}, (1, 2))
        self.cluster.start(3)
        self.connect()
        self.rows()

    def test_first_toast_tables_below(self):
        """Some tables of a tree get their first TOAST table, in a statement that makes other relations before and after."""
        trees = {
            "PARTITION BY RANGE (a)": "CREATE TABLE n1 PARTITION OF n FOR VALUES FROM (1) TO (30);"
                                      "CREATE TABLE n2 PARTITION OF n FOR VALUES FROM (30) TO (60) PARTITION BY LIST (a);"
                                      "CREATE TABLE n2a PARTITION OF n2 DEFAULT",
            "": "CREATE TABLE n1 (t text) INHERITS (n); CREATE TABLE n2 (i int) INHERITS (n); CREATE TABLE n3 () INHERITS (n2)"}
        statements = (
            "ALTER TABLE n ADD COLUMN c text",
            "ALTER TABLE n ADD COLUMN c text, ADD COLUMN r float8 DEFAULT random()",  # writes all rows anew
            "ALTER TABLE n ALTER b TYPE text",
            "ALTER TABLE n ALTER b TYPE text, ADD COLUMN c text DEFAULT 'c', ADD CONSTRAINT u UNIQUE (a, b)",
            "BEGIN; ALTER TABLE n ADD COLUMN c text, ADD COLUMN e text; CREATE TABLE other (t text PRIMARY KEY, u text UNIQUE);"
            " SAVEPOINT s; ALTER TABLE n ADD COLUMN f text; ROLLBACK TO s; ALTER TABLE n ADD COLUMN d text; DROP TABLE other; COMMIT")
        for partitioned, below in trees.items():
            for number, statement in enumerate(statements):
                with self.subTest(statement=statement, partitioned=partitioned):
                    self.on(1, GCL + f"CREATE TABLE n (a int, b int, PRIMARY KEY (a)) {partitioned}; {below};"
                                     "INSERT INTO n SELECT i, i FROM generate_series(1, 59) i")
                    if not partitioned:
                        self.on(1, "INSERT INTO n1 VALUES (60, 60, 't'); INSERT INTO n2 VALUES (61, 61, 1)")
                    self.on(2, GCL + statement)
                    rows = self.same("SELECT count(*), sum(a) FROM n")
                    self.assertEqual(["59|1770" if partitioned else "61|1891"], rows)
                    long = "c" if " c text" in statement else "b"
                    self.on(1 + number % 3, f"UPDATE n SET {long} = (SELECT string_agg(md5((a + i)::text), '') FROM generate_series(1, 500) i)")
                    self.assertEqual([str(16000 * int(rows[0].split("|")[0]))], self.same(f"SELECT sum(length({long})) FROM n"))
                    self.same("SELECT md5(string_agg(n::text, ',' ORDER BY a)) FROM n")
                    self.same("SELECT relname, reltoastrelid, reltoastrelid <> 0 FROM pg_class WHERE relname ~ '^n[0-9a]*$' ORDER BY 1")
                    self.same("SELECT gcl_ddl_fingerprint()")
                    self.on(3, "DROP TABLE n CASCADE")

    def test_rows_move_between_partitions_and_primaries(self):
        self.on(1, GCL + "CREATE TABLE m (id int PRIMARY KEY, v int) PARTITION BY RANGE (id); CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (100);"
                         "CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (100) TO (200); INSERT INTO m SELECT i, 0 FROM generate_series(0, 49) i")
        self.on(2, "UPDATE m SET id = id + 100 WHERE id < 10")
        self.assertEqual(["m1|40", "m2|10"], self.same("SELECT tableoid::regclass::text, count(*) FROM m GROUP BY 1 ORDER BY 1"))
        one, two = self.sessions[1], self.sessions[2]
        one.run("BEGIN; UPDATE m SET id = 120 WHERE id = 20")
        two.send("UPDATE m SET v = v + 1 WHERE id = 20")
        self.assertTrue(two.blocked())
        one.run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            two.result()
        self.assertEqual("40001", caught.exception.state)  # moved to another partition, as in PostgreSQL
        self.assertEqual(["120|0"], self.same("SELECT * FROM m WHERE id IN (20, 120)"))
        with self.assertRaises(SqlError) as caught:
            self.on(3, "INSERT INTO m VALUES (120, 1)")
        self.assertEqual("23505", caught.exception.state)
        self.on(3, "INSERT INTO m VALUES (120, 1), (121, 1) ON CONFLICT (id) DO UPDATE SET v = m.v + 7")
        self.assertEqual(["120|7", "121|1"], self.same("SELECT * FROM m WHERE id >= 120 ORDER BY 1"))
        self.on(3, "TRUNCATE m")
        self.assertEqual(["0"], self.same("SELECT count(*) FROM m"))
        self.on(1, "INSERT INTO m VALUES (7, 7), (170, 7)")
        self.assertEqual(["7", "170"], self.same("SELECT id FROM m ORDER BY 1"))
        self.assertNotIn("m1", "".join(self.on(2, "EXPLAIN SELECT * FROM m WHERE id = 150")))

    def test_foreign_keys_hold_on_all(self):
        self.on(1, GCL + "CREATE TABLE f (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (0) TO (10); CREATE TABLE f2 PARTITION OF f DEFAULT;"
                         "CREATE TABLE g (f int REFERENCES f ON DELETE CASCADE) PARTITION BY HASH (f); CREATE TABLE g1 PARTITION OF g FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
        self.on(2, "INSERT INTO f VALUES (1), (20); INSERT INTO g VALUES (1), (20)")
        with self.assertRaises(SqlError) as caught:
            self.on(3, "INSERT INTO g VALUES (2)")
        self.assertEqual("23503", caught.exception.state)
        self.on(3, "DELETE FROM f WHERE id = 20")
        self.assertEqual(["1"], self.same("SELECT f FROM g"))
        with self.assertRaises(SqlError) as caught:
            self.on(1, "ALTER TABLE f DETACH PARTITION f1")
        self.assertEqual("23503", caught.exception.state)
        self.on(2, "DROP EXTENSION gcl CASCADE")
        self.assertEqual(["0"], self.same("SELECT count(*) FROM pg_class WHERE relname ~ '^[fg]([12]|_pkey)?$'"))

    def test_a_new_partition_waits_for_writers_of_all(self):
        self.on(1, GCL + "CREATE TABLE n (id int) PARTITION BY RANGE (id); CREATE TABLE n0 PARTITION OF n DEFAULT")
        self.on(2, "BEGIN; INSERT INTO n VALUES (5)")
        self.sessions[1].send(GCL + "CREATE TABLE n1 PARTITION OF n FOR VALUES FROM (0) TO (10)")
        self.assertTrue(self.sessions[1].blocked())
        self.sessions[2].run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            self.sessions[1].result()
        self.assertEqual("23514", caught.exception.state)


if __name__ == "__main__":
    unittest.main(verbosity=2)
