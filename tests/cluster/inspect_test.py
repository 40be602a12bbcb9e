"""gclctl inspect and trace: a pool in words, while its primaries run, when they are dead, and when they have left."""
import os
import re
import shutil
import signal
import subprocess
import unittest

from harness import GCLCTL, Cluster


class Inspect(unittest.TestCase):
    def ask(self, *arguments, code=0):
        done = self.cluster.ctl(*arguments, check=False)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def inspect(self, kind, *arguments, code=0):
        return self.ask("inspect", kind, self.cluster.dir, *arguments, code=code)

    def trace(self, *arguments, code=0):
        return self.ask("trace", self.cluster.dir, *arguments, code=code)

    def moved_page(self):
        """A page that both primaries write in turn: "0:7"."""
        self.cluster.sql(1, "CREATE TABLE t (i int PRIMARY KEY, v int) USING gcl; INSERT INTO t VALUES (1, 0)")
        for _ in range(3):
            for k in (1, 2):
                self.cluster.sql(k, "UPDATE t SET v = v + 1")
        rows = self.cluster.sql(1, "SELECT memory_node || ':' || page FROM gcl_stat_hot_pages "
                                   "WHERE this AND relid = 't'::regclass AND kind = 'rows' AND requests_sent > 0 LIMIT 1")
        self.assertEqual(1, len(rows))
        return rows[0]

    def assert_tells_of(self, page):
        """Whatever has become of the primaries."""
        said = self.inspect("page", page)
        self.assertRegex(said, rf"^page     {page}\nlatch    [0-9a-f]{{16}}: ")
        self.assertRegex(said, r"\nin pool  heap \(type 5\), version \d+, ")
        self.assertRegex(said, r"\nnode [12]   line \d+\n  page     " + page)
        self.assertRegex(said, r"\n  state    [ISM], operation ")
        self.assertRegex(said, r"\n  frame    heap ")
        told = self.trace("--page", page)
        self.assertRegex(told, rf"node 1 session \d+ (process \d+|\(before\))  page {page}  line \d+ .*request PeerWr from node 2")
        self.assertRegex(told, rf"node 2 session \d+ (process \d+|\(before\))  page {page}  line \d+ .*asks node 1: PeerWr")
        times = re.findall(r"^(\d\d:\d\d:\d\d\.\d{6})  node", told, re.M)
        self.assertEqual(sorted(times), times)
        self.assertGreater(len(times), 10)
        only = self.trace("--node", "2", "--last", "5")
        self.assertEqual((5, 5), (only.count("\n"), only.count("  node 2 ")))
        self.assertRegex(self.inspect("ring", "--node", "1"), r"records  \d+, the last one ends at \d+\n  record   node 1, sequence \d+, ")

    def test_a_cluster_that_runs_and_that_has_stopped(self):
        self.cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        page = self.moved_page()
        self.assert_tells_of(page)
        one = self.cluster.session(1)
        one.run("BEGIN; UPDATE t SET v = v + 1")
        said = self.inspect("arena")
        for k in (1, 2):
            self.assertRegex(said, rf"node {k}   \d+ MB, .*/pool\.node{k}\.\d+\n  worker ")
        self.assertRegex(said, rf"\n  session  \d+, process {one.pid()}, \d+ events\n")
        one.run("COMMIT")
        self.assertRegex(self.inspect("line"), r"node 1   (all lines are at rest|line \d+)")
        self.assertIn(f"page     {page}", self.inspect("line", re.search(r"line (\d+)", self.inspect("page", page, "--node", "1"))[1], "--node", "1"))
        self.assertRegex(self.inspect("ring"), r"arena    head \d+, tail \d+, \d+ bytes in use, ")
        self.assertRegex(self.inspect("pool"), r"in use, .*\n(.*\n)*node 1   live, process \d+, incarnation ")
        marks = self.inspect("status")
        self.assertRegex(marks, r"^clock    \d+\nnode 1   ids assigned up to \d+ at most, ")
        self.assertRegex(self.inspect("status", "1:999999999999", "1:1"), r"id       1:999999999999 .*\n  was never assigned\n")
        self.assertRegex(self.inspect("wal", "--node", "1", "--page", page),
                         rf"[0-9A-F]+/[0-9A-F]+  xid \d+  node 1, sequence (.*\n)*  page {page} becomes version \d+: \[(.*\n)*[1-9]\d* mini-transactions, ")
        # As the server sees its own log.
        end = self.cluster.sql(1, "SELECT pg_switch_wal() IS NOT NULL; INSERT INTO t VALUES (2, 2); SELECT pg_current_wal_flush_lsn()")[1]
        ended = re.search(r"the log ends at (\S+)", self.inspect("wal", "--node", "1"))[1]
        number = lambda lsn: (int(lsn.split("/")[0], 16) << 32) + int(lsn.split("/")[1], 16)
        self.assertLessEqual(number(end), number(ended))
        for arguments, words in ((("page", "0:99999999"), "memory node 0 has "), (("page", "9:1"), "the pool has memory nodes 0 to 0"),
                                 (("page", "one"), "is not a page: write its number"), (("line", "3"), "--node N"),
                                 (("line", "99999999", "--node", "1"), "it has lines 0 to"), (("line", "--node", "99"), "no node 99"),
                                 (("status", "1-2"), "is not a transaction id"), (("wal", "--node", "3"), "no primary 3")):
            with self.subTest(arguments):
                self.assertIn(words, self.inspect(*arguments, code=1))
        self.assertIn("node 0 is not in the pool", self.trace("--node", "0", code=1))
        self.cluster.stop(2)
        self.assertIn("node 2 is not in the pool", self.trace("--node", "2", code=1))
        self.assertRegex(self.trace("--node", "1"), "page ")
        self.cluster.stop()
        self.assertRegex(self.inspect("page", page), rf"^page     {page}\nlatch    0{{16}}: free\nin pool  heap [^\n]*\n$")
        self.assertIn("goes when it leaves in order", self.trace(code=1))
        self.assertIn("no node is in the pool", self.inspect("arena"))
        shutil.rmtree(self.cluster.pool_dir())
        self.assertRegex(self.inspect("page", page), r"this is the saved one\)\npage     .*\nlatch    0{16}: free\nin pool  heap ")
        self.cluster.start()
        self.assertEqual(["1|7", "2|2"], self.cluster.sql(1, "SELECT * FROM t ORDER BY i"))

    def test_a_cluster_that_is_dead(self):
        self.cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB", fences=True))
        self.cluster.holds_nothing = False
        page = self.moved_page()
        # A process that does not run cannot keep the tool from reading.
        victim = self.cluster.workers(1)["gcl message worker"]
        os.kill(victim, signal.SIGSTOP)
        self.assert_tells_of(page)
        for k in (1, 2):
            self.cluster.kill_all(k)
            self.assert_tells_of(page)
        self.assertRegex(self.inspect("pool"), r"node 2   (live|DEAD), process ")
        self.assertRegex(self.inspect("arena"), r"node 1   \d+ MB")

    def test_somebody_elses_cluster(self):
        self.cluster = self.enterContext(Cluster(primaries=1, pool="64MB", cache="8MB", extension=False))
        if os.geteuid() != 0:
            self.assertIn("neither a cluster's directory nor", self.ask("trace", "/no/such/place", code=1))
            return
        # What gclctl needs of the build may lie where others cannot look.
        parent = os.path.dirname(self.cluster.dir)
        program = os.path.join(parent, "gclctl")
        shutil.copy(GCLCTL, program)
        pool = self.cluster.pool_dir() + "/pool"

        def refused(*arguments):
            done = subprocess.run([program, *arguments], text=True, capture_output=True, cwd="/", user="nobody", group="nogroup",
                                  extra_groups=[], timeout=60)
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertEqual("", done.stdout)
            return done.stderr

        mode = os.stat(self.cluster.dir).st_mode
        for verb in (("inspect", "pool"), ("inspect", "page"), ("inspect", "wal"), ("trace",)):
            more = {"page": ("1",), "wal": ("--node", "1")}.get(verb[-1], ())
            self.assertIn("cluster.conf cannot be read: Permission denied", refused(*verb, self.cluster.dir, *more))
        os.chmod(self.cluster.dir, 0o755)
        try:
            self.assertIn('the cluster belongs to "postgres": run gclctl as that user, or as root', refused("trace", self.cluster.dir))
        finally:
            os.chmod(self.cluster.dir, mode)
        self.assertRegex(refused("inspect", "pool", pool), "Permission denied|neither a cluster's directory nor the file of a pool")
        self.assertIn("neither a cluster's directory nor", refused("trace", "/no/such/place"))
        self.assertIn("is not a pool", self.ask("inspect", "pool", self.cluster.dir + "/cluster.conf", code=1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
