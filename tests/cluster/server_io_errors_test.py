"""I/O errors of processes that run: servers, the checkpoints that they have made, memory nodes.  A call on a file of the pool fails, or all
from one on.  What needs it waits or is refused, with the file and the reason; reads and commits elsewhere go on; nothing that was
acknowledged is lost, then and behind a loss of memory.  (gclctl: io_errors_test.py; the layers below: tests/io_errors.)"""
import contextlib
import itertools
import os
import re
import shutil
import threading
import time
import unittest

from failing_calls import FailingCalls
from harness import NOT_SERVING, Cluster, SqlError, eventually, together

PRIMARIES = (1, 2, 3)
REASON = "Input/output error"
NOT_MAPPED = "53200"  # the file of a primary that has just joined: the statement is refused
ATTEMPTS = 8  # spread over the calls, where there are more


class Writer:
    """A client of one primary, which notes what it was told of, and connects again when its primary is away."""

    def __init__(self, cluster, k):
        self.cluster, self.k = cluster, k
        self.told, self.error = 0, None
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.write)

    def write(self):
        session = None
        while not self.ended.is_set() and self.error is None:
            n = next(self.cluster.numbers)
            try:
                session = session or self.cluster.session(self.k)
                session.run(f"INSERT INTO t VALUES ({self.k}, {n}, 'x')", 120)
                self.cluster.acknowledged.add(f"{self.k}|{n}")
                self.told += 1
            except SqlError as error:
                said, session = session and [line for line in session.collected if line], None
                if error.state not in (*NOT_SERVING, NOT_MAPPED):
                    self.error = f"{error} {said}"
                time.sleep(0.05)


