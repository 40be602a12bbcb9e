"""Autovacuum runs on every primary, and each decides by what all of them did."""
import unittest

from harness import Cluster, Load, eventually

OFTEN = ("autovacuum_naptime=1", "autovacuum_vacuum_threshold=100", "autovacuum_vacuum_scale_factor=0",
         "autovacuum_analyze_threshold=100", "autovacuum_analyze_scale_factor=0",
         "autovacuum_vacuum_cost_delay=0")


class Autovacuum(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=OFTEN))

    def stats(self, k, table, columns):
        return self.cluster.sql(k, f"SELECT {columns} FROM pg_stat_user_tables WHERE relname = '{table}'")

    def autovacuums(self, table):
        return sum(int(row) for k in (1, 2, 3) for row in self.stats(k, table, "autovacuum_count"))

    def test_the_server_s_counters_are_filled(self):
        one = self.cluster.session(1)
        one.run("CREATE TABLE counted (id int PRIMARY KEY, v int, w int) USING gcl WITH (autovacuum_enabled = false)")
        one.run("INSERT INTO counted SELECT i, 0, 0 FROM generate_series(1, 10) i")
        one.run("UPDATE counted SET v = 1 WHERE id <= 4")
        one.run("UPDATE counted SET id = id + 100 WHERE id = 10")
        one.run("DELETE FROM counted WHERE id IN (1, 2)")
        one.run("BEGIN; INSERT INTO counted VALUES (50, 0, 0)")
        one.run("ROLLBACK")
        one.run("SELECT pg_stat_force_next_flush()")
        one.run("SELECT 1")
        self.assertEqual("11|5|2|4|8|8", one.one(
            """SELECT n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_live_tup, n_dead_tup
               FROM pg_stat_user_tables WHERE relname = 'counted'"""))
        one.run("VACUUM counted")
        self.assertEqual("8|t", one.one("""SELECT n_live_tup, last_vacuum IS NOT NULL
                                           FROM pg_stat_user_tables WHERE relname = 'counted'"""))

    def test_a_table_that_is_updated_stays_small(self):
        self.cluster.sql(1, "CREATE TABLE busy (id int PRIMARY KEY, v int) USING gcl")
        self.cluster.sql(1, "CREATE INDEX ON busy (v)")
        self.cluster.sql(1, "INSERT INTO busy SELECT i, 0 FROM generate_series(1, 200) i")
        writer, updates = self.cluster.session(2), 0

        def pages():
            return int(writer.one("SELECT pg_relation_size('busy') / 8192"))

        def limit():  # without VACUUM: a line pointer for each version ever, 291 to a page at most
            return updates // 291 // 2

        load = Load(12, lambda: limit() > 40 and pages() < limit())
        while load.goes_on():
            writer.run("UPDATE busy SET v = v + 1")  # every version needs index entries: only VACUUM makes room
            updates += 200
        self.assertGreater(self.autovacuums("busy"), 0)
        self.assertLess(pages(), limit(), f"{updates} updates")
        print(f"{updates} updates, {pages()} pages, {self.autovacuums('busy')} autovacuums")
        self.assertEqual("200", writer.one("SELECT count(*) FROM busy"))

    def test_what_others_changed_is_known_to_a_primary_that_only_reads(self):
        self.cluster.sql(1, "CREATE TABLE read (id int, v int) USING gcl")
        self.assertEqual([["0"]] * 3, self.cluster.everywhere("SELECT count(*) FROM read"))
        self.cluster.sql(1, "INSERT INTO read SELECT i, i % 7 FROM generate_series(1, 1000) i")
        eventually(lambda: self.cluster.sql(
            3, "SELECT n_distinct FROM pg_stats WHERE tablename = 'read' AND attname = 'v'") == ["7"], 60)
        self.assertEqual(["t|0"], self.stats(3, "read", "last_autoanalyze IS NOT NULL, n_tup_ins"))
        self.cluster.sql(1, "UPDATE read SET v = 0")
        eventually(lambda: self.autovacuums("read") > 0, 60)
        # Vacuumed by one, clean for all.
        eventually(lambda: all(int(self.stats(k, "read", "n_dead_tup")[0]) < 100 for k in (1, 2, 3)), 60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
