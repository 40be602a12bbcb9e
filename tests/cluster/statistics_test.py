"""What monitoring takes for granted: counters of pages and rows, sizes, plans, VACUUM and ANALYZE by any primary."""
import json
import re
import subprocess
import unittest

from harness import PSQL, Cluster, eventually

EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off, FORMAT JSON) "


def buffers(session, query):
    """Pages that a query hit, read and dirtied, and the whole plan."""
    plan = json.loads("".join(session.run(EXPLAIN + query)))[0]["Plan"]
    return plan["Shared Hit Blocks"], plan["Shared Read Blocks"], plan["Shared Dirtied Blocks"], plan


def workers(plan):
    found = plan.get("Workers", [])
    for child in plan.get("Plans", []):
        found = found or workers(child)
    return found


class Buffers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, pool="64MB", cache="16MB", settings=(
            "autovacuum=off", "shared_preload_libraries=gcl,pg_stat_statements", "max_parallel_workers=2")))
        cls.one, cls.two = cls.cluster.session(1), cls.cluster.session(2)
        for session in (cls.one, cls.two):
            session.run("CREATE EXTENSION pg_stat_statements")
        cls.one.run("CREATE TABLE t (id int PRIMARY KEY, v int, t text) USING gcl")
        cls.one.run("INSERT INTO t SELECT i, 0, repeat('x', 500) FROM generate_series(1, 1500) i; SELECT count(*) FROM t; ANALYZE t")
        cls.pages = int(cls.one.one("SELECT pg_relation_size('t') / 8192"))

    def test_pages_are_read_from_another_primary_and_hit_afterwards(self):
        self.assertGreater(self.pages, 90)
        session = self.cluster.session(2)
        session.run("SELECT 1 FROM t WHERE false")
        hit, read, dirtied, _ = buffers(session, "SELECT count(*) FROM t")
        self.assertEqual((self.pages, 0), (read, dirtied))
        self.assertLess(hit, 10)
        hit, read, dirtied, _ = buffers(session, "SELECT count(*) FROM t")
        self.assertEqual((0, 0), (read, dirtied))
        self.assertIn(hit, range(self.pages, self.pages + 10))
        # One page goes to and fro.
        hit, read, dirtied, _ = buffers(self.one, "UPDATE t SET v = 1 WHERE id = 700")
        self.assertEqual(0, read)
        self.assertIn(dirtied, range(1, 5))  # its page; that of the new version, and the map
        hit, read, dirtied, _ = buffers(session, "SELECT count(*) FROM t")
        self.assertIn(read, range(1, 5))
        session.run("SELECT v FROM t WHERE id = 700")  # the index's pages come, too
        hit, read, dirtied, plan = buffers(session, "SELECT v FROM t WHERE id = 700")
        self.assertEqual((0, "Index Scan"), (read, plan["Node Type"]))
        self.assertIn(hit, range(3, 7))  # root, leaf, and the row's page: once for each version, again for a hint

    def test_parallel_workers_pages_are_the_query_s(self):
        session = self.cluster.session(1)
        session.run("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; "
                    "SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 2")
        hit, read, _, plan = buffers(session, "SELECT count(*) FROM t")
        self.assertIn(hit, range(self.pages, self.pages + 20))
        found = json.loads("".join(session.run(EXPLAIN.replace("BUFFERS", "BUFFERS, VERBOSE") + "SELECT count(*) FROM t")))[0]["Plan"]
        parts = workers(found)
        self.assertEqual(2, len(parts))
        self.assertGreaterEqual(sum(w["Shared Hit Blocks"] for w in parts), self.pages)

    def test_pg_stat_statements_counts_every_utility_statement_once(self):
        self.one.run("CREATE TABLE loaded (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text) USING gcl; SELECT pg_stat_statements_reset()")
        counted = {"COPY loaded (v) FROM PROGRAM 'seq 7'": 7, "COPY loaded (v) FROM STDIN": 2,
                   "COPY loaded FROM PROGRAM 'seq -f \"%.0f,x\" 100 101' (FORMAT csv)": 2, "COPY loaded TO STDOUT": 11, "LOCK TABLE loaded": 0,
                   "ALTER TABLE loaded ADD w int": 0, "CREATE DATABASE counted": 0, "DROP DATABASE counted": 0}
        for statement in counted:
            if statement.endswith("STDIN"):
                subprocess.run([PSQL, "-X", "-d", self.cluster.dsn(1), "-c", statement], input="a\nb\n", text=True, check=True, capture_output=True)
            else:
                self.one.run(f"BEGIN; {statement}; COMMIT" if statement.startswith("LOCK") else statement)
        self.assertEqual({(text, f"1|{rows}") for text, rows in counted.items()},
                         {tuple(row.split("|", 1)) for row in self.one.run(
                             "SELECT query, calls, rows FROM pg_stat_statements WHERE query ~ 'loaded|counted' AND query !~ 'pg_stat'")})

    def test_pg_stat_statements_of_other_primaries_sees_no_verifier(self):
        self.two.run("SELECT pg_stat_statements_reset()")
        self.one.run("CREATE ROLE keeper LOGIN PASSWORD 'in clear'; ALTER ROLE keeper PASSWORD 'in clear, too'; DROP ROLE keeper")
        self.assertEqual(["ALTER ROLE keeper PASSWORD '********'", "CREATE ROLE keeper LOGIN PASSWORD '********'", "DROP ROLE keeper"],
                         self.two.run("SELECT query FROM pg_stat_statements WHERE query ~ 'keeper' AND query !~ 'pg_stat' ORDER BY query"))

    def test_pg_stat_statements_and_pg_statio(self):
        reader = self.cluster.session(2)
        io = """SELECT heap_blks_read, heap_blks_hit, idx_blks_read, idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'io'"""

        def counted():
            reader.run("SELECT pg_stat_force_next_flush()")
            return [int(n) for n in reader.one(io).split("|")]

        self.one.run("CREATE TABLE io (id int PRIMARY KEY, t text) USING gcl")
        self.one.run("INSERT INTO io SELECT i, repeat('x', 500) FROM generate_series(1, 600) i; SELECT count(*) FROM io")
        pages = int(self.one.one("SELECT pg_relation_size('io') / 8192"))
        reader.run("SELECT pg_stat_statements_reset(); SELECT 1 FROM io WHERE false")
        before = counted()
        reader.run("SELECT count(*) FROM io")
        reader.run("SELECT t FROM io WHERE id = 5")
        after = counted()
        grown = [b - a for a, b in zip(before, after)]
        self.assertIn(grown[0], range(pages, pages + 4))
        self.assertGreater(grown[1], 0)
        self.assertGreater(grown[2] + grown[3], 1)
        # The map is looked at while the query is planned, too.
        said = reader.one("SELECT sum(shared_blks_read), sum(shared_blks_hit) > 0, sum(shared_blks_dirtied) FROM pg_stat_statements "
                          "WHERE query ~ '^SELECT (count|t)' AND query ~ ' io'").split("|")
        self.assertIn(int(said[0]), range(pages, pages + 8))
        self.assertEqual(["t", "0"], said[1:])
        rate = reader.one("SELECT blks_read >= %d, blks_hit > 0 FROM pg_stat_database WHERE datname = 'postgres'" % pages)
        self.assertEqual("t|t", rate)