class ServerIoErrors(unittest.TestCase):
    def make(self, program, *settings, **options):
        self.calls = FailingCalls(self, program)
        cluster = Cluster(primaries=len(PRIMARIES), pool="64MB", cache="8MB", settings=settings)
        if options.get("tcp"):
            cluster.arguments += ["--transport", "tcp", "--memory-port", str(cluster.ports.base + len(PRIMARIES))]
        cluster.environment = self.calls.environment
        cluster.acknowledged, cluster.numbers = set(), itertools.count(1)
        self.cluster = self.enterContext(cluster)
        self.saved, self.journal = f"{cluster.dir}/pool.saved", f"{cluster.dir}/pool.saved.journal"
        cluster.sql(1, "CREATE TABLE t (k int, n int, pad text, PRIMARY KEY (k, n)) USING gcl")

    @contextlib.contextmanager
    def load(self, *primaries):
        writers = [Writer(self.cluster, k) for k in primaries]
        for writer in writers:
            writer.thread.start()
        try:
            yield writers
        finally:
            for writer in writers:
                writer.ended.set()
            for writer in writers:
                writer.thread.join()
        self.assertEqual([], [str(writer.error) for writer in writers if writer.error])

    def go_on(self, writers):
        before = [writer.told for writer in writers]
        eventually(lambda: all(writer.told > count + 1 or writer.error for writer, count in zip(writers, before)), 60)
        self.assertEqual([], [str(writer.error) for writer in writers if writer.error])

    def assert_nothing_lost(self):
        for rows in self.cluster.everywhere("SELECT k, n FROM t"):
            self.assertEqual(set(), self.cluster.acknowledged - set(rows), "acknowledged, and not there")
        self.assertEqual([[]] * len(PRIMARIES), self.cluster.everywhere("SELECT * FROM gcl_check('t', true)"))

    def lose_memory(self):
        self.cluster.close_sessions()
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in PRIMARIES]))
        shutil.rmtree(self.cluster.pool_dir())
        self.cluster.start()
        self.assert_nothing_lost()

    def said_by(self, *primaries):
        return "".join(self.cluster.log(k) for k in primaries)

    def numbers(self, below, work):
        """Of the calls that `work` makes, some."""
        with self.calls.failing(below, 0):
            work()
        count = self.calls.count()
        self.assertGreater(count, 0)
        return range(1, count + 1, -(-count // ATTEMPTS))

    def saves_that_fail(self, check=lambda: None):
        """Some of the calls of a save of the pool fail in turn; `check` is called where one did."""
        failed = 0
        numbers = self.numbers(self.saved, self.cluster.stop)
        self.cluster.start()
        for n in numbers:
            with self.load(*PRIMARIES) as writers:
                self.go_on(writers)
            self.cluster.close_sessions()
            with self.calls.failing(self.saved, n):
                stopped = self.cluster.ctl("stop", self.cluster.dir, check=False)
            with self.subTest(f"{self.calls.where()}: {stopped.stdout} {stopped.stderr}"):
                self.assertIn("the pool is saved", stopped.stdout)
                if self.calls.where():
                    failed += 1
                    check()
                if os.path.exists(self.cluster.pool_dir()):
                    shutil.rmtree(self.cluster.pool_dir())  # as after a reboot
                self.cluster.start()
                self.assert_nothing_lost()
        self.assertGreater(failed, 2)


class Journal(ServerIoErrors):
    def die(self):
        """Primary 2 does, and is repaired."""
        self.cluster.sql(2, f"INSERT INTO t SELECT 0, {self.turn} * 100 + i, 'x' FROM generate_series(1, 100) i")
        self.cluster.acknowledged |= {f"0|{self.turn * 100 + i}" for i in range(1, 101)}
        self.turn += 1
        self.cluster.kill_all(2)
        session = self.cluster.session(3)
        self.assertEqual([str(self.turn * 100)], session.run("SELECT count(*) FROM t WHERE k = 0", 60))
        session.close()

    def test_a_death(self):
        """Each call of those that note it fails in turn: it is noted all the same, a moment later."""
        self.make("postgres")
        self.turn = 0
        failed = 0
        numbers = self.numbers(self.journal, self.die)
        self.cluster.start(2)
        with self.load(1, 3) as writers:
            for n in numbers:
                with self.calls.failing(self.journal, n):
                    self.die()
                with self.subTest(self.calls.where()):
                    if self.calls.where():
                        failed += 1
                        self.assertRegex(self.said_by(1, 3), f"{os.path.basename(self.calls.file())}: {REASON}")
                    self.cluster.start(2)
                    self.go_on(writers)
        self.assertGreater(failed, 2)
        self.assert_nothing_lost()
        self.lose_memory()

    def test_a_death_while_nothing_can_be_written(self):
        """Its repair waits; what needs none of its pages goes on."""
        self.make("postgres")
        self.cluster.sql(1, "CREATE TABLE b (i int PRIMARY KEY, t text) USING gcl; INSERT INTO b SELECT i, 'b' FROM generate_series(1, 1000) i")
        self.cluster.sql(2, "UPDATE b SET t = 'c'")  # its pages are primary 2's, and so is the page that gives out new ones
        with self.load(1, 3) as writers:
            self.go_on(writers)  # they have pages with room
            with self.calls.failing(self.journal, 1, goes_on=True):
                self.cluster.kill_all(2)
                eventually(lambda: "repair of a dead primary did not go on" in self.said_by(1, 3))
                self.assertIn(f"pool.saved.journal: {REASON}", self.said_by(1, 3))
                self.go_on(writers)
                asks = self.cluster.session(1)
                with self.assertRaises(SqlError) as caught:
                    asks.run("SET statement_timeout = '1s'; SELECT count(*) FROM b WHERE t = 'c'")
                self.assertEqual("57014", caught.exception.state)
                self.assertRegex(self.cluster.ctl("status", self.cluster.dir, check=False).stdout,
                                 r"primary 2 .* down\n +DEAD .*its repair waits until it is in the pool's journal")
            self.assertEqual(["1000"], asks.run("RESET statement_timeout; SELECT count(*) FROM b WHERE t = 'c'", 60))
            self.cluster.start(2)
        self.assert_nothing_lost()
        self.lose_memory()

    def test_a_join(self):
        """Each call of those that note it fails in turn: it serves its own tables, and gcl's a moment later."""
        self.make("postgres")
        self.cluster.sql(3, "CREATE TABLE own (i int) USING heap; INSERT INTO own VALUES (7)")

        def join():
            self.cluster.stop(3)
            self.cluster.start(3)
            self.assertEqual(["7"], self.cluster.sql(3, "SELECT i FROM own"))
            eventually(self.serves)

        failed = 0
        numbers = self.numbers(self.journal, join)
        with self.load(1, 2) as writers:
            for n in numbers:
                with self.calls.failing(self.journal, n):
                    join()
                with self.subTest(self.calls.where()):
                    if self.calls.where():
                        failed += 1
                        self.assertRegex(self.cluster.log(3), f"{os.path.basename(self.calls.file())}: {REASON}")
                    self.go_on(writers)
        self.assertGreater(failed, 2)
        self.assert_nothing_lost()
        self.lose_memory()

    def serves(self):
        try:
            return self.cluster.sql(3, "SELECT count(*) >= 0 FROM t") == ["t"]
        except SqlError as error:
            self.assertIn(error.state, NOT_SERVING)
            return False


class PoolFiles(ServerIoErrors):
    def test_a_start(self):
        """Of the calls on the pool's files, of which the server makes one of its own, one fails: it does not start, and says why."""
        self.make("postgres")

        def start():
            return self.cluster.ctl("start", self.cluster.dir, "--node", "3", check=False)

        failed = set()
        with self.load(1, 2) as writers:
            self.cluster.stop(3)
            for file, numbers in (("pool", self.numbers(f"{self.cluster.pool_dir()}/pool", start)), ("pool.lock", (1, 2)),
                                  ("pool.node3.", range(1, 1 + ATTEMPTS))):
                for n in numbers:
                    self.cluster.stop(3)
                    with self.calls.failing(f"{self.cluster.pool_dir()}/{file}", n):
                        started = start()
                    with self.subTest(f"{self.calls.where()}: {started.stdout} {started.stderr}"):
                        if self.calls.where() and started.returncode != 0:
                            failed.add((file, self.calls.call()))
                            self.assertIn(REASON, started.stderr)
                        self.go_on(writers)
                        self.cluster.start(3)
                        self.cluster.sql(3, "SELECT count(*) FROM t")
        self.assertLessEqual({("pool.lock", "open"), ("pool.node3.", "open"), ("pool.node3.", "fallocate")}, failed)
        self.assert_nothing_lost()

    def test_a_save(self):
        """The last primary that leaves cannot write the copy: gclctl stop says so, or saves the pool itself."""
        self.make("postgres")

        def is_told():
            self.assertRegex(self.said_by(*PRIMARIES), f"{os.path.basename(self.calls.file())}: {REASON}")

        self.saves_that_fail(is_told)


class Checkpoints(ServerIoErrors):
    def test_a_checkpoint_of_a_server(self):
        """The one before counts, and WAL is kept; it is tried again, and made when it can be."""
        self.make("gclctl", "gcl.checkpoint_timeout=1s")
        made = f"{self.saved}.checkpoint"
        with self.load(*PRIMARIES) as writers:
            eventually(lambda: os.path.exists(made))
            for file in ("checkpoint", "delta", "journal"):
                for n in (1, 2, 3):
                    with self.subTest(file, number=n):
                        heard = len(re.findall(self.failure(file), self.said_by(*PRIMARIES)))
                        with self.calls.failing(f"{self.saved}.{file}", n, goes_on=True):
                            eventually(lambda: len(re.findall(self.failure(file), self.said_by(*PRIMARIES))) > heard, 60)  # pylint: disable=cell-var-from-loop
                            self.go_on(writers)
                        before = os.stat(made).st_ino
                        eventually(lambda: os.stat(made).st_ino != before, 60)  # pylint: disable=cell-var-from-loop
        self.assert_nothing_lost()
        self.lose_memory()

    def failure(self, file):
        return rf"WARNING:  gcl: no checkpoint was made: the command failed.*\n.*DETAIL: (?s:.){{1,300}}pool\.saved\.{file}(\.\w+)?: {REASON}"


class MemoryNodes(ServerIoErrors):
    def test_memory_that_is_added(self):
        """The daemon that brings it cannot make its files: the memory nodes that there are go on."""
        self.make("gcl_memnode", tcp=True)
        below = f"{self.cluster.pool_dir()}/"
        with self.load(*PRIMARIES) as writers:
            for n in (1, 2, 3):
                with self.calls.failing(below, n, goes_on=True):
                    added = self.cluster.ctl("add-memory", self.cluster.dir, "64MB", check=False)
                with self.subTest(f"{self.calls.where()}: {added.stdout} {added.stderr}"):
                    self.assertNotEqual(0, added.returncode)
                    self.assertIn(REASON, added.stderr)
                    self.go_on(writers)
            self.cluster.ctl("add-memory", self.cluster.dir, "64MB")
            self.go_on(writers)
        self.assert_nothing_lost()
        self.assertIn("saved", self.cluster.stop().stdout)
        self.cluster.start()
        self.assert_nothing_lost()

    def test_a_save(self):
        """As where servers have the files themselves."""
        self.make("gcl_memnode", tcp=True)
        self.saves_that_fail()


if __name__ == "__main__":
    unittest.main(verbosity=2)
