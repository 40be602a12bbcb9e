"""VACUUM, by hand and by itself: on every primary, of one table at once, and under load."""
import random
import unittest

from harness import Cluster, Load, SqlError, eventually, horizon_passes, together

KEYS = 40  # of each writer
FOR_MINUTES = "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1"  # VACUUM of hundreds of pages takes so long


class Writer:
    """Inserts, moves and deletes keys of its own; knows which of them there are."""

    def __init__(self, session, number, load):
        self.session, self.number, self.load = session, number, load
        self.there = {}

    def run(self):
        chance = random.Random(self.number)
        while self.load.goes_on():
            self.step(chance.randrange(KEYS) * 10 + self.number, chance)

    def step(self, key, chance):
        if key not in self.there:
            self.session.run(f"INSERT INTO t VALUES ({key}, 0, repeat('x', {chance.randrange(200)}))")
            self.there[key] = 0
            return
        try:
            self.session.run(f"INSERT INTO t VALUES ({key}, -1)")
            raise AssertionError(f"key {key} was accepted twice")
        except SqlError as e:
            if e.state != "23505":
                raise
        if chance.random() < 0.5:
            rows = self.session.run(f"DELETE FROM t WHERE id = {key} RETURNING v")
            expected = self.there.pop(key)
        else:
            self.there[key] += 1
            expected = self.there[key]
            rows = self.session.run(f"UPDATE t SET v = v + 1 WHERE id = {key} RETURNING v")
        if rows != [str(expected)]:
            raise AssertionError(f"key {key}: {rows} instead of {expected}")


class Vacuumer:
    def __init__(self, session, load):
        self.session, self.load = session, load
        self.done = 0

    def run(self):
        while self.load.goes_on():
            said = " ".join(self.session.run("VACUUM VERBOSE t"))
            self.done += "line pointers freed" in said


class Vacuum(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, settings=("autovacuum=off",)))
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int, filler text) USING gcl")
        cls.cluster.sql(1, "CREATE INDEX ON t (v)")

    def test_of_one_table_on_two_primaries_at_once_loses_no_row(self):
        vacuumers = []
        load = Load(12, lambda: all(v.done > 0 for v in vacuumers))
        writers = [Writer(self.cluster.session(n % 2 + 1), n, load) for n in range(4)]
        vacuumers += [Vacuumer(self.cluster.session(k), load) for k in (1, 2)]
        self.assertEqual([], together([party.run for party in writers + vacuumers], load))
        self.assertTrue(all(v.done > 0 for v in vacuumers), [v.done for v in vacuumers])
        expected = sorted(f"{key}|{v}" for w in writers for key, v in w.there.items())
        for k in (1, 2):
            look = self.cluster.session(k)
            self.assertEqual(expected, sorted(look.run("SET enable_indexscan = off; SET enable_bitmapscan = off;"
                                                       "SELECT id, v FROM t")))
            look.run("SET enable_seqscan = off; SET enable_indexscan = on")
            self.assertEqual(expected, sorted(look.run("SELECT id, v FROM t WHERE id >= 0")))
            self.assertEqual(expected, sorted(look.run("SELECT id, v FROM t WHERE v >= 0")))

    def test_the_index_of_a_queue_does_not_grow(self):
        """In at the right on one primary, out at the left on the other, read in both directions by both."""
        one, two = self.cluster.session(1), self.cluster.session(2)
        one.run("CREATE TABLE queue (id int PRIMARY KEY, v text) USING gcl")
        one.run("CREATE INDEX ON queue (v)")
        size = "SELECT pg_relation_size('queue_pkey') / 8192, pg_relation_size('queue_v_idx') / 8192"
        sizes, rows = [], 8000
        for n in range(10):
            one.run(f"INSERT INTO queue SELECT {n * rows} + i, md5(i::text) FROM generate_series(1, {rows}) i")
            two.run(f"DELETE FROM queue WHERE id <= {n * rows + rows // 2}")
            horizon_passes((one, two)[n % 2])
            (one, two)[n % 2].run("VACUUM queue")
            sizes.append([int(pages) for pages in one.one(size).split("|")])
            for session in (one, two):
                session.run("SET enable_seqscan = off")
                self.assertEqual(str(rows // 2), session.one("SELECT count(*) FROM (SELECT id FROM queue ORDER BY id OFFSET 0) q"))
                self.assertEqual(str(n * rows + rows // 2 + 1), session.one("SELECT min(id) FROM queue"))
                self.assertEqual(str((n + 1) * rows), session.one("SELECT max(id) FROM queue"))
        for pages in zip(*sizes):
            self.assertLess(max(pages[7:]), 1.5 * max(pages[:4]), sizes)
        one.run("DELETE FROM queue")
        for session in (one, two, one):
            horizon_passes(session)
            session.run("VACUUM queue")
        self.assertLess(int(one.one(size).split("|")[0]), 8, "all but one page a level, the meta page and the bin")

    def at_work(self, table):
        eventually(lambda: self.cluster.sql(
            1, f"SELECT 1 FROM pg_stat_activity WHERE wait_event = 'VacuumDelay' AND query LIKE 'VACUUM {table}%'"))

    def test_waits_for_its_turn_as_a_session_of_the_same_primary_would(self):
        one, two, three = self.cluster.session(1), self.cluster.session(2), self.cluster.session(2)
        one.run("CREATE TABLE turns (v text) USING gcl")
        one.run("INSERT INTO turns SELECT repeat('x', 500) FROM generate_series(1, 5000); DELETE FROM turns")
        one.run(FOR_MINUTES)
        one.send("VACUUM turns")
        self.at_work("turns")
        self.assertIn("skipping vacuum", " ".join(three.run("VACUUM (SKIP_LOCKED) turns")))
        with self.assertRaises(SqlError) as caught:
            three.run("SET lock_timeout = 200; VACUUM turns")
        self.assertEqual("55P03", caught.exception.state)
        pid = two.pid()
        has_begun = f"SELECT 1 FROM pg_locks WHERE pid = {pid} AND relation = 'turns'::regclass AND granted"
        two.send("VACUUM turns")
        eventually(lambda: three.run(has_begun))
        self.assertTrue(two.waits())
        three.run(f"SELECT pg_cancel_backend({pid})")
        with self.assertRaises(SqlError) as caught:
            two.result(5)
        self.assertEqual("57014", caught.exception.state)
        two.send("VACUUM VERBOSE turns")
        eventually(lambda: three.run(has_begun))
        self.assertTrue(two.waits())
        one.close()  # a session that ends leaves the table to the next
        self.cluster.sql(1, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'VACUUM turns%'")
        self.assertIn("line pointers freed", " ".join(two.result()))

    def test_is_cancelled_and_can_be_repeated(self):
        one = self.cluster.session(1)
        pid = one.pid()
        one.run("CREATE TABLE large (v text) USING gcl")
        one.run("INSERT INTO large SELECT repeat('x', 500) FROM generate_series(1, 5000)")
        one.run("DELETE FROM large")
        one.run(FOR_MINUTES)
        one.send("VACUUM large")
        self.at_work("large")
        self.cluster.sql(1, f"SELECT pg_cancel_backend({pid})")
        with self.assertRaises(SqlError) as caught:
            one.result(5)
        self.assertEqual("57014", caught.exception.state)
        said = " ".join(self.cluster.session(2).run("VACUUM VERBOSE large"))
        self.assertIn("line pointers freed", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
