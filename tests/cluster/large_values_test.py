"""Values larger than a page: written on one primary, read and changed on others, and nothing of them is left over."""
import random
import time
import unittest

from harness import LONGER, SEED, Cluster, Load, SqlError, eventually, horizon_passes, together
from stop_points import STOP_POINTS, Stops

# A value of about `bytes` that proves itself: its md5, then noise that does not compress.
MAKE = """
CREATE FUNCTION proven(bytes int, salt text) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE noise text := (SELECT coalesce(string_agg(md5(salt || i), ''), '') FROM generate_series(1, bytes / 32) i);
  BEGIN RETURN md5(noise) || noise; END $$;
CREATE FUNCTION is_proven(v text) RETURNS boolean LANGUAGE sql AS $$ SELECT left(v, 32) = md5(substr(v, 33)) $$;
"""
ROWS = 12
BYTES_MAX = 40000


def toast_of(session, table):
    return session.one(f"SELECT reltoastrelid::regclass FROM pg_class WHERE oid = '{table}'::regclass")


def stored(session, table):
    """The values that lie out of line, as far as a session can still see them: {id: chunks}."""
    rows = session.run(f"SELECT chunk_id, count(*), max(chunk_seq) + 1 FROM {toast_of(session, table)} GROUP BY 1")
    for row in rows:
        _, chunks, expected = row.split("|")
        assert chunks == expected, row
    return len(rows)


class Worker:
    def __init__(self, session, number, load):
        self.session, self.number, self.load = session, number, load
        self.chance = random.Random(SEED * 100 + number)
        self.done = 0

    def run(self):
        while self.load.goes_on():
            self.step()
            self.done += 1

    def value(self):
        bytes_wanted = self.chance.choice([100, 3000, self.chance.randrange(BYTES_MAX)])
        return f"proven({bytes_wanted}, '{self.number}-{self.done}')"


class Writer(Worker):
    """Changes, replaces, and upserts rows that all sessions change; now and then not for good."""

    def step(self):
        key = self.chance.randrange(ROWS)
        statement = self.chance.choice([
            f"UPDATE t SET v = {self.value()} WHERE id = {key}",
            f"UPDATE t SET v = {self.value()}, w = {self.value()} WHERE id = {key}",
            f"UPDATE t SET n = n + 1 WHERE id = {key}",
            f"UPDATE t SET w = NULL WHERE id = {key}",
            f"INSERT INTO t VALUES ({key}, 0, {self.value()}) ON CONFLICT (id) DO UPDATE SET v = excluded.v, w = t.v",
            f"INSERT INTO t VALUES ({key}, 0, {self.value()}) ON CONFLICT DO NOTHING",
            f"DELETE FROM t WHERE id = {key}; INSERT INTO t VALUES ({key}, 0, {self.value()}) ON CONFLICT DO NOTHING",
        ])
        end = self.chance.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        undone = f"SAVEPOINT s; UPDATE t SET v = {self.value()} WHERE id = {key}; ROLLBACK TO s;"
        self.session.run(f"BEGIN; {undone if self.chance.random() < 0.2 else ''} {statement}; {end}")


class Reader(Worker):
    """Sees each row whole, twice the same in one snapshot."""

    def step(self):
        look = "SELECT id, n, is_proven(v), is_proven(w), md5(v), substr(v, 2001, 9) = substr(substr(v, 1000), 1002, 9) FROM t ORDER BY id"
        self.session.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        first = self.session.run(look)
        second = self.session.run(f"SELECT pg_sleep(0.05); {look}")[-len(first):] if first else []
        self.session.run("COMMIT")
        for row in first:
            _, _, v, w, _, slices = row.split("|")
            if v != "t" or w not in ("t", "") or slices not in ("t", ""):
                raise AssertionError(row)
        if first != second:
            raise AssertionError(f"{first}\n{second}")


class Vacuumer(Worker):
    def step(self):
        self.session.run("VACUUM t")
        time.sleep(0.1)


