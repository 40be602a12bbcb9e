"""A pool that takes longer from and to the disk than gclctl waits for anything: it is waited for while that gets on
(gclctl.no-end-while-it-writes).

GCL_SLOW_POOL: the library tests/support/slow_pool.cpp.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import time
import unittest

from harness import GCLCTL, TRANSPORT, Cluster, eventually, has_memory

LIBRARY = os.environ.get("GCL_SLOW_POOL", "build/lib/libslow_pool.so")
WAITS = 120 / 8  # seconds, as the library has it
ROWS = 9000  # four on a page


class SlowCluster(Cluster):
    def __enter__(self):
        library = os.path.join(os.path.dirname(self.dir), "slow_pool.so")  # where the servers' account finds it
        shutil.copy(LIBRARY, library)
        self.slow = {"LD_PRELOAD": library}
        return super().__enter__()

    @contextlib.contextmanager
    def slowly(self):
        """It takes longer than gclctl waits for what does not get on."""
        self.environment = self.slow
        began = time.monotonic()
        try:
            yield
        finally:
            self.environment = {}
        self.test.assertGreater(time.monotonic() - began, WAITS)

    def start(self, node=None):
        self.environment = self.slow  # for what the servers do later, too
        try:
            super().start(node)
        finally:
            self.environment = {}


class LargePool(unittest.TestCase):
    def setUp(self):
        self.cluster = SlowCluster(primaries=1, pool="64MB", cache="8MB")
        self.cluster.test = self
        self.enterContext(self.cluster)
        self.cluster.sql(1, f"CREATE TABLE t (id int, v text) USING gcl; INSERT INTO t SELECT i, repeat('x', 1900) FROM generate_series(1, {ROWS}) i")

    def assert_all_there(self):
        self.assertEqual([str(ROWS)], self.cluster.sql(1, "SELECT count(*) FROM t"))

    def test_it_is_saved_and_loaded(self):
        with self.cluster.slowly():
            self.assertIn("the pool is saved", self.cluster.stop().stdout)
        shutil.rmtree(self.cluster.pool_dir())
        with self.cluster.slowly():
            self.cluster.ctl("start", self.cluster.dir)
        self.assert_all_there()

    @unittest.skipIf(TRANSPORT == "shm", "there is no daemon")
    def test_a_daemon_that_is_to_end_when_it_has_loaded_it(self):
        """As a gclctl has told it that was ended: the next one waits for its end, and starts another one."""
        self.cluster.stop()
        shutil.rmtree(self.cluster.pool_dir())
        with subprocess.Popen([GCLCTL, "start", self.cluster.dir], env={**os.environ, **self.cluster.slow}, start_new_session=True,
                              stdout=subprocess.DEVNULL) as first:
            eventually(lambda: os.path.exists(f"{self.cluster.pool_dir()}/pool.new"))
            os.killpg(first.pid, signal.SIGKILL)
        with open(f"{self.cluster.dir}/memory0/pid", encoding="ascii") as file:
            daemon = int(file.read())
        os.kill(daemon, signal.SIGTERM)
        with self.cluster.slowly():
            self.cluster.ctl("start", self.cluster.dir)
        self.assertFalse(has_memory(daemon))
        self.assert_all_there()


if __name__ == "__main__":
    unittest.main(verbosity=2)