# Data and questions of a small shop; K stands for the kind of table.
SHOP = """
CREATE TABLE K_nation (id int PRIMARY KEY, name text) USING K;
CREATE TABLE K_customer (id int PRIMARY KEY, nation int REFERENCES K_nation, name text, since date) USING K;
CREATE TABLE K_orders (id int PRIMARY KEY, customer int REFERENCES K_customer, placed date, total numeric, done boolean) USING K;
CREATE INDEX ON K_customer (name);
CREATE INDEX ON K_orders (customer, placed);
CREATE INDEX ON K_orders (placed);
CREATE INDEX ON K_orders (id) WHERE NOT done;
INSERT INTO K_nation SELECT i, 'nation ' || i FROM generate_series(1, 25) i;
INSERT INTO K_customer SELECT i, i % 25 + 1, 'customer ' || i, date '2020-01-01' + i % 700 FROM generate_series(1, 3000) i;
INSERT INTO K_orders SELECT i, i * 7 % 3000 + 1, date '2022-01-01' + i / 40, i % 1000, i % 50 <> 0 FROM generate_series(1, 30000) i;
ANALYZE K_nation; ANALYZE K_customer; ANALYZE K_orders;
"""
QUESTIONS = """
SELECT * FROM K_nation WHERE id = 7
SELECT * FROM K_nation ORDER BY name
SELECT * FROM K_customer WHERE id = 1700
SELECT * FROM K_customer WHERE id IN (1, 2, 3, 2000)
SELECT * FROM K_customer WHERE name = 'customer 55'
SELECT * FROM K_customer WHERE name LIKE 'customer 55%' AND nation = 3
SELECT count(*) FROM K_customer
SELECT * FROM K_customer ORDER BY id LIMIT 10
SELECT * FROM K_customer ORDER BY since DESC LIMIT 10
SELECT * FROM K_orders WHERE placed = '2022-05-05'
SELECT * FROM K_orders WHERE placed BETWEEN '2022-02-01' AND '2023-12-01'
SELECT * FROM K_orders WHERE customer = 77 ORDER BY placed DESC LIMIT 1
SELECT * FROM K_orders WHERE NOT done AND id < 1000
SELECT sum(total) FROM K_orders WHERE customer < 30
SELECT max(id), min(id) FROM K_orders
SELECT customer, sum(total) FROM K_orders GROUP BY customer ORDER BY 2 DESC LIMIT 5
SELECT c.name, o.total FROM K_customer c JOIN K_orders o ON o.customer = c.id WHERE c.name = 'customer 9'
SELECT c.name, o.total FROM K_customer c JOIN K_orders o ON o.customer = c.id WHERE o.placed = '2022-05-05'
SELECT n.name, sum(o.total) FROM K_nation n JOIN K_customer c ON c.nation = n.id JOIN K_orders o ON o.customer = c.id GROUP BY n.name
SELECT * FROM K_customer c WHERE NOT EXISTS (SELECT FROM K_orders o WHERE o.customer = c.id AND NOT o.done)
SELECT n.name FROM K_nation n JOIN K_customer c ON c.nation = n.id WHERE c.id = 5
SELECT * FROM K_orders a JOIN K_orders b ON b.id = a.id + 1 WHERE a.placed = '2022-05-05'
UPDATE K_orders SET total = 0 WHERE id = 5
UPDATE K_orders SET total = 0 WHERE customer IN (SELECT id FROM K_customer WHERE nation = 3)
DELETE FROM K_orders WHERE placed < '2022-01-03'
"""