class LargeValues(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, pool="512MB", settings=("autovacuum=off",)))
        cls.cluster.sql(1, MAKE)

    def table(self, columns="id int PRIMARY KEY, n int DEFAULT 0, v text, w text"):
        one = self.cluster.session(1)
        one.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t ({columns}) USING gcl")
        return one

    def test_of_one_primary_are_read_replaced_and_deleted_on_others(self):
        one = self.table()
        two, three = self.cluster.session(2), self.cluster.session(3)
        one.run("INSERT INTO t SELECT i, 0, proven(100 << i, 'a') FROM generate_series(1, 14) i")
        self.assertEqual(["14|t"] * 2, [s.one("SELECT count(*), bool_and(is_proven(v)) FROM t") for s in (two, three)])
        two.run("UPDATE t SET v = proven(50 << id, 'b') WHERE id % 2 = 0")
        three.run("UPDATE t SET n = 7; DELETE FROM t WHERE id > 12")
        for k in (1, 2, 3):
            self.assertEqual("12|t|84", self.cluster.session(k).one("SELECT count(*), bool_and(is_proven(v)), sum(n) FROM t"))
        self.assertEqual(one.one("SELECT count(*) FROM t WHERE pg_column_size(v) > 2000"), str(stored(two, "t")))

    def test_are_never_torn_or_missing_while_everybody_changes_them(self):
        one = self.table()
        one.run("ALTER TABLE t ALTER v SET STORAGE EXTERNAL, ALTER w SET STORAGE EXTERNAL")
        one.run(f"INSERT INTO t SELECT i, 0, proven(i * 1000, 'first') FROM generate_series(0, {ROWS - 1}) i")
        workers = []
        load = Load(12 * LONGER, lambda: all(worker.done for worker in workers))
        for n, kind in enumerate([Writer] * 4 + [Reader] * 2 + [Vacuumer] * 2):
            workers.append(kind(self.cluster.session(n % 3 + 1), n, load))
        self.assertEqual([], together([worker.run for worker in workers], load))
        for worker in workers:
            self.assertGreater(worker.done, 0)
        out_of_line = "(v IS NOT NULL AND pg_column_size(v) > 2000)::int + (w IS NOT NULL AND pg_column_size(w) > 2000)::int"
        for k in (1, 2, 3):
            look = self.cluster.session(k)
            self.assertEqual("t|t", look.one("SELECT bool_and(is_proven(v)), coalesce(bool_and(is_proven(w)), true) FROM t"))
            # Nothing is left that was replaced, deleted, rolled back, or stored for a row that another session changed first.
            rows = look.run(f"SELECT id, {out_of_line}, pg_column_size(v), pg_column_size(w) FROM t")
            large = sum(int(row.split("|")[1]) for row in rows)
            small = [row for row in rows if any(0 < int(b or 0) <= 2000 for b in row.split("|")[2:])]
            self.assertGreaterEqual(stored(look, "t"), large)
            self.assertLessEqual(stored(look, "t"), large + len(small) * 2)

    def test_of_a_lost_race_leave_nothing(self):
        one = self.table()
        two = self.cluster.session(2)
        one.run("INSERT INTO t SELECT 1, 0, proven(20000, 'x')")
        one.run("BEGIN; UPDATE t SET v = proven(21000, 'y')")
        two.send("UPDATE t SET v = proven(22000, 'z')")
        self.assertTrue(two.blocked())
        one.run("COMMIT")
        two.result()
        self.assertEqual(f"{22000 // 32 * 32 + 32}|t", one.one("SELECT length(v), is_proven(v) FROM t"))
        self.assertEqual(1, stored(one, "t"))
        one.run("BEGIN; INSERT INTO t VALUES (2, 0, proven(9000, 'one'))")
        two.send("INSERT INTO t VALUES (2, 0, proven(9000, 'two')) ON CONFLICT (id) DO UPDATE SET w = excluded.v")
        self.assertTrue(two.blocked())
        one.run("COMMIT")
        two.result()
        self.assertEqual("t|t|f", one.one("SELECT is_proven(v), is_proven(w), v = w FROM t WHERE id = 2"))
        self.assertEqual(3, stored(one, "t"))

    def test_replaced_ones_are_there_for_older_snapshots(self):
        one = self.table()
        two, three = self.cluster.session(2), self.cluster.session(3)
        one.run("INSERT INTO t SELECT i, 0, proven(30000, 'old' || i) FROM generate_series(1, 3) i")
        look = "SELECT id, length(v), is_proven(v), md5(v) FROM t ORDER BY id"
        two.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        before = two.run(look)
        three.run("BEGIN; DECLARE c CURSOR FOR SELECT is_proven(v) FROM t; FETCH 1 FROM c")
        one.run("UPDATE t SET v = proven(10000, 'new'); DELETE FROM t WHERE id = 2; VACUUM t")
        one.run("INSERT INTO t SELECT i, 0, proven(30000, 'more') FROM generate_series(4, 20) i; VACUUM t")
        self.assertEqual(before, two.run(look))
        self.assertEqual(["t", "t"], three.run("FETCH ALL FROM c"))
        two.run("COMMIT")
        three.run("COMMIT")
        self.assertEqual("19|t", two.one("SELECT count(*), bool_and(is_proven(v)) FROM t"))

    def test_give_their_space_back(self):
        one = self.table()
        two = self.cluster.session(2)
        horizon_passes(two)  # makes a table
        size = "SELECT pg_total_relation_size('t')"
        free = "SELECT free_pool_pages FROM gcl_stat_space"
        before = int(one.one(free))
        sizes = []
        for n in range(6):
            one.run(f"INSERT INTO t SELECT i, 0, proven(50000, 'round {n}') FROM generate_series(1, 40) i")
            two.run("VACUUM t")
            sizes.append(int(one.one(size)))
            one.run("DELETE FROM t")
            horizon_passes(two)
            two.run("VACUUM t")
        self.assertGreater(sizes[0], 40 * 50000)
        self.assertLess(sizes[-1], 2 * sizes[0])
        self.assertLess(int(one.one(free)), before - 200)
        one.run("TRUNCATE t")
        eventually(lambda: int(one.one(free)) > before - 200)  # a worker frees
        self.assertLess(int(two.one(size)), 500000)
        one.run("INSERT INTO t SELECT i, 0, proven(50000, 'again') FROM generate_series(1, 40) i; DROP TABLE t")
        eventually(lambda: int(one.one(free)) >= before)

    def test_follow_their_table_through_ddl(self):
        one = self.table("id int PRIMARY KEY")
        two, three = self.cluster.session(2), self.cluster.session(3)
        one.run("INSERT INTO t SELECT generate_series(1, 5)")
        self.assertEqual("-", toast_of(two, "t"))
        one.run("ALTER TABLE t ADD COLUMN v text")
        two.run("UPDATE t SET v = proven(id * 5000, 'ddl')")
        look = "SELECT count(*), bool_and(is_proven(v)), sum(length(v)) FROM t"
        first = three.one(look)
        self.assertTrue(first.startswith("5|t|"))
        three.run("ALTER TABLE t ADD COLUMN r double precision DEFAULT random(), ADD COLUMN x text")
        one.run("BEGIN; SAVEPOINT s; ALTER TABLE t ADD COLUMN y text DEFAULT proven(3000, 'y'), ALTER v TYPE varchar; ROLLBACK TO s;"
                "UPDATE t SET x = proven(6000, 'x'); COMMIT")
        two.run("ALTER TABLE t ALTER id TYPE bigint")
        for s in (one, two, three):
            self.assertEqual(first, s.one(look))
            self.assertEqual("5|t", s.one("SELECT count(*), bool_and(is_proven(x)) FROM t"))
            self.assertEqual(toast_of(one, "t"), toast_of(s, "t"))
            self.assertEqual(10, stored(s, "t"))
        two.run("CREATE TABLE t2 USING gcl AS SELECT * FROM t; TRUNCATE t; INSERT INTO t SELECT * FROM t2; DROP TABLE t2")
        one.run("SET default_table_access_method = gcl; CREATE SCHEMA several CREATE TABLE a (id int)"
                " CREATE TABLE b (id int PRIMARY KEY, t text, u text UNIQUE) CREATE TABLE c (id int) CREATE TABLE d (t text)")
        three.run("INSERT INTO several.d SELECT proven(90000, 'd')")
        for s in (one, two, three):
            self.assertEqual(first, s.one(look))
            self.assertEqual("t", s.one("SELECT is_proven(t) FROM several.d"))
            self.assertEqual(["b", "d"], s.run("SELECT relname FROM pg_class WHERE relnamespace = 'several'::regnamespace AND reltoastrelid <> 0 ORDER BY 1"))
        self.assertEqual(1, len(set(s.one("SELECT gcl_ddl_fingerprint()") for s in (one, two, three))))
        one.run("DROP SCHEMA several CASCADE")

    def test_of_100_megabytes(self):
        one = self.table("id int, v text")
        two, three = self.cluster.session(2), self.cluster.session(3)
        one.run("ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
        one.run("INSERT INTO t SELECT 1, repeat(proven(100000, 'large'), 1100)", seconds=120)
        expected = one.one("SELECT length(repeat(proven(100000, 'large'), 1100)), md5(repeat(proven(100000, 'large'), 1100))")
        self.assertGreater(int(expected.split("|", maxsplit=1)[0]), 100 << 20)
        self.assertEqual(expected, two.one("SELECT length(v), md5(v) FROM t", seconds=120))
        self.assertEqual("t", three.one("SELECT substr(v, 99999000, 5000) = substr(repeat(proven(100000, 'large'), 1100), 99999000, 5000) FROM t"))
        three.run("UPDATE t SET id = 2")
        self.assertEqual(expected, one.one("SELECT length(v), md5(v) FROM t WHERE id = 2", seconds=120))
        two.run("UPDATE t SET v = v || 'end'", seconds=120)
        self.assertEqual("end", one.one("SELECT right(v, 3) FROM t"))
        three.run("DELETE FROM t; DROP TABLE t", seconds=120)


class Cancelled(unittest.TestCase):
    def test_storing_one_ends_at_once_and_leaves_nothing(self):
        with Cluster(primaries=2, pool="512MB", settings=("autovacuum=off", STOP_POINTS)) as cluster:
            one, two = cluster.session(1), cluster.session(2)
            one.run("CREATE TABLE t (v text) USING gcl; ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
            toast = toast_of(two, "t")
            storing = Stops(cluster).attach(1, "toast_chunks_stored", one.pid(), arrival=1500)
            one.send("INSERT INTO t SELECT repeat('x', 200000000)")
            pid = storing.reached()
            self.assertEqual("t", two.one(f"SELECT pg_relation_size('{toast}') > 10000000"))
            cluster.sql(1, f"SELECT pg_cancel_backend({pid})")
            with self.assertRaises(SqlError) as caught:
                one.result(5)
            self.assertEqual("57014", caught.exception.state)
            storing.left()
            self.assertEqual("0", two.one("SELECT count(*) FROM t"))
            self.assertEqual("0", two.one(f"SELECT count(*) FROM {toast}"))
            horizon_passes(two)
            two.run("VACUUM t", seconds=60)
            size = int(two.one(f"SELECT pg_relation_size('{toast}')"))
            one.run("INSERT INTO t SELECT repeat('y', 5000000)", seconds=60)
            self.assertLess(int(two.one(f"SELECT pg_relation_size('{toast}')")), size + 1000000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
