"""gclctl across hosts: a cluster from one file, and what `gclctl check` says of a network, a key, a file."""
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import unittest

import hosts
import network
from harness import GCLCTL, eventually
from hosts import MEMORY_PORT, Hosts, plan
from network_switch import address

LOOKER = 2  # a host without a part


class TwoHosts(unittest.TestCase):
    def test_a_cluster_from_one_file(self):
        with Hosts() as both:
            said = both.start()
            self.assertIn("memory node 1 is up", said[1].stdout)
            both.sql(1, "CREATE EXTENSION gcl; CREATE TABLE t (i int PRIMARY KEY) USING gcl; INSERT INTO t SELECT generate_series(1, 1000)")
            self.assertEqual(["1000"], both.sql(2, "SELECT count(*) FROM t"))
            both.sql(2, "UPDATE t SET i = i + 1000")
            self.assertEqual(["2000"], both.sql(1, "SELECT max(i) FROM t"))

            for host in both.hosts:
                status = both.ctl(host, "status", both.part(host)).stdout
                for at in both.hosts:
                    self.assertRegex(status, rf"memory {at}   host h{at}  \S+  up, \d+ MB of pages\n")
                    self.assertRegex(status, rf"primary {at + 1}  host h{at}  \S+  in the pool\n")
                self.assertIn(f"primary {host + 1}  port 5432  up", status)
                looked = both.ctl(host, "check", both.part(host))
                self.assertTrue(looked.stdout.endswith("all is well\n"), looked.stdout)

            refused = both.ctl(0, "backup", both.part(0), both.folder / "backup", check=False)
            self.assertEqual(1, refused.returncode)
            self.assertIn("works on clusters of one machine", refused.stderr)
            refused = both.ctl(0, "start", both.part(0), "--node", 2, check=False)
            self.assertIn("primary 2 is on host h1, and this is host h0", refused.stderr)

            first = both.stop(0)
            self.assertEqual(1, first.returncode)
            self.assertIn("primaries 2 of other hosts are in the pool: the memory nodes of this host go on", first.stderr)
            status = both.ctl(1, "status", both.part(1), check=False)
            self.assertEqual(1, status.returncode)
            self.assertRegex(status.stdout, r"primary 1  host h0  \S+  not in the pool\n")
            self.assertEqual(["2000"], both.sql(2, "SELECT max(i) FROM t"))
            both.stop(1, check=True)
            self.assertIn("the pool is saved", both.stop(0, check=True).stdout)

            both.start()
            self.assertEqual(["2000"], both.sql(1, "SELECT max(i) FROM t"))
        self.assertFalse(both.folder.exists())

    def test_all_die_and_come_back_and_memory_that_is_lost_is_said(self):
        with Hosts() as both:
            both.start()
            both.sql(1, "CREATE EXTENSION gcl; CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")
            both.sql(2, "INSERT INTO t VALUES (2)")

            def all_die():
                both.ctl(1, "stop", both.part(1), "--immediate")
                return both.ctl(0, "stop", both.part(0), "--immediate").stdout

            self.assertIn("the pool is in memory, and not all have left it in order: the next start repairs it", all_die())
            both.start()
            self.assertEqual(["1", "2"], both.sql(1, "SELECT i FROM t ORDER BY i"))
            all_die()
            for host in both.hosts:
                shutil.rmtree(both.pool_dir(host))
            refused = both.ctl(0, "start", both.part(0), check=False)
            self.assertEqual(1, refused.returncode)
            self.assertIn("memory node 0 did not start: ", refused.stderr)
            self.assertIn("was in use when the machine", refused.stderr)

    def test_destroy_leaves_nothing(self):
        with Hosts() as both:
            both.start()
            for host, other in ((0, 2), (1, 1)):
                refused = both.ctl(host, "destroy", both.part(host), check=False)
                self.assertEqual(1, refused.returncode)
                self.assertIn(f"primaries {other} of other hosts are in the pool: stop those first", refused.stderr)
                self.assertIn("in the pool", both.ctl(host, "status", both.part(host)).stdout)
            both.stop(0)
            for host in (1, 0):
                both.ctl(host, "destroy", both.part(host))
            self.assertEqual(["cluster.key"], [path.name for path in both.shared.iterdir()])
            self.assertEqual(["cluster.toml", "owner", "shared"], sorted(path.name for path in both.folder.iterdir()))


