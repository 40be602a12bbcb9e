"""What gclctl refuses, and that it leaves nothing behind."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import GCLCTL, Cluster, Session, data_directory, eventually, give, new_dir, ports, together


class Gclctl(unittest.TestCase):
    def setUp(self):
        self.parent = new_dir()
        os.chmod(self.parent, 0o755)
        self.addCleanup(shutil.rmtree, self.parent, True)
        self.dir = os.path.join(self.parent, "c")
        self.addCleanup(lambda: os.path.exists(self.dir + "/cluster.conf") and self.ctl("destroy", self.dir))
        reserved = ports.Reservation(2)
        self.addCleanup(reserved.close)
        self.port = reserved.base

    def ctl(self, *arguments):
        done = subprocess.run([GCLCTL, *arguments], text=True, capture_output=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def init(self, *more):
        return self.ctl("init", self.dir, "--primaries", "2", "--port", str(self.port), "--pool-size", "256MB",
                        "--cache-size", "16MB", *more)

    def assert_refused(self, answer, words):
        self.assertNotEqual(0, answer[0])
        self.assertIn(words, answer[1])

    def test_a_directory_that_is_not_its_own(self):
        os.mkdir(self.dir)
        with open(self.dir + "/precious", "w", encoding="ascii") as f:
            f.write("x")
        self.assert_refused(self.init(), "not empty")
        for verb in ("start", "stop", "status", "destroy"):
            self.assert_refused(self.ctl(verb, self.dir), "not a directory made by gclctl")
        self.assertEqual(["precious"], os.listdir(self.dir))

    def test_what_is_to_be_copied_is_no_data_directory(self):
        self.assert_refused(self.init("--data-from", self.parent), "that is no data directory")
        self.assertFalse(os.path.exists(self.dir))

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port is reserved for us
            taken.bind(("127.0.0.1", self.port + 1))
            taken.listen()
            self.assert_refused(self.init(), f"port {self.port + 1} (primary 2) is in use")
        self.assertFalse(os.path.exists(self.dir))

    def test_a_pool_that_does_not_fit(self):
        with tempfile.NamedTemporaryFile(prefix="gcl-", dir="/dev/shm") as of_another:  # pools come and go beside us
            self.assert_refused(self.init("--pool-size", "9999GB"), "MB free")
            self.assertTrue(os.path.exists(of_another.name))
        self.assertFalse(os.path.exists(self.dir))

    def test_a_size_that_is_none(self):
        for size, words in (("much", "not a size"), ("1 GB", "not a size"), ("-1MB", "not a size"), ("1GBs", "not a size"),
                            ("999999999TB", "more than 64 TB"), ("0GB", "at least 64 MB"), ("63MB", "at least 64 MB")):
            self.assert_refused(self.init("--pool-size", size), words)
        self.assert_refused(self.init("--cache-size", "1023kB"), "at least 1 MB")
        self.assert_refused(self.init("--pool-size", "64MB", "--memory-nodes", "5"), "16 MB for each of 5 memory nodes")
        self.assertFalse(os.path.exists(self.dir))

    def test_arguments_that_are_wrong(self):
        for arguments, words in (((), "subcommand is required"), (("frob",), "subcommand is required"),
                                 (("init", self.dir), "--primaries is required"), (("start",), "DIR is required"),
                                 (("init", self.dir, "--primaries", "0"), "not in range 1 to 32"),
                                 (("init", self.dir, "--primaries", "two"), "two"),
                                 (("init", self.dir, "--primaries", "2", "--port", "80"), "not in range 1024 to"),
                                 (("init", self.dir, "--primaries", "2", "--memory-nodes", "65"), "not in range 1 to 64"),
                                 (("start", self.dir, "--node", "-1"), "--node"), (("dsn", self.dir, "first"), "first"),
                                 (("make-pool", self.dir + "/p", "--primaries", "2"), "--saved is required")):
            with self.subTest(arguments):
                self.assert_refused(self.ctl(*arguments), words)
        self.assert_refused(self.init("--set", "fsync"), "--set fsync: write NAME=VALUE")
        self.assert_refused(self.init("--set", "a=b\nc=d"), "write NAME=VALUE")
        self.assert_refused(self.init("--memory-dir", "/no/where"), "/no/where")
        self.assertFalse(os.path.exists(self.dir))

    def test_a_setting_with_quotes_arrives(self):
        self.assertEqual(0, self.init("--set", "cluster_name=it's a \\ 'name'")[0])
        code, said = self.ctl("start", self.dir, "--node", "1")
        self.assertEqual(0, code, said)
        said = self.ctl("psql", self.dir, "1", "-XAtqc", "SHOW cluster_name")[1]
        self.assertEqual("it's a \\ 'name'", said.strip())
        self.assert_refused(self.ctl("stop", self.dir, "--node", "3"), "no primary 3: the cluster has 2")

    def test_a_description_that_is_damaged(self):
        self.assertEqual(0, self.init()[0])
        conf = self.dir + "/cluster.conf"
        with open(conf, encoding="utf-8") as f:
            text = f.read()
        self.addCleanup(lambda: self.ctl("destroy", self.dir))

        def write(changed):
            with open(conf, "w", encoding="utf-8") as f:
                f.write(changed)

        self.addCleanup(write, text)
        for key, line, words in (("primaries", "primaries=two", "Value two not in range 1 to 32"),
                                 ("primaries", "primaries=99", "Value 99 not in range 1 to 32"),
                                 ("primaries", "primaries=-1", "Value -1 not in range 1 to 32"),
                                 ("primaries", "primaries=2\nprimaries=1", "At Most 1 required but received 2"),
                                 ("port", "port=", "not in range 1 to"), ("port", "port=65504", "Value 65504 not in range"),
                                 ("cache_bytes", "cache_bytes=16MB", "Value 16MB not in range"),
                                 ("cache_bytes", "bytes=16777216", "cache_bytes is required"), ("id", "id=", "id: it is empty"),
                                 ("socket_dir", 'socket_dir=""', "socket_dir: it is empty"),
                                 ("removed", "removed=two", "Value two not in range 1 to 32"),
                                 ("removed", "removed=2 33", "Value 33 not in range 1 to 32"),
                                 ("memory_dir", "[memory_dir]", "memory_dir is required"), ("locale", "", "locale is required")):
            changed, lines = re.subn(f"(?m)^{key}=.*$", line, text)
            self.assertEqual(1, lines)
            write(changed)
            for verb in ("start", "status", "stop", "destroy"):
                with self.subTest(line, verb=verb):
                    answer = self.ctl(verb, self.dir)
                    self.assert_refused(answer, f"gclctl: {conf}: {key}")
                    self.assert_refused(answer, words)
                    self.assert_refused(answer, "every key has a line KEY=VALUE there")

    def test_a_description_without_quotes(self):
        """As gclctl wrote it first, and as somebody writes who mends it: the value is the rest of the line."""
        self.dir = os.path.join(self.parent, "a, [b] #c; it's")
        self.assertEqual(0, self.init()[0])
        self.addCleanup(lambda: self.ctl("destroy", self.dir))
        conf = self.dir + "/cluster.conf"
        code, dsn = self.ctl("dsn", self.dir, "1")
        self.assertEqual(0, code, dsn)
        self.assertIn(str(self.port), dsn)
        with open(conf, encoding="utf-8") as f:
            text = f.read()
        self.assertRegex(text, '(?m)^socket_dir=".*"$')
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text.replace('"', "") + "what.another=version [wrote\n")
        self.assertEqual((0, dsn), self.ctl("dsn", self.dir, "1"))
        self.assertIn(f"primary 2  port {self.port + 1}", self.ctl("status", self.dir)[1])

    def test_a_server_that_differs_from_the_pool(self):
        self.assertEqual(0, self.init()[0])
        conf = self.dir + "/cluster.conf"
        with open(conf, encoding="utf-8") as f:
            text = f.read()
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text.replace("C.UTF-8", "de_DE.UTF-8"))
        code, said = self.ctl("start", self.dir)
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text)
        self.assertNotEqual(0, code)
        self.assertIn("C.UTF-8", said)
        self.assertIn("de_DE.UTF-8", said)
        self.assertEqual(0, self.ctl("destroy", self.dir)[0])

    def test_destroy_removes_the_memory_of_a_killed_server(self):
        self.assertEqual(0, self.init()[0])
        self.assertEqual(0, self.ctl("start", self.dir)[0])
        with open(self.dir + "/node1/data/postmaster.pid", encoding="ascii") as f:
            lines = f.read().splitlines()
        server, system_v = int(lines[0]), lines[6].split()[1]
        with open(f"/proc/{server}/maps", encoding="ascii") as f:
            mapped = {line.split()[5] for line in f if "/dev/shm/PostgreSQL" in line}
        self.assertTrue(mapped)
        # One of the server's processes is slow to see its end, and has the memory until then.
        slow = int(subprocess.check_output(["psql", "-XAtq", "-d", self.ctl("dsn", self.dir, "1")[1].strip(), "-c",
                                            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"], text=True))
        os.kill(slow, signal.SIGSTOP)
        os.kill(server, signal.SIGKILL)
        later = threading.Timer(1.5, os.kill, (slow, signal.SIGCONT))
        later.start()
        self.assertEqual(0, self.ctl("destroy", self.dir)[0])
        later.join()
        self.assertEqual([], [path for path in mapped if os.path.exists(path)])
        with open("/proc/sysvipc/shm", encoding="ascii") as f:
            self.assertNotIn(system_v, [line.split()[1] for line in f])

    def test_a_pool_for_servers_of_others(self):
        os.mkdir(self.dir)
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres")
        make = ("make-pool", self.dir + "/pool", "--saved", self.dir + "/saved", "--primaries", "2", "--size", "64MB")
        code, said = self.ctl(*make, "--locale", "UTF8/C")
        self.assertEqual(0, code, said)
        for line in (f"gcl.pool = '{self.dir}/pool'", f"gcl.pool_file = '{self.dir}/saved'", "gcl.locale = 'UTF8/C'"):
            self.assertIn(line + "\n", said)
        with open(self.dir + "/pool", "rb") as f:
            self.assertIn(b"locale=UTF8/C\n", f.read(1 << 16))
        self.assert_refused(self.ctl(*make), "there already")
        os.remove(self.dir + "/pool")
        self.assert_refused(self.ctl(*make), "saved is there already")
        self.assertFalse(os.path.exists(self.dir + "/pool"))
        os.remove(self.dir + "/saved")
        code, said = self.ctl(*make, "--memory-nodes", "3")
        self.assertEqual(0, code, said)
        for name in ("pool", "pool.mem1", "pool.mem2", "saved", "saved.mem1", "saved.mem2"):
            self.assertTrue(os.path.exists(f"{self.dir}/{name}"), name)
        self.assertFalse(os.path.exists(self.dir + "/pool.mem3"))

    def test_a_pool_of_others_grows(self):
        os.mkdir(self.dir)
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres")
        pool, saved, other = (f"{self.dir}/{name}" for name in ("pool", "saved", "other"))
        for file, copy in ((pool, saved), (other, other + ".saved")):
            code, said = self.ctl("make-pool", file, "--saved", copy, "--primaries", "2", "--size", "64MB")
            self.assertEqual(0, code, said)
        more = ("add-memory", pool, "16MB")
        for arguments, words in ((more, "--saved FILE"), ((*more, "--saved", saved + "2"), "No such file"),
                                 ((*more, "--saved", other + ".saved"), "is not the pool that"),
                                 ((*more, "--saved", saved + ".mem1"), "No such file"),
                                 (("add-memory", self.dir, "16MB", "--saved", saved), "is a directory"),
                                 (("add-memory", pool, "1MB", "--saved", saved), "at least 16 MB"),
                                 (("add-memory", pool, "9999GB", "--saved", saved), "MB free")):
            with self.subTest(arguments):
                self.assert_refused(self.ctl(*arguments), words)
        files = ["other", "other.lock", "other.saved", "pool", "pool.lock", "saved"]
        self.assertEqual(files, sorted(os.listdir(self.dir)))
        code, said = self.ctl(*more, "--saved", saved)
        self.assertEqual((0, "the pool has 2 memory nodes and 80 MB\n"), (code, said))
        self.assertEqual([*files[:5], "pool.mem1", "saved", "saved.mem1"], sorted(os.listdir(self.dir)))
        self.assertEqual({os.stat(pool).st_uid}, {os.stat(f"{self.dir}/{name}").st_uid for name in os.listdir(self.dir)})
        for name in (pool, pool + ".mem1"):
            os.remove(name)
        os.mkdir(saved + ".next.mem2")  # stands for a disk that is full
        code, said = self.ctl(*more, "--saved", saved)
        self.assertEqual(2, code, said)
        for words in ("3 memory nodes and 9", "added, but not saved", "start a server and stop it"):
            self.assertIn(words, said)
        self.assertTrue(os.path.exists(pool + ".mem2"), "it was loaded, and has grown")

    def test_init_start_status_stop_destroy(self):
        self.assertEqual((0, True), (lambda a: (a[0], "cluster of 2" in a[1]))(self.init()))
        self.assertNotEqual(0, self.ctl("status", self.dir)[0])
        code, said = self.ctl("start", self.dir)
        self.assertEqual(0, code, said)
        self.assertEqual(0, self.ctl("status", self.dir)[0])
        for k in ("1", "2"):
            dsn = self.ctl("dsn", self.dir, k)[1].strip()
            shown = subprocess.run(["psql", "-XAtq", "-d", dsn, "-c", "SHOW gcl.node_id"], text=True, capture_output=True)
            self.assertEqual(k, shown.stdout.strip(), shown.stderr)
            self.assertEqual((0, k), (lambda a: (a[0], a[1].strip()))(
                self.ctl("psql", self.dir, k, "-XAtqc", "SHOW gcl.node_id")))
        self.assertIn("no primary 3", self.ctl("dsn", self.dir, "3")[1])
        code, said = self.ctl("stop", self.dir)
        self.assertEqual(0, code, said)
        self.assertIn("saved", said)
        self.assertNotEqual(0, self.ctl("status", self.dir)[0])
        self.assertEqual(0, self.ctl("destroy", self.dir)[0])
        self.assertFalse(os.path.exists(self.dir))


    def test_what_an_init_that_was_killed_has_left_is_removed(self):
        """Also in memory, where nobody would know whose it is."""
        arguments, before = ("--memory-dir", self.parent), os.listdir(self.parent)
        if os.geteuid() == 0:
            shutil.chown(self.parent, "postgres", "postgres")
        makes = subprocess.Popen([GCLCTL, "init", self.dir, "--primaries", "1", "--port", str(self.port), "--pool-size", "256MB",
                                  "--cache-size", "16MB", *arguments], stdout=subprocess.DEVNULL, start_new_session=True)
        while not [name for name in os.listdir(self.parent) if name.startswith("gcl-")]:
            self.assertIsNone(makes.poll())
        os.killpg(makes.pid, signal.SIGKILL)
        makes.wait()
        self.assertFalse(os.path.exists(self.dir + "/cluster.conf"))
        self.assert_refused(self.init(*arguments), f"gclctl destroy {self.dir}")
        code, said = self.ctl("destroy", self.dir)
        self.assertEqual((0, before), (code, os.listdir(self.parent)), said)
        self.assertEqual(0, self.init(*arguments)[0])

    def test_a_server_that_ends_says_why_it_did_this_time(self):
        """Also where it ends before it says that it starts."""
        self.init()
        for broken in ("gcl.conf", "global/pg_control"):
            path = f"{self.dir}/node1/data/{broken}"
            os.rename(path, path + ".away")
            code, said = self.ctl("start", self.dir, "--node", "1")
            os.rename(path + ".away", path)
            self.assertEqual(1, code, said)
            self.assertIn(f"{os.path.basename(broken)}\": No such file or directory", said)
        self.assertNotIn("gcl.conf", said)  # of the time before


class Status(unittest.TestCase):
    def test_the_cluster_at_a_glance(self):
        cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        cluster.sql(1, "CREATE TABLE t (i int PRIMARY KEY) USING gcl; INSERT INTO t SELECT generate_series(1, 9999)")

        def shown():
            return cluster.ctl("status", cluster.dir, check=False).stdout

        said = shown()
        self.assertRegex(said, r"primary 2  port \d+  up \(process \d+\)\n +\d connections, \d+ transactions, .* cache 8 MB, \d+\.\d % hits\n")
        self.assertEqual(1, said.count("DDL lock: free"))
        used, pages = map(int, re.search(r"(\d+) of (\d+) pages in use", said).groups())
        self.assertTrue(0 < used < pages)
        one = cluster.session(1)
        one.run("BEGIN; CREATE TABLE u (i int) USING gcl")
        said = shown()
        self.assertIn(f"DDL lock: primary 1, process {one.pid()}, for ", said)
        self.assertRegex(said, r"primary 1  .*\n +[1-9]\d* connections")  # those that end just now may be counted
        one.run("COMMIT; INSERT INTO u SELECT generate_series(1, 50000)")
        self.assertGreater(int(re.search(r"(\d+) of \d+ pages in use", shown()).group(1)), used + 100)
        # One that is stopped is shown as such, and is not waited for for ever.
        victim = cluster.postmaster(2)
        os.kill(victim, signal.SIGSTOP)
        try:
            began = time.monotonic()
            self.assertRegex(shown(), r"primary 2  port \d+  process \d+ does not answer\n")
            self.assertLess(time.monotonic() - began, 60)
        finally:
            os.kill(victim, signal.SIGCONT)

    def test_wal_that_is_not_kept(self):
        """Somebody has dropped the slot."""
        cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        shown = cluster.ctl("status", cluster.dir).stdout
        self.assertEqual(2, len(re.findall(r"keeps \d+ MB of WAL;", shown)), shown)
        cluster.sql(2, "SELECT pg_drop_replication_slot('gcl')")
        shown = cluster.ctl("status", cluster.dir).stdout
        self.assertEqual(1, len(re.findall(r"keeps \d+ MB of WAL;", shown)), shown)
        self.assertIn("; keeps no WAL for the pool: there is no replication slot gcl;", shown.partition("primary 2")[2])


class DataDirectories(unittest.TestCase):
    """Which primaries run: what their data directories say, and where these lie."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        self.cluster.sql(1, "CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")

    def test_the_number_of_a_dead_postmaster_is_another_accounts_process(self):
        """As after a loss of power: it may be any process, and what it works in cannot be seen."""
        if os.stat("/proc/1").st_uid == os.stat(self.cluster.dir).st_uid:
            self.skipTest("the first process is of the servers' account")
        numbers = [self.cluster.postmaster(k) for k in (1, 2)]
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in (1, 2)]))
        eventually(lambda: not any(os.path.exists(f"/proc/{number}") for number in numbers))  # sockets have these numbers, too
        for k in (1, 2):
            with open(f"{self.cluster.dir}/node{k}/data/postmaster.pid", "r+", encoding="ascii") as file:
                lines = file.readlines()
                file.seek(0)
                file.writelines(["1\n", *lines[1:]])
                file.truncate()
        shutil.rmtree(self.cluster.pool_dir())
        self.assertEqual(2, self.cluster.ctl("status", self.cluster.dir, check=False).stdout.count("  down\n"))
        self.assertIn("0 of 2 primaries stopped", self.cluster.ctl("stop", self.cluster.dir, check=False).stdout)
        self.cluster.start()
        self.assertEqual([["1"]] * 2, self.cluster.everywhere("SELECT i FROM t"))

    def test_what_outlives_one_whose_number_is_another_process(self):
        pid = self.cluster.session(1).pid()
        self.addCleanup(give, signal.SIGKILL, pid)
        number = self.cluster.postmaster(1)
        self.assertEqual([], together([lambda: self.cluster.kill_all(1, but=pid), lambda: self.cluster.kill_all(2)]))
        eventually(lambda: not os.path.exists(f"/proc/{number}"))  # its socket has that number, too
        with open(f"{self.cluster.dir}/node1/data/postmaster.pid", "r+", encoding="ascii") as file:
            lines = file.readlines()
            file.seek(0)
            file.writelines([f"{os.getpid()}\n", *lines[1:]])
            file.truncate()
        done = self.cluster.ctl("start", self.cluster.dir)
        self.assertIn(f"killed process {pid}, which has outlived the former server of primary 1", done.stderr)
        self.assertEqual([["1"]] * 2, self.cluster.everywhere("SELECT i FROM t"))

    def test_one_that_was_moved_and_is_behind_a_link(self):
        c, moved = self.cluster, f"{os.path.dirname(self.cluster.dir)}/moved"
        c.stop()
        os.rename(f"{c.dir}/node1/data", moved)
        os.symlink(moved, f"{c.dir}/node1/data")
        c.start()
        self.assertIn("primary 1 runs already", c.ctl("start", c.dir, "--node", "1").stdout)
        pid = c.session(1).pid()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(give, signal.SIGKILL, pid)
        c.kill_all(1, but=pid)
        eventually(lambda: f"while it has process {pid}\n" in c.ctl("status", c.dir, check=False).stdout)
        give(signal.SIGKILL, pid)
        c.start()
        self.assertIn("2 of 2 primaries stopped", c.stop().stdout)
        c.ctl("destroy", c.dir)
        self.assertFalse(os.path.exists(f"{moved}/PG_VERSION"), "nothing is left, wherever it is")


