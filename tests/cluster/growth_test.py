"""What would grow for ever does not: each row of the table in extension/engine/README.md, in a loop that is long enough to show it."""
import signal
import subprocess
import tempfile
import time
import unittest

from harness import Cluster, eventually, give, horizon_passes

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
        reclaim = self.cluster.workers(1)["gcl reclaim"]
        # It stands still where it is idle, and not with a latch.
        eventually(lambda: self.one.one(f"SELECT wait_event FROM pg_stat_activity WHERE pid = {reclaim}") == "Extension")
        give(signal.SIGSTOP, reclaim)
        try:
            self.one.run("ROLLBACK")  # at once: a session that rolls back frees nothing
            for session, row in ((a, 1), (b, 2)):
                session.run("SET deadlock_timeout = '200ms'")
                session.run(f"BEGIN; UPDATE hot SET v = v + 1 WHERE id = {row}")
            self.assertLess(self.free(), before - 1000, "it is to be freed")
        finally:
            give(signal.SIGCONT, reclaim)
        began = time.monotonic()
        a.send("UPDATE hot SET v = v + 1 WHERE id = 2")
        b.send("UPDATE hot SET v = v + 1 WHERE id = 1")
        eventually(lambda: not a.waits(0.05) or not b.waits(0.05))
        took = time.monotonic() - began
        self.assertLess(took, 20, "a deadlock across primaries is found while pages are freed")
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

    def pages_of(self, relation):
        return int(self.two.one(f"SELECT sum(pages) FROM gcl_stat_relations WHERE relname = '{relation}'"))

    def test_rows_that_are_locked_by_several_again_and_again_take_the_same_lock_pages(self):
        self.one.run("CREATE TABLE shared USING gcl AS SELECT s FROM generate_series(1, 200) s", 60)
        lock = "DO $$ BEGIN FOR i IN 1..{n} LOOP PERFORM s FROM shared FOR SHARE; COMMIT; END LOOP; END $$"
        self.two.run("BEGIN; SELECT count(*) FROM (SELECT s FROM shared FOR SHARE) t")
        self.one.run(lock.format(n=10), 120)
        before = self.pages_of("shared")
        self.assertGreater(before, 3, "there are lock pages")
        self.one.run(lock.format(n=200), 300)  # 40,000 locks; a page records 508
        self.assertEqual(before, self.pages_of("shared"))
        self.two.run("COMMIT")

    def test_a_row_that_goes_from_primary_to_primary_takes_the_same_pages(self):
        self.one.run("CREATE TABLE passed (id int, v int) USING gcl; INSERT INTO passed VALUES (1, 0)")
        clients = [self.cluster.session(k) for k in (1, 1, 2, 2)]
        loop = ("DO $$ BEGIN FOR i IN 1..{n} LOOP PERFORM v FROM passed FOR UPDATE; UPDATE passed SET v = v + 1; COMMIT;"
                " END LOOP; END $$")

        def go(times):
            for client in clients:
                client.send(loop.format(n=times))
            for client in clients:
                client.result(300)
            return self.pages_of("passed")

        # Each round leaves more than five pages of dead versions.  How many there are at a time depends on the machine.
        pages = [go(200) for _ in range(3)]
        while pages[-1] > pages[-3]:
            self.assertLess(len(pages), 20, pages)
            pages.append(go(200))
        self.assertEqual(str(800 * len(pages)), self.one.one("SELECT v FROM passed"))

    def test_an_index_whose_keys_move_on_takes_the_same_pages(self):
        self.one.run("CREATE TABLE moving (i int PRIMARY KEY) USING gcl WITH (autovacuum_enabled = off)")
        pages = []
        for turn in range(8):
            self.one.run(f"INSERT INTO moving SELECT i FROM generate_series({turn} * 20000 + 1, {turn + 1} * 20000) i;"
                         f" DELETE FROM moving WHERE i <= {turn} * 20000", 120)
            horizon_passes(self.one)
            self.one.run("VACUUM moving", 120)
            pages.append(self.pages_of("moving_pkey"))
        self.assertLessEqual(max(pages[4:]), max(pages[:4]) + 8, pages)

    def test_rows_come_and_go_on_the_same_pages(self):
        self.one.run("CREATE TABLE renewed (i int, t text) USING gcl WITH (autovacuum_enabled = off)")
        pages = []
        for turn in range(8):
            for session in (self.one, self.two):
                session.run("INSERT INTO renewed SELECT i, repeat('x', 500) FROM generate_series(1, 5000) i", 120)
            (self.one, self.two)[turn % 2].run("DELETE FROM renewed", 120)
            horizon_passes(self.one)
            (self.two, self.one)[turn % 2].run("VACUUM renewed", 120)
            pages.append(self.pages_of("renewed"))
        self.assertLessEqual(pages[-1], pages[1] + 16, pages)


