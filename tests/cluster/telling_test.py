"""The last hundred lines of a test that fails are enough to find the cause."""
import os
import subprocess
import sys
import unittest

LINES_MAX = 100
FAILS = """
import os, signal, threading, time, unittest
from harness import Cluster, eventually

class Fails(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        self.cluster.sql(1, "CREATE TABLE t (v int) USING gcl; INSERT INTO t VALUES (1)")

    def test_1_that_waits(self):
        self.cluster.session(2).run("BEGIN; UPDATE t SET v = 2")
        waits = self.cluster.session(2)
        waits.send("UPDATE t SET v = 3")
        self.assertTrue(waits.blocked())
        victim = self.cluster.session(1)
        with self.assertRaises(Exception):
            os.kill(victim.pid(), signal.SIGABRT)
            victim.run("SELECT 1")
        eventually(lambda: "may join again" in self.cluster.log(2))
        eventually(lambda: self.cluster.sql(2, "SELECT 'so it ' || 'is'") == ["not so"], 2)

    def test_2_behind_it(self):
        self.fail("for another reason")

    @classmethod
    def tearDownClass(cls):
        print(*("noise " * 10 for _ in range(5)), sep=chr(10))

unittest.main(verbosity=2)
"""


class FailsAtOnce(unittest.TestCase):
    def ends_with(self, script):
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              cwd=os.path.dirname(os.path.abspath(__file__)))
        self.assertEqual(1, done.returncode, done.stdout)
        return "\n".join(done.stdout.splitlines()[-LINES_MAX:])

    def test_the_first_failure_tells_all(self):
        end = self.ends_with(FAILS)
        for words in (r"the end of the log of primary 1", r"terminated by signal 6", r"primary 1 may join again",
                      r"statements without an answer\nprimary 2, test \d+ session \d+, for [\d.]+ s: UPDATE t SET v = 3",
                      r"the last steps\n(.*\n)*.* gclctl start (.*\n)*.* times\): primary 2: SELECT 'so it ' .* so it is\n"
                      r"--- the first failure: test_1_that_waits .*\n(.*\n)*.*Hang: not true within 2 s"):
            with self.subTest(words):
                self.assertRegex(end, words)
        self.assertNotIn("for another reason", end.rpartition("--- the first failure")[2])

    def test_a_cluster_that_does_not_start(self):
        end = self.ends_with("""
import unittest
from harness import Cluster

class Fails(unittest.TestCase):
    def test_it(self):
        self.enterContext(Cluster(primaries=1, settings=("shared_buffers=1kB",)))

unittest.main()
""")
        self.assertRegex(end, r'the end of the log of primary 1\n.*"shared_buffers".*\n(.*\n)*--- the first failure: test_it ')


if __name__ == "__main__":
    unittest.main(verbosity=2)
