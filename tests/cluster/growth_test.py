"""What would grow for ever does not: each row of the table in extension/engine/README.md, in a loop that is long enough to show it."""
import time
import unittest

from harness import Cluster, eventually

LIST_PAGES = 4  # of a primary: lists that stay when they are empty


class Growth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, pool="512MB", cache="48MB"))
        cls.one, cls.two = cls.cluster.session(1), cls.cluster.session(2)

    def free(self):
        return int(self.two.one("SELECT free_pool_pages FROM gcl_stat_space"))

    def comes_back(self, before, but_for=LIST_PAGES, seconds=60):
        """What was used since goes back to the pool, in the background."""
        eventually(lambda: self.free() >= before - but_for, seconds)

    def test_relations_rolled_back_by_the_hundred_leave_nothing(self):
        make = ("DO $$ BEGIN FOR i IN 1..{n} LOOP EXECUTE format('CREATE TABLE rolled_%s (a int PRIMARY KEY) USING gcl', i);"
                " END LOOP; RAISE 'no'; EXCEPTION WHEN raise_exception THEN NULL; END $$")
        self.one.run(make.format(n=2), 60)
        eventually(lambda: self.one.one("SELECT held FROM gcl_stat_held WHERE what = 'relations to be freed'") == "0")
        before = self.free()
        self.one.run(make.format(n=320), 300)  # tables and indexes: 640 relations
        self.comes_back(before)

    def test_truncate_costs_no_page_and_no_memory(self):
        self.one.run("CREATE TABLE emptied (a int PRIMARY KEY, b text) USING gcl")
        memory = "SELECT pg_catalog.pg_size_bytes(split_part(pg_catalog.pg_read_file('/proc/self/statm'), ' ', 2)) * 4096"
        loop = ("DO $$ BEGIN FOR i IN 1..{n} LOOP INSERT INTO emptied VALUES (i, 'x'); TRUNCATE emptied; COMMIT; END LOOP; END $$")
        self.one.run(loop.format(n=60), 120)
        before, size = self.free(), int(self.one.one(memory))
        self.one.run(loop.format(n=300), 300)
        self.comes_back(before, but_for=340)  # the log of DDL has an entry for each
        self.assertLess(int(self.one.one(memory)) - size, 4 << 20)

    def test_what_is_dropped_or_rolled_back_goes_while_others_wait_in_time(self):
        self.one.run("CREATE TABLE hot (id int PRIMARY KEY, v int) USING gcl; INSERT INTO hot SELECT i, 0 FROM generate_series(1, 4) i")
        before = self.free()
        self.one.run("BEGIN; CREATE TABLE large USING gcl AS SELECT i, repeat('x', 1000) t FROM generate_series(1, 150000) i", 300)
        self.assertLess(self.free(), before - 15000)
        a, b = self.cluster.session(1), self.cluster.session(2)
        self.one.run("ROLLBACK")  # at once: nothing is freed by who rolls back
        for session, row in ((a, 1), (b, 2)):
            session.run("SET deadlock_timeout = '200ms'")
            session.run(f"BEGIN; UPDATE hot SET v = v + 1 WHERE id = {row}")
        self.assertLess(self.free(), before - 1000, "it is being freed")
        began = time.monotonic()
        a.send("UPDATE hot SET v = v + 1 WHERE id = 2")
        b.send("UPDATE hot SET v = v + 1 WHERE id = 1")
        eventually(lambda: not a.waits(0.05) or not b.waits(0.05))
        took = time.monotonic() - began
        self.assertLess(took, 5, "a deadlock across primaries is found while pages are freed")
        states = []
        for session in (a, b):
            try:
                session.result()
            except Exception as error:  # pylint: disable=broad-except
                states.append(getattr(error, "state", None))
            session.run("ROLLBACK")
        self.assertIn("40P01", states)
        self.comes_back(before, seconds=120)

    def test_an_interrupted_index_build_leaves_nothing(self):
        self.one.run("CREATE TABLE keys USING gcl AS SELECT i FROM generate_series(1, 200000) i", 120)
        before = self.free()
        builder = self.cluster.session(1)
        pid = builder.pid()
        builder.send("BEGIN; CREATE INDEX ON keys (i); SELECT pg_terminate_backend(pg_backend_pid())")
        eventually(lambda: not self.one.run(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"), 120)
        self.comes_back(before)

    def test_rolled_back_transactions_cost_their_ids_and_no_memory_of_each_process(self):
        self.one.run("CREATE TABLE undone (a int) USING gcl")
        undo = ("DO $$ BEGIN FOR i IN 1..{n} LOOP BEGIN INSERT INTO undone VALUES (i); RAISE 'no';"
                " EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$")
        before = self.free()
        self.one.run(undo.format(n=20000), 300)
        self.one.run("VACUUM undone", 60)
        self.assertLess(before - self.free(), 20000 * 8 // 8192 + 400)


class ARestart(unittest.TestCase):
    def test_what_a_primary_had_not_freed_when_it_stopped_is_freed(self):
        with Cluster(primaries=2, pool="256MB") as cluster:
            two = cluster.session(2)
            free = lambda: int(two.one("SELECT free_pool_pages FROM gcl_stat_space"))  # noqa: E731
            cluster.sql(1, "CREATE TABLE stays (a int) USING gcl")
            before = free()
            one = cluster.session(1)
            one.run("CREATE TABLE large USING gcl AS SELECT i, repeat('x', 1000) t FROM generate_series(1, 50000) i", 120)
            one.run("DROP TABLE large", 60)
            one.close()
            cluster.stop(1)
            eventually(lambda: free() >= before - 2 * LIST_PAGES, 60)  # by the other one, or before it stopped
            cluster.start(1)
            self.assertEqual(["0"], cluster.sql(1, "SELECT count(*) FROM stays"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