class YoungMemoryNode(unittest.TestCase):
    """It comes to a cluster that works (tcp.pages-where-all-reach)."""

    def begin(self, both):
        """Memory node 2, on the host that has no part otherwise."""
        account = pwd.getpwnam("postgres")
        here = both.folder / "memory2"
        here.mkdir(mode=0o700)
        os.chown(here, account.pw_uid, account.pw_gid)
        log = self.enterContext(open(both.folder / "memory2.log", "w", encoding="utf-8"))
        at = f"{address(LOOKER)}:{MEMORY_PORT}"
        daemon = subprocess.Popen(
            [*both.network.inside(LOOKER), "setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--init-groups",
             pathlib.Path(GCLCTL).with_name("gcl_memnode"), here / "pool.mem2", "--pages", "64MB", "--saved", both.shared / "pool.saved",
             "--listen", at, "--first", f"{address(0)}:{MEMORY_PORT}", "--key", both.shared / "cluster.key"],
            cwd="/", stdin=subprocess.DEVNULL, stderr=log)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)

    def test_one_that_a_primary_does_not_reach_hurts_nobody_and_is_used_later(self):
        with Hosts(patience=20) as both:  # a busy machine cuts nobody off
            def state(k):
                return both.sql(k, "SELECT state FROM gcl_stat_memory_nodes WHERE memory_node = 2")

            both.start()
            both.sql(1, "CREATE EXTENSION gcl; CREATE TABLE t (i int, x text) USING gcl")
            both.network.cut(LOOKER, 1)
            self.begin(both)
            eventually(lambda: state(1) == ["not used yet"], 60)
            words = f"memory node 2 at {address(LOOKER)}:{MEMORY_PORT} is not used yet: node 2 does not reach it"
            eventually(lambda: words in (both.part(0) / "memory0" / "log").read_text("utf-8"), 60)
            for k in (1, 2):
                both.sql(k, f"INSERT INTO t SELECT {k}, repeat('x', 900) FROM generate_series(1, 2000)")
            self.assertEqual(["not used yet"], state(1))
            self.assertEqual(["no answer"], state(2))
            both.network.heal()
            eventually(lambda: state(1) == state(2) == ["serving"], 60)
            for k in (1, 2):
                both.sql(k, f"INSERT INTO t SELECT {k}, repeat('x', 900) FROM generate_series(1, 2000)")
                self.assertEqual(["8000"] if k == 2 else ["6000"], both.sql(3 - k, "SELECT count(*) FROM t"))
                self.assertNotIn("cut off", (both.part(k - 1) / f"node{k}" / "log").read_text("utf-8"))
            both.stop(0)
            both.stop(1, check=True)
            self.assertIn("the pool is saved", both.stop(0, check=True).stdout)


