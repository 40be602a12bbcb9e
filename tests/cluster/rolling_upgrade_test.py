"""Other software for a cluster that works: one primary after the other, while the others serve (docs/UPGRADING.md)."""
import contextlib
import fcntl
import glob
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

from data_directory import account
from harness import GCLCTL, NOT_SERVING, SEED, Cluster, Load, SqlError, eventually, together
from installation import next_installation

FORMAT_AT = 8  # in a pool's header
VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'gcl'"
ACCOUNTS, EACH = 30, 100
TABLES = f"""CREATE TABLE ledger (k int, n int, PRIMARY KEY (k, n)) USING gcl; CREATE TABLE acct (id int PRIMARY KEY, bal int) USING gcl;
             INSERT INTO acct SELECT i, {EACH} FROM generate_series(1, {ACCOUNTS}) i"""


def server_version(program):
    said = subprocess.run([program, "--version"], text=True, capture_output=True, check=True, **account()).stdout
    return re.search(r"\d+\.\d+", said).group()


def claim_another_minor(prefix):
    """The server in it says from now on that it is of another minor version: in its texts, and as a number."""
    program = glob.glob(f"{prefix}/**/bin/postgres", recursive=True)[0]
    version = server_version(program)
    other = version[:-1] + str((int(version[-1]) + 1) % 10)
    number, other_number = (int(v.split(".")[0]) * 10000 + int(v.split(".")[1]) for v in (version, other))
    with open(program, "rb") as file:
        image = file.read()
    image = image.replace(version.encode(), other.encode()).replace(struct.pack("<I", number), struct.pack("<I", other_number))
    with open(program, "wb") as file:
        file.write(image)
    return other