class Plans(unittest.TestCase):
    def test_the_usual_queries_get_heap_s_plans_at_heap_s_costs(self):
        cluster = self.enterContext(Cluster(primaries=1, pool="64MB", cache="16MB", settings=("autovacuum=off",)))
        session = cluster.session(1)
        # Ours can be read in parallel only where there is no index to read: not compared.  There is no visibility map: heap
        # has one after VACUUM, and its index-only scans are then cheaper.
        session.run("SET max_parallel_workers_per_gather = 0")
        for kind in ("heap", "gcl"):
            for statement in re.sub(r"\bK(?=_|;)", kind, SHOP).split(";\n"):
                session.run(statement)
        different, far = [], []
        for query in QUESTIONS.strip().split("\n"):
            plans = ["\n".join(session.run("EXPLAIN " + query.replace("K_", kind + "_"))).replace(kind + "_", "") for kind in ("heap", "gcl")]
            shapes = [re.sub(r"  \(cost=.*", "", plan, flags=re.M) for plan in plans]
            if shapes[0] != shapes[1]:
                different.append("\n".join([query, *plans]))
            costs = [float(re.search(r"cost=[\d.]+\.\.([\d.]+)", plan).group(1)) for plan in plans]
            if not 0.8 < costs[1] / costs[0] < 1.25:
                far.append(f"{query}: {costs}")
        self.assertEqual(([], []), (different, far))
        pages = "SELECT relname, relpages, reltuples FROM pg_class WHERE relname IN ('gcl_orders', 'gcl_orders_pkey', 'gcl_nation', 'gcl_orders_id_idx') ORDER BY 1"
        said = {row.split("|")[0]: [int(n) for n in row.split("|")[1:]] for row in session.run(pages)}
        for index in ("gcl_orders_pkey", "gcl_orders_id_idx", "gcl_orders"):
            self.assertEqual(said[index][0], int(session.one(f"SELECT pg_relation_size('{index}') / 8192")), index)
        self.assertGreater(said["gcl_orders_pkey"][0], 80)
        self.assertEqual([1, 25], said["gcl_nation"])
        self.assertEqual(30000, said["gcl_orders_pkey"][1])
        self.assertEqual(600, said["gcl_orders_id_idx"][1])
        # VACUUM and a new index know it, too.
        session.run("DELETE FROM gcl_orders WHERE id > 100")
        session.run("VACUUM gcl_orders")
        session.run("CREATE INDEX fresh ON gcl_orders (total)")
        self.assertEqual([f"fresh|{session.one('SELECT pg_relation_size($$fresh$$) / 8192')}",
                          f"gcl_orders_pkey|{session.one('SELECT pg_relation_size($$gcl_orders_pkey$$) / 8192')}"], session.run(
            "SELECT relname, relpages FROM pg_class WHERE relname IN ('fresh', 'gcl_orders_pkey') ORDER BY 1"))