class Check(unittest.TestCase):
    """By a host that has no part, while the cluster runs."""

    @classmethod
    def setUpClass(cls):
        cls.both = cls.enterClassContext(Hosts())
        cls.both.start()

    def tearDown(self):
        self.both.network.heal()

    def look(self, *pairs, host=LOOKER, more=()):
        """`pairs`: what is another text in the file."""
        text = plan(self.both.shared, 2)
        for old, new in pairs:
            self.assertIn(old, text)
            text = text.replace(old, new)
        file = self.both.folder / "other.toml"
        file.write_text(text, "utf-8")
        return self.both.ctl(host, "check", file, *more, check=False)

    def assert_problem(self, words, done, others=False):
        problems = [line for line in done.stdout.splitlines() if line.startswith("PROBLEM")]
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertRegex("\n".join(problems), words)
        if not others:
            self.assertEqual(1, len(problems), done.stdout)
            self.assertIn("1 problem\n", done.stdout)

    def test_what_is_well_is_said(self):
        done = self.look()
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for words in ("the key in .* can be read by its owner alone", r"memory node 0 on h0 at 10.77.0.1:7400 is reached in [\d.]+ ms; packets of \d+ bytes",
                      "serves pool [0-9a-f]{16} of 2 memory nodes", r"memory node 1 on h1 answers a load in \d+ us .*, and an atomic in \d+ us",
                      "memory node 1 on h1: 64 KB pass", "primary 2 on h1 accepts the key", "all is well"):
            self.assertRegex(done.stdout, words)

    def test_a_host_that_is_not_reached(self):
        self.both.network.cut(LOOKER, 1)
        self.assert_problem("memory node 1 on h1 at 10.77.0.2:7400 is not reached: nothing was heard for 3 s", self.look(), others=True)

    def test_a_port_at_which_nobody_listens(self):
        self.assert_problem("memory node 1 on h1 at 10.77.0.2:7499 is not reached: .*nobody listens", self.look(("10.77.0.2:7400", "10.77.0.2:7499")))

    def test_a_name_that_nobody_knows(self):
        self.assert_problem(r"memory node 1 on h1 at no-such-host.invalid:7400: ", self.look(("10.77.0.2:7400", "no-such-host.invalid:7400")))

    def test_a_path_that_loses_what_is_long(self):
        self.both.network.paths([(0, LOOKER)], size=900)
        self.assert_problem("memory node 0 on h0 answers what is short, and not what is long: .*MTU", self.look())

    def test_another_key(self):
        other = self.both.folder / "other.key"
        other.write_text("17" * 32 + "\n", "ascii")
        other.chmod(0o600)
        self.assert_problem("memory node 0 on h0: .*key", self.look((f"{self.both.shared}/cluster.key", str(other))), others=True)

    def test_a_key_that_others_can_read(self):
        other = self.both.folder / "readable.key"
        shutil.copy(self.both.shared / "cluster.key", other)
        os.chown(other, *(getattr(self.both.shared.stat(), name) for name in ("st_uid", "st_gid")))
        for mode in (0o644, 0o640, 0o604):
            other.chmod(mode)
            self.assert_problem(f"the key: .*readable.key has mode {mode:04o}", self.look((f"{self.both.shared}/cluster.key", str(other))))

    def test_a_key_that_is_not_there(self):
        self.assert_problem("the key: cannot open /nowhere/key: No such file", self.look((f"{self.both.shared}/cluster.key", "/nowhere/key")))

    def test_a_memory_node_that_is_smaller_than_promised(self):
        self.assert_problem(r"memory node 0 on h0 has \d+ MB, and the file promises 2048 MB",
                            self.look(('7400"\nsize = "96MB"\n\n[[primary]]\nnumber = 1', '7400"\nsize = "2GB"\n\n[[primary]]\nnumber = 1')))
        self.assert_problem(r"memory node 1 on h1 has \d+ MB of pages, and the file promises \d+ MB",
                            self.look(('7400"\nsize = "96MB"\n\n[[primary]]\nnumber = 2', '7400"\nsize = "2GB"\n\n[[primary]]\nnumber = 2')))

    def test_addresses_that_are_others(self):
        self.assert_problem("memory node 0 on h0: .*this is memory node 1",
                            self.look(("10.77.0.1:7400", "swap"), ("10.77.0.2:7400", "10.77.0.1:7400"), ("swap", "10.77.0.2:7400")), others=True)
        self.assert_problem("primary 1 on h0: .*this is node 2",
                            self.look(("10.77.0.1:7401", "swap"), ("10.77.0.2:7401", "10.77.0.1:7401"), ("swap", "10.77.0.2:7401")), others=True)

    def test_what_is_to_be_on_this_host(self):
        self.assertEqual(0, self.look(host=1, more=("--host", "h1")).returncode)
        self.assert_problem("memory node 0 is to be on this host, h0, and 10.77.0.1:7400 is no address", self.look(host=1, more=("--host", "h0")), others=True)
        self.assert_problem("/nowhere, where the pool is saved: No such file",
                            self.look((f"{self.both.shared}/pool.saved", "/nowhere/pool.saved"), host=1, more=("--host", "h1")))