class Dead(unittest.TestCase):
    """`status` names the primaries that have died, and what their repair waits for."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, pool="64MB", cache="8MB"))
        self.cluster.sql(1, "CREATE TABLE t (i int PRIMARY KEY) USING gcl; INSERT INTO t SELECT generate_series(1, 999)")

    def shown(self, k):
        """The lines of that primary."""
        said = self.cluster.ctl("status", self.cluster.dir, check=False).stdout
        return re.search(rf"(?m)^primary {k}  .*\n(?:  .*\n)*", said).group(0)

    def stop_process(self, pid):
        """Until the test ends, or the function that is returned is called."""
        os.kill(pid, signal.SIGSTOP)

        def go_on():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

        self.addCleanup(go_on)
        return go_on

    def test_a_survivor_that_stands_still_is_waited_for(self):
        self.assertNotIn("DEAD", self.shown(2))
        go_on = self.stop_process(self.cluster.workers(3)["gcl message worker"])
        self.cluster.kill_all(2)
        eventually(lambda: "its repair waits for primary" in self.shown(2))  # before that, until its death is in the journal
        self.assertRegex(self.shown(2), r"  down\n +DEAD \(its worker was there \d+ s ago\), and its repair waits for primary 3\n")
        self.assertNotIn("DEAD", self.shown(1) + self.shown(3))
        go_on()
        eventually(lambda: "DEAD" not in self.shown(2))
        self.assertIn("  down\n", self.shown(2))
        self.cluster.start(2)
        self.assertRegex(self.shown(2), r"up \(process \d+\)\n +\d connections")

    def test_a_process_that_keeps_a_death_from_being_certain(self):
        pid = self.cluster.session(2).pid()
        go_on = self.stop_process(pid)
        os.kill(self.cluster.postmaster(2), signal.SIGKILL)
        eventually(lambda: self.shown(2).endswith(f"not certain to the others while it has process {pid}\n"))
        go_on()
        eventually(lambda: "it has" not in self.shown(2) and "DEAD" not in self.shown(2))

    def test_nobody_is_left(self):
        # One after the other, they might be repaired.
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in (1, 2, 3)]))
        for k in (1, 2, 3):
            self.assertRegex(self.shown(k), r"  down\n +(DEAD|it has died) \(")
        self.cluster.start(3)
        eventually(lambda: all("DEAD" not in self.shown(k) for k in (1, 2, 3)))


class Hostile(unittest.TestCase):
    """What belongs to another user is neither believed nor run with more rights than its owner's."""

    # A superuser who runs it makes mallory a superuser.
    TRAP = """CREATE FUNCTION {schema}.trap() RETURNS int LANGUAGE plpgsql AS $$BEGIN
        IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN ALTER ROLE mallory SUPERUSER; END IF;
        RETURN 1; END$$"""

    def test_status_in_a_database_of_somebody_else(self):
        cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB", extension=False))

        def in_hers(sql, user="mallory"):
            session = Session(f"{cluster.dsn(1)} dbname=m user={user}")
            try:
                session.run(sql)
            finally:
                session.close()

        cluster.sql(1, "CREATE ROLE mallory LOGIN")
        cluster.sql(2, "CREATE DATABASE m OWNER mallory")
        in_hers("CREATE EXTENSION gcl", "postgres")
        in_hers("CREATE SCHEMA evil; " + self.TRAP.format(schema="evil"))
        for lure in ("pg_extension", "pg_namespace", "pg_database", "gcl_stat_node", "gcl_stat_space", "gcl_ddl_lock", "gcl_stat_ddl"):
            in_hers(f"CREATE VIEW evil.{lure} AS SELECT 'gcl'::name AS extname WHERE evil.trap() = 1")
        in_hers("""CREATE FUNCTION evil.op(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.trap() = 1';
                   CREATE OPERATOR evil.= (FUNCTION = evil.op, LEFTARG = name, RIGHTARG = text)""")
        for setting in ("search_path = evil, pg_catalog, public", "role = mallory", "default_transaction_read_only = on"):
            in_hers(f"ALTER DATABASE m SET {setting}")
            said = cluster.ctl("status", cluster.dir).stdout
            self.assertEqual([["f"], ["f"]], cluster.everywhere("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"))
            self.assertEqual(2, said.count("% hits"), said)
            self.assertIn("DDL lock: free", said)

    def new_parent(self, has_data=data_directory.path().exists()):
        parent = new_dir()
        os.chmod(parent, 0o755)
        self.addCleanup(shutil.rmtree, parent, True)
        reserved = ports.Reservation(1)
        self.addCleanup(reserved.close)
        self.init = ("--primaries", "1", "--port", str(reserved.base), "--pool-size", "64MB", "--cache-size", "16MB")
        if has_data:
            self.init += ("--data-from", str(data_directory.path()))
        return parent

    def ctl(self, *arguments, code=0):
        done = subprocess.run([GCLCTL, *arguments], text=True, capture_output=True, timeout=120)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_path_with_a_blank_and_a_quote(self):
        path = self.new_parent() + "/o'ne two"
        self.ctl("init", path, *self.init)
        self.addCleanup(self.ctl, "destroy", path)
        self.ctl("start", path)
        dsn = self.ctl("dsn", path, "1").strip()
        self.assertEqual("1", subprocess.check_output(["psql", "-XAtqd", dsn, "-c", "SHOW gcl.node_id"], text=True).strip())
        self.assertIn("up (process", self.ctl("status", path))

    def test_a_memory_directory_that_somebody_else_has_made(self):
        path = self.new_parent() + "/c"
        self.ctl("init", path, *self.init)
        self.addCleanup(self.ctl, "destroy", path)
        with open(path + "/cluster.conf", encoding="utf-8") as f:
            pool = "/dev/shm/gcl-" + re.search('^id="?([^"\n]+)', f.read(), re.M).group(1)
        shutil.rmtree(pool)
        os.symlink("/var/tmp", pool)
        try:
            self.assertIn(f"{pool} is there and belongs to somebody else: remove it", self.ctl("start", path, code=1))
        finally:
            os.remove(pool)

    def as_root(self):
        """A directory in which `nobody` has free hand."""
        if os.geteuid() != 0:
            self.assertNotEqual(0, os.geteuid())  # only root has rights to lose: the tests above ran so
            return None
        parent = self.new_parent(has_data=False)  # what is there to be copied belongs to another account
        os.mkdir(parent + "/his", 0o755)
        shutil.chown(parent + "/his", "nobody", "nogroup")
        return parent + "/his"

    def test_root_runs_what_lies_in_the_directory_as_its_owner(self):
        his = self.as_root()
        if not his:
            return
        path = his + "/c"
        os.mkdir(path)
        shutil.chown(path, "nobody", "nogroup")
        self.ctl("init", path, *self.init)
        owners = {os.lstat(os.path.join(at, name)).st_uid for at, dirs, files in os.walk(path) for name in dirs + files}
        self.assertEqual({os.stat(path).st_uid}, owners)
        # The owner may write anything there, and decides neither who the owner is nor who runs the cluster.
        with open(path + "/cluster.conf", "a", encoding="utf-8") as f:
            f.write("account=root\n")
        servers = [os.path.join(at, "postgres") for at, _, files in os.walk(path + "/prefix") if "postgres" in files]
        self.assertEqual(1, len(servers))
        os.rename(servers[0], servers[0] + ".real")
        witness = his + "/witness"
        with open(servers[0], "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\nid -un >>{witness}\nexec {servers[0]}.real "$@"\n')
        os.chmod(servers[0], 0o755)
        for verb in ("status", "start", "stop", "add-memory", "destroy"):
            with self.subTest(verb):
                subprocess.run([GCLCTL, verb, path, *(["16MB"] if verb == "add-memory" else [])], check=False, capture_output=True)
        with open(witness, encoding="ascii") as f:
            self.assertEqual({"nobody"}, set(f.read().split()))
        self.assertEqual(["witness"], os.listdir(his))

    def test_root_follows_no_link_and_makes_nothing_for_root(self):
        his = self.as_root()
        if not his:
            return
        answer = self.ctl("init", his + "/c", *self.init, code=1)  # the account `postgres` may not make it there
        self.assertIn("Permission denied", answer)
        self.assertEqual([], os.listdir(his))
        mine = self.new_parent() + "/c"
        self.ctl("init", mine, *self.init)
        conf, owner = mine + "/cluster.conf", os.stat(mine).st_uid
        os.rename(conf, conf + ".real")
        for lure in (lambda: os.symlink(conf + ".real", conf), lambda: shutil.copy(conf + ".real", conf), lambda: os.mkfifo(conf)):
            lure()  # a link, a file of root's, one without a writer
            for verb in ("status", "destroy"):
                self.assertIn("not a directory made by gclctl init", self.ctl(verb, mine, code=1))
            os.remove(conf)
        os.rename(conf + ".real", conf)
        for path in (mine, conf):
            os.chown(path, 0, 0)
        self.assertIn("root runs no servers", self.ctl("status", mine, code=1))
        for path in (mine, conf):
            os.chown(path, owner, -1)
        self.ctl("destroy", mine)


class OtherUsers(unittest.TestCase):
    """A user who is neither root nor the cluster's owner is told so; an ordinary user has clusters too."""

    def setUp(self):
        if os.geteuid() != 0:  # only root can become another user; all of the above ran as an ordinary user
            self.user = {}
        else:
            self.user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        self.parent = new_dir()
        self.addCleanup(shutil.rmtree, self.parent, True)
        os.chmod(self.parent, 0o755)
        # The build may lie where others cannot look.
        build = os.path.dirname(os.path.dirname(os.path.abspath(GCLCTL)))
        for name in ("bin/gclctl", "bin/gcl_memnode", "lib/gcl.so"):
            os.makedirs(os.path.join(self.parent, "build", os.path.dirname(name)), exist_ok=True)
            shutil.copy(os.path.join(build, name), os.path.join(self.parent, "build", name))
        shutil.copytree(os.path.join(build, "share"), os.path.join(self.parent, "build", "share"))
        self.mine, self.his = os.path.join(self.parent, "mine", "c"), os.path.join(self.parent, "his", "c")
        for path in (self.mine, self.his):
            os.mkdir(os.path.dirname(path), 0o755)
        if self.user:
            shutil.chown(os.path.dirname(self.his), "nobody", "nogroup")
        reserved = ports.Reservation(3)
        self.addCleanup(reserved.close)
        self.port = reserved.base

    def run_as(self, user, verb, path, *arguments):
        done = subprocess.run([os.path.join(self.parent, "build/bin/gclctl"), verb, path, *arguments], text=True, cwd="/",
                              capture_output=True, timeout=100, **user)
        return done.returncode, done.stdout + done.stderr

    def init(self, user, path, primaries, port):
        answer = self.run_as(user, "init", path, "--primaries", str(primaries), "--port", str(port), "--pool-size",
                             "64MB", "--cache-size", "16MB")
        if answer[0] == 0:
            self.addCleanup(lambda: os.path.exists(path) and self.run_as({}, "destroy", path))
        return answer

    def test_a_cluster_of_an_ordinary_user(self):
        def answer(*arguments):
            code, said = self.run_as(self.user, arguments[0], self.his, *arguments[1:])
            self.assertEqual(0, code, said)
            return said.strip()

        self.assertEqual(0, self.init(self.user, self.his, 2, self.port)[0])
        answer("start")
        answer("psql", "1", "-XAtqc", "CREATE EXTENSION gcl; CREATE TABLE t AS SELECT 7 AS i", "-c",
               "CREATE TABLE g (i int) USING gcl; INSERT INTO g TABLE t")
        self.assertEqual("7", answer("psql", "2", "-XAtqc", "TABLE g"))
        shown = "SELECT current_database(), current_user, current_setting('gcl.node_id')"
        self.assertEqual("template1|postgres|2", answer("psql", "2", "-d", "template1", "-XAtqc", shown))
        self.assertEqual("template1|postgres|2", answer("psql", "2", "-XAtqc", shown, "template1"))
        self.assertIn("up", answer("status"))
        self.assertIn("port=", answer("dsn", "2"))
        self.assertIn("saved", answer("stop"))
        answer("destroy")
        self.assertEqual([], os.listdir(os.path.dirname(self.his)))

    def test_a_cluster_of_somebody_else(self):
        if not self.user:
            code, said = self.run_as({}, "init", "/root/c", "--primaries", "1")
            self.assertEqual((1, True), (code, "/root" in said and "Permission denied" in said), said)
            return
        self.assertEqual(0, self.init({}, self.mine, 1, self.port)[0])
        for verb in ("status", "start", "stop", "destroy", "dsn", "psql"):
            code, said = self.run_as(self.user, verb, self.mine, *(["1"] if verb in ("dsn", "psql") else []))
            self.assertEqual((1, f"gclctl: {self.mine}/cluster.conf cannot be read: Permission denied\n"), (code, said))
        os.chmod(self.mine, 0o755)
        for verb in ("status", "start", "stop", "destroy", "psql"):
            code, said = self.run_as(self.user, verb, self.mine, *(["1"] if verb == "psql" else []))
            self.assertEqual((1, 'gclctl: the cluster belongs to "postgres": run gclctl as that user, or as root\n'),
                             (code, said))
        code, said = self.init(self.user, os.path.join(self.parent, "mine", "d"), 1, self.port)
        self.assertEqual((1, f"gclctl: {self.parent}/mine/d: Permission denied\n"), (code, said))


if __name__ == "__main__":
    unittest.main(verbosity=2)