class Upkeep(unittest.TestCase):
    def test_a_table_updated_on_all_primaries_stays_small(self):
        cluster = self.enterContext(Cluster(primaries=3, pool="64MB", cache="8MB", settings=(
            "autovacuum_naptime=1", "autovacuum_vacuum_threshold=200", "autovacuum_vacuum_scale_factor=0",
            "autovacuum_analyze_threshold=200", "autovacuum_analyze_scale_factor=0", "autovacuum_vacuum_cost_delay=0")))
        sessions = [cluster.session(k) for k in (1, 2, 3)]
        sessions[0].run("CREATE TABLE busy (id int PRIMARY KEY, v int) USING gcl; CREATE INDEX ON busy (v)")
        sessions[0].run("INSERT INTO busy SELECT i, 0 FROM generate_series(1, 600) i")
        stats = "SELECT {} FROM pg_stat_user_tables WHERE relname = 'busy'"

        def vacuums():
            return sum(int(session.one(stats.format("autovacuum_count"))) for session in sessions)

        def pages():
            return [int(n) for n in sessions[0].one("SELECT pg_relation_size('busy') / 8192, pg_indexes_size('busy') / 8192").split("|")]

        filled = pages()
        sizes, counts = [], []

        def small():
            return sizes[-1][0] <= filled[0] * 8 + 3 * 8 and sizes[-1][1] <= filled[1] * 8 + 8

        while len(sizes) < 4 or (not small() and len(sizes) < 12):  # what grows does so in each round
            before = vacuums()
            for _ in range(6):  # every version needs index entries: only VACUUM makes room
                for k, session in enumerate(sessions):
                    session.send(f"UPDATE busy SET v = v + 1 WHERE id % 3 = {k}")
                for session in sessions:
                    session.result()
            for session in sessions:  # or the round's changes are told up to a second after the next one's beginning
                session.run("SELECT pg_stat_force_next_flush()")
            # The first primary that came has left little; all primaries know.
            eventually(lambda b=before: vacuums() > b, 120)
            eventually(lambda: all(int(s.one(stats.format("n_dead_tup"))) < 200 for s in sessions), 120)
            sizes.append(pages())
            counts.append(vacuums() - before)
        # A round's versions at most, whenever in it VACUUM came, what three times 200 dead rows before it took, and the eight
        # pages that each primary has begun; not four rounds'.
        self.assertTrue(small(), sizes)
        updates = 6 * 200 * len(sizes)  # of each primary
        self.assertEqual([f"600|{updates}"] * 3, [s.one("SELECT count(*), sum(v) / 3 FROM busy") for s in sessions])
        # Each has statistics of its own.  What VACUUM counts while rows are changed may be too few or too many, as heap's.
        for session in sessions:
            eventually(lambda s=session: s.one(stats.format("last_autoanalyze IS NOT NULL")) == "t", 120)
            self.assertEqual("-1", session.one("SELECT n_distinct FROM pg_stats WHERE tablename = 'busy' AND attname = 'id'"))
        # Changes are counted where they were made.
        self.assertEqual([f"600|{updates}", f"0|{updates}", f"0|{updates}"], [s.one(stats.format("n_tup_ins, n_tup_upd")) for s in sessions])
        print("pages of table, indexes:", sizes, "autovacuums:", counts)
        # ANALYZE counts as of one moment.
        analyst = cluster.session(1)
        for _ in range(6):
            for k, session in enumerate(sessions):
                session.send(f"UPDATE busy SET v = v + 1 WHERE id % 3 = {k}")
            analyst.run("BEGIN; ANALYZE busy")
            self.assertEqual("600", analyst.one("SELECT reltuples::int FROM pg_class WHERE relname = 'busy'"))
            analyst.run("COMMIT")
            for session in sessions:
                session.result()


if __name__ == "__main__":
    unittest.main(verbosity=2)
