"""One process of a primary is stopped, and all others of it are killed: it may be in the middle of a change, so the others wait and
repair nothing.  When it goes on, it ends by itself, and only then the primary is dead.  This holds for each kind of process.
"""
import signal
import unittest

from harness import Cluster, SqlError, eventually, give, has_memory
from processes import AUXILIARY, CLIENT, POSTMASTER, of_kinds

VICTIM = 2
ENDS_MAX = 20.0  # seconds until a process whose server is gone has ended
WORKERS = tuple(f"gcl {name}" for name in ("message worker", "provider", "flusher", "member", "statistics", "reclaim", "repair",
                                             "checkpointer", "ddl launcher", "ddl apply"))
WAITS = 1.0  # seconds; survivors look for deaths four times a second
STATE = f"SELECT state FROM gcl_stat_cluster WHERE node = {VICTIM}"
# Changes a row for ever, within one transaction.
FOR_EVER = "DO $$BEGIN LOOP UPDATE t SET v = v + 1 WHERE id = 2; END LOOP; END$$"


class StoppedProcess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("archive_mode=on", "archive_command=true")))
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int, pad text) USING gcl;"
                           "INSERT INTO t SELECT i, 0, repeat('x', 3000) FROM generate_series(1, 20) i")
        for k in (1, 2, 3):
            cls.cluster.sql(k, f"CREATE TABLE own{k} (v int) USING gcl; INSERT INTO own{k} VALUES (0)")

    def setUp(self):
        self.stopped = None

    def tearDown(self):
        if self.stopped:
            give(signal.SIGCONT, self.stopped)
        self.cluster.close_sessions()

    def is_waited_for(self, kind, pid=None):
        """What primary VICTIM had stays its own as long as the process stands; what the others have they use."""
        before = int(self.cluster.sql(VICTIM, "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v")[0])
        self.stopped = pid or of_kinds(self.cluster, VICTIM)[kind][0]
        waits, works = self.cluster.session(1), self.cluster.session(3)
        works.run("UPDATE own3 SET v = v + 1")
        self.cluster.kill_all(VICTIM, but=self.stopped)
        self.assertTrue(has_memory(self.stopped))
        waits.send("UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v")
        self.assertTrue(waits.waits(WAITS))
        works.run("UPDATE own3 SET v = v + 1")
        self.assertEqual(["live"], works.run(STATE))
        self.assertTrue(waits.waits(WAITS))
        return before, waits

    def ends_by_itself(self, kind, pid=None):
        before, waits = self.is_waited_for(kind, pid)
        give(signal.SIGCONT, self.stopped)
        eventually(lambda: not has_memory(self.stopped), ENDS_MAX)
        self.assertEqual([str(before + 1)], waits.result())
        self.cluster.start(VICTIM)
        self.assert_whole(before + 1)

    def assert_whole(self, value):
        self.assertEqual([[f"1|{value}", "2|0"]] * 3, self.cluster.everywhere("SELECT id, v FROM t WHERE id IN (1, 2) ORDER BY id"))
        self.assertEqual([], self.cluster.sql(1, "SELECT * FROM gcl_check('t', true)"))
        self.assertEqual([["f"]] * 3, self.cluster.everywhere("SELECT fenced FROM gcl_stat_node"))

    def test_workers(self):
        for kind in WORKERS:
            with self.subTest(kind):
                self.cluster.sql(1, "CREATE TABLE passing (v int) USING gcl; DROP TABLE passing")  # or there is no apply worker
                self.ends_by_itself(kind)

    def test_processes_of_postgresql(self):
        for kind in AUXILIARY:
            with self.subTest(kind):
                self.ends_by_itself(kind)

    def test_a_backend_without_a_statement(self):
        idle = self.cluster.session(VICTIM)
        idle.run("BEGIN; UPDATE t SET v = -1 WHERE id = 2")
        self.ends_by_itself(CLIENT, idle.pid())

    def test_a_backend_at_work(self):
        """Whatever it has changed when it ends is rolled back."""
        busy = self.cluster.session(VICTIM)
        pid = busy.pid()
        busy.send(FOR_EVER)
        eventually(lambda: self.cluster.sql(VICTIM, "SELECT id FROM t WHERE id = 2 FOR UPDATE SKIP LOCKED") == [])
        self.ends_by_itself(CLIENT, pid)

    def test_a_postmaster(self):
        """It is not dead, and makes its server again."""
        before, waits = self.is_waited_for(POSTMASTER)
        give(signal.SIGCONT, self.stopped)
        self.assertEqual([str(before + 1)], waits.result())
        eventually(self.serves, 60)
        self.assert_whole(before + 1)

    def serves(self):
        try:
            return self.cluster.sql(VICTIM, "SELECT count(*) FROM t") == ["20"]
        except SqlError:
            return False

    def test_one_that_is_killed(self):
        before, waits = self.is_waited_for("gcl provider")
        give(signal.SIGKILL, self.stopped)
        self.assertEqual([str(before + 1)], waits.result())
        self.cluster.start(VICTIM)
        self.assert_whole(before + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
