"""I/O errors of gclctl: each of its calls on a cluster's files fails in turn.  It says so, with the file and the reason, and nothing
that was acknowledged is lost.  (What the layers below do is tests/io_errors; servers and memory nodes: server_io_errors_test.py.)"""
import os
import shutil
import unittest

from failing_calls import FailingCalls
from harness import Cluster, has_memory, together

PRIMARIES = (1, 2)
ATTEMPTS = 40  # of a command; where it has more calls, those are spread over all


class GclctlIoErrors(unittest.TestCase):
    def setUp(self):
        self.calls = FailingCalls(self, "gclctl")
        self.cluster = self.enterContext(Cluster(primaries=len(PRIMARIES), pool="64MB", cache="8MB"))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (0)")
        self.written = 1

    def write(self):
        self.cluster.sql(1 + self.written % 2, f"INSERT INTO t VALUES ({self.written})")
        self.written += 1

    def ctl(self, fails_at, *arguments):
        """Returns what it said, and whether a call has failed."""
        self.cluster.environment = self.calls.environment
        with self.calls.failing(self.cluster.dir, fails_at):
            done = self.cluster.ctl(*arguments, check=False)
        self.cluster.environment = {}
        return done, self.calls.where() != ""

    def attempts(self, before, *arguments):
        """Each call of the command fails in turn: yields what the command said, and which call it was."""
        before()
        done, _ = self.ctl(0, *arguments)
        self.assertEqual(0, done.returncode, done.stderr)
        yield done, None
        count = self.calls.count()
        self.assertGreater(count, 5)
        failed = 0
        for n in range(1, count + 1, -(-count // ATTEMPTS)):
            before()
            done, has_failed = self.ctl(n, *arguments)
            failed += has_failed
            where = f"{self.calls.where()}: {done.stdout} {done.stderr}"
            with self.subTest(where):
                if has_failed and done.returncode != 0:
                    self.assertIn("Input/output error", done.stderr)
                    self.assertIn(os.path.basename(self.calls.file()), done.stderr)
                yield done, where if has_failed else None
        self.assertGreater(failed, 3)

    def lose(self):
        self.cluster.close_sessions()
        living = [k for k in PRIMARIES if has_memory(self.cluster.postmaster(k))]
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in living]))
        shutil.rmtree(self.cluster.pool_dir(), ignore_errors=True)

    def assert_all_there(self):
        for answer in self.cluster.everywhere("SELECT count(*), max(id) FROM t"):
            self.assertEqual([f"{self.written}|{self.written - 1}"], answer)

    def test_checkpoint(self):
        for done, where in self.attempts(self.write, "checkpoint", self.cluster.dir):
            if where is not None and "unlink" not in where:
                self.assertNotEqual(0, done.returncode, where)
        self.write()
        self.assertEqual(0, self.ctl(0, "checkpoint", self.cluster.dir)[0].returncode)
        self.lose()
        self.cluster.ctl("start", self.cluster.dir)
        self.assert_all_there()

    def test_backup(self):
        to = os.path.join(os.path.dirname(self.cluster.dir), "backup")

        def before():
            shutil.rmtree(to, ignore_errors=True)
            self.write()

        for done, where in self.attempts(before, "backup", self.cluster.dir, to):
            if done.returncode != 0:
                self.assertFalse(os.path.exists(f"{to}/backup.gcl"), "half a backup says that it is whole")
        self.assert_all_there()


if __name__ == "__main__":
    unittest.main()