UNDO = """DO $$ BEGIN FOR i IN 1..{n} LOOP BEGIN UPDATE undone SET a = -1 WHERE a = i % 100 + 1; RAISE 'no';
          EXCEPTION WHEN raise_exception THEN NULL; END; IF i % 100 = 0 THEN COMMIT; END IF; END LOOP; END $$"""


class NothingWritten(unittest.TestCase):
    NOTHING = "UPDATE undone SET a = 0 WHERE a = -7;"

    def leave_ids(self, cluster):
        """Sessions that were about to write, have found nothing to write, and are gone."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(f"SELECT count(*) FROM undone;\n{self.NOTHING}\n")
            script.flush()
            subprocess.run(["pgbench", "-n", "-C", "-M", "extended", "-t", "10", "-f", script.name, cluster.dsn(1)], check=True,
                           capture_output=True)
        with_cursor = cluster.session(1)
        with_cursor.run(f"BEGIN; DECLARE c CURSOR FOR SELECT * FROM undone; {self.NOTHING} COMMIT")
        with_cursor.close()

    def test_ids_that_nothing_was_written_with_are_passed(self):
        """The log of statuses behind one that is not lies on a page for each thousand ids."""
        with Cluster(primaries=2, pool="128MB") as cluster:
            one, two = cluster.session(1), cluster.session(2)
            one.run("CREATE TABLE undone (a int) USING gcl; INSERT INTO undone SELECT generate_series(1, 100)")
            pages = lambda: int(two.one("SELECT pages FROM gcl_stat_pool WHERE kind = 'other'"))  # noqa: E731
            before = pages()
            self.leave_ids(cluster)
            for _ in range(12):
                one.run(UNDO.format(n=10000), 300)
            eventually(lambda: pages() <= before + 12, 60)


class RolledBack(unittest.TestCase):
    def test_ids_of_rolled_back_transactions_and_savepoints_are_forgotten(self):
        """A list of 8 pages, of a thousand ids each, is worth a pass over this pool."""
        with Cluster(primaries=2, pool="128MB") as cluster:
            one, two = cluster.session(1), cluster.session(2)
            one.run("CREATE TABLE undone (a int) USING gcl; INSERT INTO undone SELECT generate_series(1, 100)")
            lists = lambda: int(two.one("SELECT pages FROM gcl_stat_pool WHERE kind = 'other'"))  # noqa: E731
            before, most = lists(), 0
            for _ in range(6):
                one.run(UNDO.format(n=10000), 300)
                most = max(most, lists())
                self.assertEqual("5050", two.one("SELECT sum(a) FROM undone"))
            eventually(lambda: lists() <= before + 12, 60)
            print(f" {most - before} pages at most", end=" ")
            self.assertEqual(["5050", "5050"], [cluster.sql(k, "SELECT sum(a) FROM undone")[0] for k in (1, 2)])


class ADeparture(unittest.TestCase):
    def test_what_a_primary_that_is_gone_has_left_is_filled_by_the_others(self):
        """The extents and lock pages of that primary stay the table's, and are used like the others'."""
        with Cluster(primaries=2, pool="256MB") as cluster:
            one, two = cluster.session(1), cluster.session(2)
            one.run("CREATE TABLE left_over (i int, t text) USING gcl WITH (autovacuum_enabled = off)")
            two.run("INSERT INTO left_over SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i", 120)
            one.run("BEGIN; SELECT count(*) FROM (SELECT i FROM left_over WHERE i <= 500 FOR SHARE) s", 60)
            two.run("SELECT count(*) FROM (SELECT i FROM left_over WHERE i <= 500 FOR SHARE) s", 60)
            one.run("COMMIT")
            two.close()
            cluster.stop(2)
            pages = lambda: int(one.one("SELECT sum(pages) FROM gcl_stat_relations WHERE relname = 'left_over'"))  # noqa: E731
            before = pages()
            self.assertGreater(before, 1200)
            for _ in range(3):
                one.run("DELETE FROM left_over", 120)
                horizon_passes(one)
                one.run("VACUUM left_over", 120)
                one.run("INSERT INTO left_over SELECT i, repeat('y', 500) FROM generate_series(1, 20000) i", 120)
                self.assertLessEqual(pages(), before + 80)  # a map page, and an extent that is begun
            cluster.start(2)
            self.assertEqual(["20000"], cluster.sql(2, "SELECT count(*) FROM left_over"))


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
