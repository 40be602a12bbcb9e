"""A test that is killed leaves nothing behind, though it cannot clean up."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import left_behind
from harness import GCLCTL, data_directory, eventually

VICTIM = """
import time
from harness import Cluster
with Cluster(primaries=1, pool="64MB", cache="8MB") as cluster:
    print(cluster.dir, cluster.postmaster(1), cluster.pool_dir(), flush=True)
    time.sleep(600)
"""


def heirs_of(folder):
    """Processes with the folder on their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if left_behind.__file__.encode() in words and str(folder).encode() in words:
            found.append(int(pid))
    return found


class LeftBehind(unittest.TestCase):
    def killed(self, heir_too):
        """The folder of a test that was killed with its cluster under way, its postmaster, and where its pool was."""
        with subprocess.Popen([sys.executable, "-c", VICTIM], stdout=subprocess.PIPE, text=True,
                              cwd=os.path.dirname(os.path.abspath(__file__))) as victim:
            try:
                cluster, postmaster, pool = victim.stdout.readline().split()
                folder = pathlib.Path(cluster).parent
                if heir_too:
                    heir, = heirs_of(folder)
                    os.kill(heir, signal.SIGKILL)
                self.assertFalse(left_behind.is_orphan(folder))
            finally:
                victim.kill()
        return folder, pathlib.Path("/proc", postmaster), pathlib.Path(pool)

    def assert_gone(self, *paths):
        eventually(lambda: not any(path.exists() for path in paths), 60)

    def test_the_heir_stops_its_servers_and_removes_its_files(self):
        self.assert_gone(*self.killed(heir_too=False))

    def test_without_an_heir_the_next_run_does(self):
        left = self.killed(heir_too=True)
        self.assertEqual([True] * 3, [path.exists() for path in left])
        self.assertTrue(left_behind.is_orphan(left[0]))
        left_behind.remove_orphans(data_directory.parent(), GCLCTL)
        self.assert_gone(*left)


if __name__ == "__main__":
    unittest.main(verbosity=2)