class Files(unittest.TestCase):
    """What a file says wrong is refused before anything is looked at, with the line."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="gcl-plan-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.text = plan("/srv/gcl", 2)

    def refused(self, text, verb=("check",)):
        file = self.dir / "cluster.toml"
        file.write_text(text, "utf-8")
        done = subprocess.run([GCLCTL, *verb, file], text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual((1, ""), (done.returncode, done.stdout), done.stderr)
        return done.stderr

    def assert_refused(self, words, old, new, line):
        self.assertIn(old, self.text)
        said = self.refused(self.text.replace(old, new, 1))
        self.assertRegex(said, rf"cluster.toml, line {line}: .*{words}" if line else words)

    def test_each_is_named_with_its_line(self):
        for words, old, new, line in (
                ("two with one number: memory node 0 is on line 6, too", "number = 1\nhost = \"h1\"\naddress = \"10.77.0.2:7400", "number = 0\nhost = \"h1\"\naddress = \"10.77.0.2:7400", 18),
                ("two with one number: primary 1 is on line 12, too", "number = 2", "number = 1", 24),
                ("memory node 0 and primary 2 have one address, 10.77.0.1:7400", "10.77.0.2:7401", "10.77.0.1:7400", 24),
                ("primaries 1 and 2 are both on host h0 with port 5432", 'host = "h1"\naddress = "10.77.0.2:7401', 'host = "h0"\naddress = "10.77.0.2:7401', 24),
                ("the cluster has no \"cashe_size\"", "cache_size", "cashe_size", 4),
                ("this primary has no \"size\"", "port = 5432", "port = 5432\nsize = \"1GB\"", 17),
                ("this memory node lacks \"size\"", 'size = "96MB"', "", 6),
                ("\"size\" of this memory node: \"96\" is not a size; write 256MB", '"96MB"', '"96"', 10),
                ("\"size\" of this memory node is at least 16 MB", '"96MB"', '"1MB"', 10),
                ("\"size\" of this memory node is a text in quotes", '"96MB"', "96", 10),
                ("is a number from 1 to 65535", "port = 5432", "port = 70000", 16),
                ("\"patience\" of the cluster is a number from 2 to 600", "[[memory_node]]", "patience = 1\n[[memory_node]]", 6),
                ("is a number from 1 to 32", "number = 2", "number = 33", 25),
                ("\"address\" of this memory node: ", "10.77.0.1:7400", "10.77.0.1", 9),
                ("is host:port, with a port that others know", "10.77.0.1:7400", "10.77.0.1:0", 9),
                ("is host:port", "10.77.0.1:7400", "unix:/run/gcl", 9),
                ("\"key\" begins with /", "/srv/gcl/cluster.key", "cluster.key", 2),
                ("\"transport\" is tcp", '"tcp"', '"shm"', 1),
                ("is a text in quotes", '"h1"', '""', 20),
                ("there is no memory node 1, but there is number 2", 'number = 1\nhost = "h1"', 'number = 2\nhost = "h1"', None),
                ("is no TOML", 'transport = "tcp"', "transport = tcp", None),
                ("lacks \"primary\"", "[[primary]]", "[[secondary]]", None)):
            with self.subTest(words):
                text = self.text if "lacks \"primary\"" not in words else None
                if text is None:
                    self.assertRegex(self.refused(self.text.replace("[[primary]]", "[[secondary]]")), words)
                else:
                    self.assert_refused(words, old, new, line)

    def test_files_that_are_none(self):
        self.assertIn("longer than 64 KB", self.refused("#" * 300_000))
        self.assertIn("lacks", self.refused(""))
        self.assertIn("is no TOML", self.refused("\0\1\2[[[["))
        done = subprocess.run([GCLCTL, "check", self.dir / "none.toml"], text=True, capture_output=True, timeout=60, check=False)
        self.assertRegex(done.stderr, "none.toml cannot be read: No such file")

    def test_a_host_of_another_name(self):
        (self.dir / "cluster.toml").write_text(self.text, "utf-8")
        for verb in (["check", self.dir / "cluster.toml"], ["init", self.dir / "part", "--cluster", self.dir / "cluster.toml"]):
            done = subprocess.run([GCLCTL, *verb, "--host", "h7"], text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual(1, done.returncode)
            self.assertIn('nothing is on a host "h7": there are h0, h1', done.stderr)
        done = subprocess.run([GCLCTL, "init", self.dir / "part"], text=True, capture_output=True, timeout=60, check=False)
        self.assertIn("--primaries is required, or --cluster", done.stderr)


if __name__ == "__main__":
    network.look()
    unittest.main(verbosity=2)
