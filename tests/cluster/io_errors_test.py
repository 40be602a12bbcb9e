"""I/O errors of gclctl: each of its calls on a cluster's files fails in turn.  It says so, with the file and the reason, and nothing
that was acknowledged is lost.  (What the layers below do is tests/io_errors.)

Environment: GCL_FAILING_CALLS_LIBRARY, the shim (tests/io_errors/failing_calls.hpp)."""
import ctypes
import mmap
import os
import shutil
import unittest

from harness import Cluster, eventually, has_memory, together

LIBRARY = os.environ["GCL_FAILING_CALLS_LIBRARY"]
PRIMARIES = (1, 2)
EIO = 5
ATTEMPTS = 40  # of a command; where it has more calls, those are spread over all


class Plan(ctypes.Structure):
    """As failing_calls.hpp has it."""
    _fields_ = [("count", ctypes.c_uint64), ("fails_at", ctypes.c_uint64), ("goes_on", ctypes.c_uint32), ("begun", ctypes.c_uint32),
                ("error", ctypes.c_int), ("below", ctypes.c_char * 256), ("call", ctypes.c_char * 32), ("file", ctypes.c_char * 512)]


class GclctlIoErrors(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=len(PRIMARIES), pool="64MB", cache="8MB"))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (0)")
        self.written = 1
        path = os.path.join(os.path.dirname(self.cluster.dir), "plan")
        with open(path, "w+b") as file:
            file.truncate(mmap.PAGESIZE)
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        os.chmod(path, 0o666)  # the servers' account writes there
        self.plan = Plan.from_buffer(self.memory)
        self.plan.error = EIO
        self.plan.below = self.cluster.dir.encode()
        library = shutil.copy(LIBRARY, os.path.dirname(self.cluster.dir))
        self.environment = {"LD_PRELOAD": library, "GCL_FAILING_CALLS": path, "GCL_FAILING_PROGRAM": "gclctl"}

    def write(self):
        self.cluster.sql(1 + self.written % 2, f"INSERT INTO t VALUES ({self.written})")
        self.written += 1

    def ctl(self, fails_at, *arguments):
        """Returns what it said, and whether a call has failed."""
        self.plan.count, self.plan.fails_at, self.plan.call, self.plan.file, self.plan.begun = 0, fails_at, b"", b"", 1
        self.cluster.environment = self.environment
        done = self.cluster.ctl(*arguments, check=False)
        self.cluster.environment, self.plan.begun = {}, 0
        return done, self.plan.call != b""

    def attempts(self, before, *arguments):
        """Each call of the command fails in turn: yields what the command said, and which call it was."""
        before()
        done, _ = self.ctl(0, *arguments)
        self.assertEqual(0, done.returncode, done.stderr)
        yield done, None
        count = self.plan.count
        self.assertGreater(count, 5)
        failed = 0
        for n in range(1, count + 1, -(-count // ATTEMPTS)):
            before()
            done, has_failed = self.ctl(n, *arguments)
            failed += has_failed
            where = f"{self.plan.call.decode()} number {n} of {self.plan.file.decode()}: {done.stdout} {done.stderr}"
            with self.subTest(where):
                if has_failed and done.returncode != 0:
                    self.assertIn("Input/output error", done.stderr)
                    self.assertIn(os.path.basename(self.plan.file.decode()), done.stderr)
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