def waits(sent, pid):
    """A signal for a process that stands still."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return bool(int(re.search(r"ShdPnd:\s*(\w+)", status.read()).group(1), 16) & 1 << (sent - 1))


class Upgrade(unittest.TestCase):
    maxDiff = None  # a failure beside the load is told whole

    def setUp(self):
        self.next = next_installation(self)
        self.cluster = self.enterContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        self.now = self.cluster.sql(1, VERSION)[0]
        self.cluster.sql(1, TABLES)
        self.acknowledged = {k: [] for k in (1, 2, 3)}  # what clients were told of

    def prefix(self, k):
        return os.path.realpath(f"{self.cluster.dir}/node{k}/prefix")

    def write(self, k, load):
        """Transfers, each with a line in the ledger, as a client that connects again when its primary is away."""
        session, n = None, 0
        while load.goes_on():
            n += 1
            try:
                session = session or self.cluster.session(k)
                session.run(f"BEGIN; INSERT INTO ledger VALUES ({k}, {n}); UPDATE acct SET bal = bal - 1 WHERE id = {n * k % ACCOUNTS + 1};"
                            f"UPDATE acct SET bal = bal + 1 WHERE id = {(n * k + 7) % ACCOUNTS + 1}; COMMIT")
                self.acknowledged[k].append(n)
            except SqlError as error:
                if error.state == "40P01":
                    session.run("ROLLBACK")
                elif error.state in NOT_SERVING:
                    session = None
                    time.sleep(0.1)
                else:
                    raise

    def go_on(self, away=None):
        before = {k: len(told) for k, told in self.acknowledged.items() if k != away}
        eventually(lambda: all(len(self.acknowledged[k]) > count + 1 for k, count in before.items()), 60)

    # `words`: regular expressions.
    def assert_refused(self, k, state, words, sql):
        session = self.cluster.session(k)
        with self.assertRaises(SqlError, msg=sql) as caught:
            session.run(sql)
        self.assertEqual(state, caught.exception.state, caught.exception)
        said = "\n".join(line for line in session.collected if line)
        for word in words:
            self.assertRegex(said, word)

    def assert_nothing_lost(self):
        for k in (1, 2, 3):
            there = set(self.cluster.sql(k, "SELECT k, n FROM ledger"))
            told = {f"{writer}|{n}" for writer, numbers in self.acknowledged.items() for n in numbers}
            self.assertEqual(set(), told - there, f"acknowledged, and not there on primary {k}")
            self.assertEqual([str(ACCOUNTS * EACH)], self.cluster.sql(k, "SELECT sum(bal) FROM acct"))
            for table in ("ledger", "acct"):
                self.assertEqual([], self.cluster.sql(k, f"SELECT * FROM gcl_check('{table}', true)"))

    def under_load(self, work):
        """Clients of all primaries write meanwhile."""
        load = Load(600, lambda: True)  # at most

        def worked():
            try:
                work()
            finally:
                load.end()

        self.assertEqual([], together([lambda k=k: self.write(k, load) for k in (1, 2, 3)] + [worked], load))
        self.assert_nothing_lost()

    def test_one_primary_after_the_other(self):
        self.under_load(self.roll)
        # ALTER EXTENSION, on one primary, reaches all.
        self.cluster.sql(2, "ALTER EXTENSION gcl UPDATE")
        for answer in self.cluster.everywhere(f"{VERSION}; SELECT gcl_version(); SELECT gcl_next()"):
            self.assertEqual([self.next.version] * 3, answer)
        # One prefix is left, and a second upgrade has nothing to do.
        self.assertEqual(1, len(glob.glob(f"{self.cluster.dir}/prefix*")))
        self.assertEqual(3, self.next.ctl("upgrade", self.cluster.dir).stdout.count("already"))
        self.next.ctl("stop", self.cluster.dir)
        self.next.ctl("start", self.cluster.dir)
        self.assert_nothing_lost()

    def roll(self):
        c = self.cluster
        self.go_on()
        # Primary 1 by hand, and its PostgreSQL is of another minor version, too.
        c.stop(1)
        self.next.ctl("upgrade", c.dir, "--node", "1")
        minor = claim_another_minor(self.prefix(1))
        self.go_on(away=1)
        c.start(1)
        self.assertTrue(c.sql(1, "SHOW server_version")[0].startswith(minor))
        self.assertNotEqual(c.sql(1, "SHOW server_version_num"), c.sql(2, "SHOW server_version_num"))
        self.assertEqual([[self.next.version], [self.now], [self.now]], c.everywhere("SELECT gcl_version()"))
        self.assertEqual([[self.now]] * 3, c.everywhere(VERSION))
        self.assertIn(f"PostgreSQL {minor}, gcl {self.next.version}", c.ctl("status", c.dir).stdout)
        self.go_on()
        # Mixed: DDL from each side; the extension stays as it is.
        c.sql(1, "CREATE TABLE of_new (i int PRIMARY KEY) USING gcl; INSERT INTO of_new VALUES (1)")
        c.sql(2, "CREATE TABLE of_old (i int PRIMARY KEY) USING gcl; INSERT INTO of_old VALUES (2); ALTER TABLE of_new ADD COLUMN t text DEFAULT 'x'")
        self.assertEqual([["1|x|2"]] * 3, c.everywhere("SELECT * FROM of_new, of_old"))
        # Both others are older; which of the two says so first is open.
        self.assert_refused(1, "55000", ["primary [23]", f"has version {re.escape(self.now)} here", "gclctl upgrade"], "ALTER EXTENSION gcl UPDATE")
        self.assertEqual([[self.now]] * 3, c.everywhere(VERSION))
        # A death of the new one is repaired by the old ones, and the other way round.
        for k in (1, 2):
            c.kill_all(k)
            self.go_on(away=k)
            c.start(k)
            self.go_on()
        # Primary 2 by one command.
        said = self.next.ctl("upgrade", c.dir, "--node", "2").stdout
        self.assertIn(f"gcl {self.next.version} in place of", said)
        self.assertIn("primary 2 is up", said)
        self.go_on()
        # The rest by one command, too: primary 1 gets the installed PostgreSQL again.
        said = self.next.ctl("upgrade", c.dir).stdout
        self.assertIn("ALTER EXTENSION gcl UPDATE", said)
        self.assertEqual([[self.next.version]] * 3, c.everywhere("SELECT gcl_version()"))
        self.assertEqual(1, len({server_version(program) for program in glob.glob(f"{c.dir}/prefix*/**/bin/postgres", recursive=True)}))
        self.go_on()

    def test_a_primary_that_was_away_while_the_extension_was_updated(self):
        c = self.cluster
        c.stop(3)
        for k in (1, 2):
            self.next.ctl("upgrade", c.dir, "--node", str(k))
        c.sql(1, "ALTER EXTENSION gcl UPDATE")
        c.sql(1, "CREATE TABLE later (i int) USING gcl; INSERT INTO later VALUES (7)")
        c.start(3)  # with the library of before
        self.assert_refused(3, "55000", [re.escape(f"has version {self.now} here, and the extension is to have version {self.next.version}")],
                            "SELECT count(*) FROM acct")
        self.assertEqual([self.now], c.sql(3, VERSION))
        c.sql(2, "INSERT INTO later VALUES (8)")
        self.next.ctl("upgrade", c.dir, "--node", "3")
        eventually(lambda: c.sql(3, VERSION) == [self.next.version])
        self.assertEqual([["15"]] * 3, c.everywhere("SELECT sum(i) FROM later"))
        # One that is made now has the software of the one that it is made from.
        c.ctl("remove-primary", c.dir, "--node", "3", "--delete-data")
        c.ctl("add-primary", c.dir, "--node", "3")
        c.start(3)
        self.assertEqual([[self.next.version]] * 3, c.everywhere("SELECT gcl_version()"))

    def test_software_that_cannot_use_the_pool(self):
        """Nothing is stopped for it."""
        c = self.cluster
        postmasters = [c.postmaster(k) for k in (1, 2, 3)]
        pool = c.pool_dir() + "/pool"
        with open(pool, "r+b") as file:
            header = file.read(65536)
            protocol_at = header.index(b"server version=15") + 4096  # behind the compatibility lines
            for at, words in ((FORMAT_AT, "format version"), (protocol_at, "protocol version")):
                before = header[at:at + 4]
                file.seek(at)
                file.write(struct.pack("<I", struct.unpack("<I", before)[0] + 1))
                file.flush()
                done = self.next.ctl("upgrade", c.dir, check=False)
                self.assertEqual(1, done.returncode, done.stdout)
                self.assertIn(words, done.stderr)
                self.assertIn("Nothing was changed", done.stderr)
                self.assertFalse(os.path.lexists(f"{c.dir}/node1/prefix"))
                self.assertEqual(postmasters, [c.postmaster(k) for k in (1, 2, 3)])
                self.assertEqual([[str(ACCOUNTS)]] * 3, c.everywhere("SELECT count(*) FROM acct"))
                # The server says so itself.
                c.stop(3)
                self.assertNotEqual(0, c.ctl("start", c.dir, "--node", "3", check=False).returncode)
                program = glob.glob(f"{c.dir}/prefix/**/bin/postgres", recursive=True)[0]
                data = f"{c.dir}/node3/data"
                done = subprocess.run([program, "-D", data], text=True, capture_output=True, timeout=60, cwd=data, check=False, **account())
                self.assertIn(words, done.stderr)
                self.assertIn("HINT:  All primaries of a pool have one major version", done.stderr)
                file.seek(at)
                file.write(before)
                file.flush()
                c.start(3)
                postmasters[2] = c.postmaster(3)
        self.assertEqual([[str(ACCOUNTS)]] * 3, c.everywhere("SELECT count(*) FROM acct"))

    @contextlib.contextmanager
    def upgrading(self, *arguments, program=None):
        """gclctl upgrade, which is killed in the end, with the child that has given up root."""
        command = [program or self.next.gclctl, "upgrade", self.cluster.dir, *arguments]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as upgrade:
            try:
                yield upgrade
            finally:
                os.killpg(upgrade.pid, signal.SIGKILL)

    def is_down(self, k):
        return not os.path.exists(f"{self.cluster.dir}/node{k}/data/postmaster.pid")

    def status(self):
        return self.cluster.ctl("status", self.cluster.dir, check=False).stdout

    def interrupted(self):
        return f"an upgrade to .*, gcl {re.escape(self.next.version)} was INTERRUPTED here; it goes on with: gclctl upgrade {self.cluster.dir}"

    def test_one_that_is_killed_between_stop_and_start(self):
        c = self.cluster
        c.stop(3)  # the only one that is to be down

        def work():
            self.go_on(away=3)
            with open(f"{c.dir}/node1/start.lock", "rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)  # nobody starts primary 1
                with self.upgrading():
                    eventually(lambda: self.is_down(1) and os.path.lexists(f"{c.dir}/node1/prefix"))
                    self.assertRegex(self.status(), f"gclctl upgrade gives it .*, gcl {re.escape(self.next.version)}\n")
                self.assertRegex(self.status(), self.interrupted())
            self.assertTrue(self.is_down(1))
            self.assertIn("primary 1 is up", self.next.ctl("upgrade", c.dir).stdout)
            self.assertNotIn("upgrade", self.status())
            self.assertTrue(self.is_down(3))
            c.start(3)

        self.under_load(work)
        self.assertEqual([[self.next.version]] * 3, c.everywhere("SELECT gcl_version()"))

    def test_one_that_is_killed_before_the_primary_has_stopped(self):
        """It stops all the same, and with what it had."""
        c = self.cluster
        for k in (1, 2):
            postmaster = c.postmaster(k)
            os.kill(postmaster, signal.SIGSTOP)
            with self.upgrading("--node", str(k)):
                eventually(lambda k=k: os.path.exists(f"{c.dir}/node{k}/upgrade"))
                eventually(lambda pid=postmaster: waits(signal.SIGINT, pid))
            os.kill(postmaster, signal.SIGCONT)
            eventually(lambda k=k: self.is_down(k))
        self.assertEqual(2, len(re.findall(self.interrupted(), self.status())))
        c.stop(1)  # that one is to be down from now on
        self.assertEqual(1, len(re.findall(self.interrupted(), self.status())))
        self.assertIn("primary 2 is up", self.next.ctl("upgrade", c.dir).stdout)
        self.assertTrue(self.is_down(1))
        c.start(1)
        self.assertEqual([[self.next.version]] * 3, c.everywhere("SELECT gcl_version()"))

    def test_one_that_is_killed_at_any_moment(self):
        """To and fro, so that there is always something to exchange."""
        c, moments, told_of = self.cluster, random.Random(SEED), 0
        for turn in range(6):
            with self.upgrading(program=self.next.gclctl if turn % 2 == 0 else GCLCTL) as upgrade:
                eventually(lambda: upgrade.poll() is not None or any(map(self.is_down, (1, 2, 3))), 60)  # pylint: disable=cell-var-from-loop
                time.sleep(moments.uniform(0, 1))
            eventually(lambda: "does not answer" not in self.status(), 60)
            told = self.status()
            for k in filter(self.is_down, (1, 2, 3)):
                with self.subTest(turn=turn, primary=k, GCL_SEED=SEED):
                    told_of += 1
                    self.assertRegex(told, rf"primary {k} .* down\n(           .*\n)?           an upgrade to .* was INTERRUPTED here")
        self.assertGreater(told_of, 0)
        self.next.ctl("upgrade", c.dir)
        self.assertEqual([[self.next.version]] * 3, c.everywhere("SELECT gcl_version()"))
        self.assertNotIn("INTERRUPTED", self.status())
        self.assertEqual(1, len(glob.glob(f"{c.dir}/prefix*")))

    def test_software_that_does_not_start(self):
        """The primary has what it had again."""
        c = self.cluster
        with open(f"{self.next.dir}/lib/gcl.so", "wb") as library:
            library.write(b"no library")
        done = self.next.ctl("upgrade", c.dir, check=False)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("primary 1 does not start with", done.stderr)
        self.assertIn("runs with what it had", done.stderr)
        self.assertIn("file too short", done.stderr)
        self.assertEqual([[self.now]] * 3, c.everywhere("SELECT gcl_version()"))
        self.assertEqual([f"{c.dir}/prefix"], glob.glob(f"{c.dir}/prefix*"))

    def test_a_directory_that_cannot_be_written(self):
        """As on a full disk: the primary is not stopped."""
        c = self.cluster
        postmaster = c.postmaster(2)
        os.chmod(f"{c.dir}/node2", 0o500)
        try:
            done = self.next.ctl("upgrade", c.dir, check=False)
        finally:
            os.chmod(f"{c.dir}/node2", 0o755)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("Permission denied", done.stderr)
        self.assertEqual(postmaster, c.postmaster(2))
        self.assertEqual([[self.next.version], [self.now], [self.now]], c.everywhere("SELECT gcl_version()"))
        self.next.ctl("upgrade", c.dir)
        self.assertEqual([[self.next.version]] * 3, c.everywhere("SELECT gcl_version()"))

    def test_a_primary_that_is_being_added(self):
        """It would have the software that goes when all others have got what is new."""
        c = self.cluster
        path = f"{c.dir}/primaries.lock"
        with open(path, "w", encoding="ascii") as lock:
            if os.geteuid() == 0:
                shutil.chown(path, "postgres", "postgres")
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.next.ctl("upgrade", c.dir, check=False)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("another gclctl adds a primary", done.stderr)
        self.assertEqual([[self.now]] * 3, c.everywhere("SELECT gcl_version()"))

    def test_a_primary_that_cannot_be_started(self):
        """Somebody has its port when it is stopped: with what it had it does not start either, but it has that."""
        c, ended, taken = self.cluster, threading.Event(), []

        def take():
            while not ended.is_set() and not taken:
                with contextlib.suppress(OSError), contextlib.ExitStack() as unless_taken:
                    one = unless_taken.enter_context(socket.socket())
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port is reserved for us
                    one.bind(("127.0.0.1", c.ports.base))
                    one.listen()
                    taken.append(one)
                    unless_taken.pop_all()
                time.sleep(0.001)

        taker = threading.Thread(target=take)
        taker.start()
        try:
            done = self.next.ctl("upgrade", c.dir, "--node", "1", check=False)
        finally:
            ended.set()
            taker.join()
            for one in taken:
                one.close()
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn(f"port {c.ports.base} (primary 1) is in use", done.stderr)
        self.assertIn("nor with what it had", done.stderr)
        self.assertEqual([f"{c.dir}/prefix"], glob.glob(f"{c.dir}/prefix*"))
        c.start(1)
        self.assertEqual([[self.now]] * 3, c.everywhere("SELECT gcl_version()"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
