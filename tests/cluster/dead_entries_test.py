"""Index entries of dead rows go without VACUUM: what a key costs does not grow with its past."""
import random
import threading
import unittest

from harness import Cluster, Load, together

BATCHES = 8
SECONDS = 6
TURNS = 100  # of a batch


class Reader(threading.Thread):
    """Reads on another primary until told to stop: snapshots come and go."""

    def __init__(self, session, sql, expected):
        super().__init__(daemon=True)
        self.session, self.sql, self.expected = session, sql, expected
        self.stop, self.reads, self.error = False, 0, None

    def run(self):
        try:
            while not self.stop:
                rows = self.session.run(self.sql)
                if rows != self.expected:
                    raise AssertionError(f"{rows} instead of {self.expected}")
                self.reads += 1
        except Exception as e:  # pylint: disable=broad-except
            self.error = e


class DeadEntries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))

    def setUp(self):
        self.one, self.two, self.three = (self.cluster.session(n) for n in (1, 2, 3))
        for session in (self.one, self.two, self.three):
            self.addCleanup(session.close)

    def page_accesses(self):
        """Page accesses of primary 1 so far."""
        return int(self.one.one("SELECT sum(value) FROM gcl_stat_counters() "
                                "WHERE layer = 'bufmgr' AND counter IN ('fixes', 'peeks', 'copies')"))

    # Were each turn to meet all dead entries before it, the n-th batch would cost 2n - 1 times the first.
    def is_linear(self, costs):
        return min(costs[-3:]) < max(3 * min(costs[:3]), 1.5 * max(costs[:3]))

    def batches(self, turn):
        """Page accesses per batch of transactions `turn` on primary 1.  A batch is dear while some session's snapshot is old:
        more batches follow until one is cheap again."""
        costs = []
        load = Load(0, lambda: self.is_linear(costs))
        while len(costs) < BATCHES or load.goes_on():
            before = self.page_accesses()
            self.one.run(f"DO $$ BEGIN FOR i IN 1..{TURNS} LOOP {turn}; COMMIT; END LOOP; END $$")
            costs.append(self.page_accesses() - before)
        return costs

    def assert_linear(self, costs):
        print("page accesses per batch:", *costs)
        self.assertTrue(self.is_linear(costs), costs)

    def read_along(self, sql, expected):
        reader = Reader(self.cluster.session(2), sql, expected)
        reader.start()

        def end():
            reader.stop = True
            reader.join()
            self.assertIsNone(reader.error)
            self.assertGreater(reader.reads, 0)
        return end

    def test_a_unique_key_that_comes_and_goes(self):
        self.one.run("CREATE TABLE unique_key (k int PRIMARY KEY, v int) USING gcl; INSERT INTO unique_key VALUES (1, 0)")
        end = self.read_along("SELECT count(*) FROM unique_key WHERE k = 1", ["1"])
        costs = self.batches("DELETE FROM unique_key WHERE k = 1; INSERT INTO unique_key VALUES (1, i)")
        end()
        self.assert_linear(costs)
        self.assertEqual([[str(TURNS)]] * 3, self.cluster.everywhere("SELECT v FROM unique_key WHERE k = 1"))

    def test_scans_of_a_key_that_comes_and_goes(self):
        self.one.run("CREATE TABLE any_key (k int, v int) USING gcl; CREATE INDEX any_k ON any_key (k); "
                     "INSERT INTO any_key VALUES (1, 0), (2, 0)")
        end = self.read_along("SELECT count(*) FROM any_key WHERE k = 1", ["1"])
        self.one.run("SET enable_seqscan = off; SET enable_bitmapscan = off")
        costs = self.batches("DELETE FROM any_key WHERE k = 1; INSERT INTO any_key VALUES (1, i)")
        end()
        self.assert_linear(costs)

    def test_indexes_do_not_grow_under_updates(self):
        self.one.run("CREATE TABLE grows (id int PRIMARY KEY, v int, w text) USING gcl; CREATE INDEX grows_v ON grows (v); "
                     "INSERT INTO grows SELECT i, i, 'w' FROM generate_series(1, 300) i")
        end = self.read_along("SET enable_seqscan = off; SELECT count(v) FROM grows WHERE v > 0", ["300"])
        sizes = []

        def grow_no_more():
            """Whether no index grew in the last batches by more than half of its size after the second."""
            return all(last <= before + 0.5 * first + 2 for first, before, last in zip(sizes[1], sizes[1 - BATCHES], sizes[-1]))

        load = Load(0, grow_no_more)
        while len(sizes) < BATCHES or load.goes_on():
            self.one.run(f"DO $$ BEGIN FOR i IN 1..{5 * TURNS} LOOP UPDATE grows SET v = 1 + random() * 1000 "
                         "WHERE id = 1 + i % 300; COMMIT; END LOOP; END $$")
            sizes.append([int(self.one.one(f"SELECT pg_relation_size('{index}') / 8192"))
                          for index in ("grows_pkey", "grows_v")])
        end()
        print("pages after each batch:", sizes)
        self.assertTrue(grow_no_more(), sizes)
        for sql in ("SELECT count(*), sum(v) FROM grows WHERE v > 0", "SELECT count(*), sum(v) FROM grows WHERE id > 0"):
            by_index = self.cluster.everywhere("SET enable_seqscan = off; SET enable_bitmapscan = off; " + sql)
            by_table = self.cluster.everywhere("SET enable_indexscan = off; SET enable_bitmapscan = off; " + sql)
            self.assertEqual(by_table, by_index)
            self.assertEqual(by_index[0], by_index[2])

    def test_old_snapshots_find_everything_on_every_primary(self):
        """Writers on all primaries change what is indexed; readers with snapshots of their own compare ways to read it."""
        self.one.run("CREATE TABLE old (id int PRIMARY KEY, v int, w int) USING gcl; CREATE INDEX old_v ON old (v); "
                     "INSERT INTO old SELECT i, i % 20 FROM generate_series(1, 600) i")
        done = {"changes": 0, "comparisons": 0}
        load = Load(SECONDS, lambda: min(done.values()) > 10)
        ways = ("SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off",
                "SET LOCAL enable_indexscan = on; SET LOCAL enable_seqscan = off")

        def write(session, chance):
            while load.goes_on():
                first = 1 + chance.randrange(600)
                session.run(f"UPDATE old SET v = (v + {chance.randrange(20)}) % 20 WHERE id = {first}", 60)
                for _ in range(3):  # chains behind one entry
                    session.run(f"UPDATE old SET w = {chance.randrange(100)} WHERE id = {first + chance.randrange(5)}", 60)
                if chance.random() < 0.3:
                    session.run(f"DELETE FROM old WHERE id = {chance.randrange(600)}", 60)
                    session.run("INSERT INTO old SELECT i, i % 20 FROM generate_series(1, 600) i ON CONFLICT DO NOTHING", 60)
                done["changes"] += 1

        def read(session, chance):
            while load.goes_on():
                session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_bitmapscan = off")
                for order in ("", "DESC", ""):
                    low = chance.randrange(15)
                    sql = f"SELECT v, id, w FROM old WHERE v BETWEEN {low} AND {low + 5} ORDER BY v {order}"
                    answers = []
                    for way in ways:
                        session.run(way)
                        answers.append(session.run(sql, 60))
                    self.assertEqual(sorted(answers[0]), sorted(answers[1]))
                    keys = [int(row.split("|")[0]) for row in answers[1]]
                    self.assertEqual(sorted(keys, reverse=order == "DESC"), keys)
                    done["comparisons"] += 1
                    session.run(f"SET LOCAL enable_seqscan = on; SELECT pg_sleep({chance.random() * 0.1})")
                session.run("COMMIT")

        self.assertEqual([], together([
            lambda work=work, party=party: work(self.cluster.session(1 + party % 3), random.Random(party))
            for party, work in enumerate((write, write, write, read, read, read))], load))
        print(done)
        self.assertGreater(min(done.values()), 10, done)
        answers = self.cluster.everywhere("SET enable_seqscan = off; SET enable_bitmapscan = off; "
                                          "SELECT count(*), sum(v) FROM old WHERE v >= 0")
        answers += self.cluster.everywhere("SET enable_indexscan = off; SET enable_bitmapscan = off; "
                                           "SELECT count(*), sum(v) FROM old WHERE v >= 0")
        self.assertEqual(1, len({answer[0] for answer in answers}), answers)


if __name__ == "__main__":
    unittest.main(verbosity=2)
