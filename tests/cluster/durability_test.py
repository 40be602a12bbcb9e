"""What others see of a commit is durable, whatever the settings of PostgreSQL say that delay or do the flushing of its WAL."""
import unittest

from harness import Cluster, eventually

# Of the WAL that is on the disk: the server reads no further.
FLUSHED = """SELECT count(*) FROM pg_get_wal_records_info_till_end_of_wal('{since}')
             WHERE resource_manager = 'Transaction' AND record_type = 'COMMIT' AND xid = '{xid}'"""
NOW = "SELECT pg_current_wal_flush_lsn()"
LEVELS = ("off", "local", "on", "remote_write", "remote_apply")  # without a synchronous standby the last four are alike
# A session that commits asynchronously waits for the WAL writer, which comes this late.
SETTINGS = ("fsync=on", "autovacuum=off", "wal_writer_delay=10s")


class Durability(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, settings=SETTINGS))
        self.cluster.sql(1, "CREATE TABLE t (i int PRIMARY KEY) USING gcl")
        for k in (1, 2):
            self.cluster.sql(k, "CREATE EXTENSION pg_walinspect; CREATE TABLE own (i int) USING heap")
        self.one, self.look = self.cluster.session(1), self.cluster.session(1)

    def is_flushed(self, since, xid):
        return self.look.one(NOW) != since and self.look.one(FLUSHED.format(since=since, xid=xid)) == "1"

    def commit(self, sql):
        """Whether the commit is on the disk when the client hears of it."""
        since = self.look.one(NOW)
        xid = self.one.run(f"BEGIN; {sql}; SELECT pg_current_xact_id(); COMMIT")[-1]
        return self.is_flushed(since, xid)

    def test_synchronous_commit_off_acts_as_local(self):
        """For what others see; a transaction of nothing but this server's own tables is as with PostgreSQL."""
        for i, level in enumerate(LEVELS):
            self.one.run(f"SET synchronous_commit = {level}")
            self.assertTrue(self.commit(f"INSERT INTO t VALUES ({i})"), level)
            self.assertTrue(self.commit(f"INSERT INTO own VALUES ({i}); UPDATE t SET i = i WHERE i = {i}"), level)
            self.assertTrue(self.commit(f"SAVEPOINT s; DELETE FROM t WHERE i = {i}; RELEASE s"), level)
            self.assertTrue(self.commit(f"CREATE TABLE t{i} (i int) USING gcl"), level)
        self.one.run("SET synchronous_commit = off")
        self.assertFalse(all(self.commit("INSERT INTO own VALUES (1)") for _ in range(5)), "the test sees what is not flushed")

    def test_what_another_primary_sees_is_flushed(self):
        """Asked of the first, as soon as the second sees it; that has the page already, so that nothing is flushed for its sake."""
        two = self.cluster.session(2)
        self.one.run("SET synchronous_commit = off")
        for i in range(30):
            since = self.look.one(NOW)
            xid = self.one.one(f"BEGIN; INSERT INTO t VALUES ({i}); SELECT pg_current_xact_id()")
            self.assertEqual([], two.run(f"SELECT 1 FROM t WHERE i = {i}"))
            self.one.send("COMMIT")
            while not two.run(f"SELECT 1 FROM t WHERE i = {i}"):
                pass
            self.assertTrue(self.is_flushed(since, xid), i)
            self.one.result()

    def test_every_wal_sync_method(self):
        """Each primary's own choice; with each a primary that dies has lost nothing."""
        two = self.cluster.session(2)
        methods = self.one.one("SELECT array_to_string(enumvals, ' ') FROM pg_settings WHERE name = 'wal_sync_method'").split()
        self.assertGreaterEqual(set(methods), {"fsync", "fdatasync", "open_sync", "open_datasync"})
        for i, method in enumerate(methods):
            self.one.run(f"ALTER SYSTEM SET wal_sync_method = {method}")
            self.one.run("SELECT pg_reload_conf()")
            eventually(lambda method=method: self.one.one("SHOW wal_sync_method") == method)
            self.assertTrue(self.commit(f"INSERT INTO t SELECT {i} * 1000 + g FROM generate_series(1, 1000) g"), method)
            self.one.run(f"UPDATE t SET i = -i WHERE i = {i} * 1000 + 1")
            two.run(f"UPDATE t SET i = -i WHERE i = {i} * 1000 + 2")
            self.cluster.kill_all(1)
            self.assertEqual(str(1000 * (i + 1)), two.one("SELECT count(*) FROM t"))
            self.cluster.start(1)
            self.one, self.look = self.cluster.session(1), self.cluster.session(1)
            self.assertEqual(str(2 * (i + 1)), self.one.one("SELECT count(*) FROM t WHERE i < 0"))
            self.assertEqual(method, self.one.one("SHOW wal_sync_method"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
