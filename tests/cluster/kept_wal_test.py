"""Each primary keeps its WAL from its first join after the pool's last save on (runtime.wal-kept-since-save)."""
import os
import signal
import unittest

from harness import Cluster, SqlError, eventually

TABLE = "CREATE TABLE t (id int PRIMARY KEY) USING gcl"
SLOT = """SELECT coalesce(restart_lsn - '0/0', 0) FROM pg_replication_slots
          WHERE slot_name = 'gcl' AND slot_type = 'physical' AND NOT temporary AND NOT active"""
SEGMENT = 16 << 20


class KeptWal(unittest.TestCase):
    def make(self, primaries, *settings):
        self.cluster = self.enterContext(Cluster(primaries, settings=("min_wal_size=32MB", "autovacuum=off", *settings)))
        self.cluster.sql(1, TABLE)

    def kept_from(self, k):
        """Bytes; 0: nothing."""
        (position,) = self.cluster.sql(k, SLOT)
        return int(position)

    def pass_segments(self, k, count=4):
        """WAL of that many segments is behind the last checkpoint: the server removes what nobody wants."""
        for _ in range(count):
            self.cluster.sql(k, "DELETE FROM t; INSERT INTO t VALUES (1); SELECT pg_switch_wal() IS NOT NULL; CHECKPOINT")

    def there(self, k, position):
        """How many of the segments from that position up to the current one are there, and how many there should be."""
        end = int(self.cluster.sql(k, "SELECT pg_current_wal_lsn() - '0/0'")[0])
        wanted = {f"{1:08X}{n // 256:08X}{n % 256:08X}" for n in range(position // SEGMENT, end // SEGMENT + 1)}
        return len(wanted & set(self.cluster.sql(k, "SELECT name FROM pg_ls_waldir()"))), len(wanted)

    def assert_kept(self, k, position):
        self.assertEqual(position, self.kept_from(k))
        found, wanted = self.there(k, position)
        self.assertEqual(wanted, found)
        return wanted

    def test_it_stays_while_the_pool_is_not_saved(self):
        self.make(2)
        first = {k: self.kept_from(k) for k in (1, 2)}
        self.assertNotIn(0, first.values())
        for k in (1, 2):
            self.pass_segments(k)
        self.assertGreater(self.assert_kept(2, first[2]), 4)
        self.cluster.stop(2)
        self.cluster.start(2)
        self.pass_segments(2, 1)
        self.assert_kept(2, first[2])
        self.cluster.kill_all(2)
        self.cluster.start(2)
        self.pass_segments(2, 1)
        self.assert_kept(2, first[2])
        session = self.cluster.session(2)
        os.kill(session.pid(), signal.SIGKILL)  # the server restarts at home
        eventually(lambda: self.serves(2))
        self.pass_segments(2, 1)
        self.assertGreater(self.assert_kept(2, first[2]), 7)
        self.assert_kept(1, first[1])
        self.assertRegex(self.cluster.ctl("status", self.cluster.dir).stdout, r"(?s)keeps [1-9]\d+ MB of WAL.*keeps [1-9]\d+ MB of WAL")

    def serves(self, k):
        try:
            return self.cluster.sql(k, "SELECT id FROM t") == ["1"]
        except SqlError:
            return False

    def test_it_moves_with_the_pools_saves(self):
        self.make(2)
        first = {k: self.kept_from(k) for k in (1, 2)}
        for k in (1, 2):
            self.pass_segments(k)
        self.assertIn("saved", self.cluster.stop().stdout)
        self.cluster.start(2)
        self.cluster.start(1)
        for k in (1, 2):
            now = self.kept_from(k)
            self.assertGreater(now, first[k] + 4 * SEGMENT)
            self.pass_segments(k, 1)
            found, wanted = self.there(k, first[k])
            self.assertLess(found, wanted, "nobody wants what the save has")
            self.assert_kept(k, now)

    def test_it_is_bounded_and_says_so(self):
        self.make(2, "max_slot_wal_keep_size=16MB")
        self.pass_segments(2)
        self.assertEqual(0, self.kept_from(2))
        self.assertIn("WAL since the last save is lost", self.cluster.ctl("status", self.cluster.dir).stdout)
        self.assertNotIn("is made anew", self.cluster.log(2))
        self.cluster.stop(2)
        self.cluster.start(2)
        eventually(lambda: self.serves(2))
        self.assertIn("is made anew", self.cluster.log(2))
        self.assertIn("it cannot be made out of the primaries' WALs", self.cluster.log(2))
        self.assert_kept(2, self.kept_from(2))
        self.pass_segments(2)
        self.assertEqual(0, self.kept_from(2))
        self.cluster.stop()
        self.cluster.start()
        eventually(lambda: self.serves(2))
        self.assertIn("nothing is missing", self.cluster.log(2))
        self.assert_kept(2, self.kept_from(2))

    def test_a_slot_that_was_dropped_is_missed(self):
        self.make(2)
        self.pass_segments(2, 1)
        self.cluster.sql(2, "SELECT pg_drop_replication_slot('gcl')")
        self.cluster.stop(2)
        self.cluster.start(2)
        eventually(lambda: self.serves(2))
        self.assertIn("it cannot be made out of the primaries' WALs", self.cluster.log(2))
        self.assert_kept(2, self.kept_from(2))

    def test_no_slot_is_free(self):
        """No gcl table is used before there is one; what waits for that can be cancelled, and the server can be stopped."""
        self.make(1, "max_replication_slots=1")
        self.pass_segments(1, 1)
        self.cluster.sql(1, "SELECT pg_drop_replication_slot('gcl'); SELECT pg_create_physical_replication_slot('other')")
        for _ in range(2):
            self.cluster.stop()
            self.cluster.start()
            session = self.cluster.session(1)
            session.run("SET statement_timeout = '1s'")
            with self.assertRaises(SqlError) as caught:
                session.run("SELECT id FROM t")
            self.assertEqual("57014", caught.exception.state, caught.exception)
            session.close()
            self.assertRegex(self.cluster.log(1), r"(?s)ERROR:  gcl: no replication slot is free.*DETAIL:  All 1 are in use.*HINT:  Raise max_replication_slots")
        self.assertNotIn("has not joined its pool yet", self.cluster.log(1), "what waits ends at a stop, not half a minute later")
        self.cluster.sql(1, "SELECT pg_drop_replication_slot('other')")
        eventually(lambda: self.serves(1))
        self.assert_kept(1, self.kept_from(1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
