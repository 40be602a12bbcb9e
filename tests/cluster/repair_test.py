"""A primary dies and the others go on: they repair what it had, it comes back, and nothing that a client was told is lost.

While two sessions on each primary move money and number what they commit, something is killed with SIGKILL.  What each session
was told is kept here, outside of the cluster.
"""
import contextlib
import os
import signal
import struct
import subprocess
import threading
import time
import unittest

import deaths
from data_directory import account
from deaths import BACK_MAX, BANK, BankClient
from harness import Cluster, SqlError, eventually, give, has_memory
from processes import CLIENT, STARTUP, of_kinds, runs
from stop_points import STOP_POINTS, Stops

SESSIONS = 2  # on each primary
BEFORE, AFTER = 2.0, 3.0  # seconds of load
# Seconds until survivors commit again, beyond what they paused before, of the quickest death; of any, on a machine that
# crawls: ANY_PAUSE_MAX.
PAUSE_MAX = 3.0
ANY_PAUSE_MAX = 60.0
ALONE_MAX = 30.0  # seconds until a process without its postmaster has ended
ENDS_MAX = 30.0  # seconds until a server that stops in order has ended
TURNS_MAX = 300.0  # seconds of turns that may miss a moment, if they do
LAUNCHER = "gcl ddl launcher"
JOIN, DECISION = 16, 18  # kinds of the journal's entries (recovery/restart_journal.cpp)


def children_of(postmaster):
    with contextlib.suppress(OSError), open(f"/proc/{postmaster}/task/{postmaster}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]
    return []


def child_of(postmaster, kind):
    """As processes.of_kinds(), of one kind, and so quick that it has hardly begun."""
    for child in children_of(postmaster):
        with contextlib.suppress(OSError), open(f"/proc/{child}/cmdline", encoding="utf-8") as title:
            if f": {kind}" in title.read():
                return child
    return None


def suspended_child(cluster, kind):
    """Primary 2 starts, and a worker of it stands still at its beginning: (the thread that starts it, the worker's
    process).  None for the process, if it was not seen."""
    starts = threading.Thread(target=cluster.try_start, args=(2,))
    starts.start()
    until = time.monotonic() + BACK_MAX
    while (child := child_of(runs(cluster, 2), kind)) is None and time.monotonic() < until and starts.is_alive():
        time.sleep(0.0005)
    if child is not None:
        give(signal.SIGSTOP, child)
    return starts, child


class Repair(unittest.TestCase):
    pauses = {}  # of survivors, by kind of death: (because of it, before)

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("deadlock_timeout=200ms", *cls.settings())))
        cls.cluster.sql(1, BANK)

    @staticmethod
    def settings():
        return ()

    @classmethod
    def tearDownClass(cls):
        for kind, (pause, before) in cls.pauses.items():
            print(f"{kind}: survivors paused for at most {pause:.2f} s, and before it {before:.2f} s")
        assert min((pause - before for pause, before in cls.pauses.values()), default=0) < PAUSE_MAX, cls.pauses

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[1].removeprefix("test_")
        self.clients = [BankClient(self.cluster, k, f"{self.name} {k}.{i}") for k in (1, 2, 3) for i in range(SESSIONS)]
        self.addCleanup(lambda: [client.ended.set() for client in self.clients])
        for client in self.clients:
            client.thread.start()
        time.sleep(BEFORE)
        deaths.assert_all_work(self.clients, 0)

    def tearDown(self):
        self.stop_clients()

    def stop_clients(self):
        deaths.stop(self, self.clients)

    def of(self, *primaries):
        return [client for client in self.clients if client.k in primaries]

    def go_on(self, kind, survivors, died_at):
        """Each session of the survivors has committed since, and soon."""
        deaths.assert_all_work(self.of(*survivors), died_at + 0.5, ANY_PAUSE_MAX)
        time.sleep(AFTER)
        now = time.monotonic()
        pause = max(client.longest_pause(died_at, now) for client in self.of(*survivors))
        self.pauses[kind] = pause, max(client.longest_pause(client.times[0], died_at) for client in self.of(*survivors))
        self.assertLess(pause, ANY_PAUSE_MAX)

    def comes_back(self, *primaries):
        """Their sessions commit again."""
        deaths.assert_all_work(self.of(*primaries), time.monotonic())

    def assert_nothing_is_lost(self):
        self.stop_clients()
        deaths.assert_bank_kept(self, self.cluster, self.clients, self.name)
        deaths.assert_in_order(self, self.cluster, "acct", "hist")

    def backend_in_transaction(self, k):
        """Its process, when it has changed a row and not committed."""
        session = self.cluster.session(k)
        session.run(f"BEGIN; UPDATE acct SET bal = bal + 1 WHERE id = {k}; INSERT INTO hist VALUES ('{self.name} open', {k})")
        return session.pid()

    # --- what dies ----------------------------------------------------------------------------------------------------

    def test_a_backend(self):
        """Its server restarts by itself, and joins again."""
        pid = self.backend_in_transaction(2)
        died_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self.go_on("a backend", (1, 3), died_at)
        self.comes_back(2)
        self.assert_nothing_is_lost()

    def test_a_message_worker(self):
        pid = self.cluster.workers(1)["gcl message worker"]
        died_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self.go_on("a message worker", (2, 3), died_at)
        self.comes_back(1)
        self.assert_nothing_is_lost()

    def test_a_postmaster(self):
        died_at = time.monotonic()
        os.kill(self.cluster.postmaster(3), signal.SIGKILL)
        self.go_on("a postmaster", (1, 2), died_at)
        self.cluster.start(3)
        self.comes_back(3)
        self.assert_nothing_is_lost()

    def test_a_whole_primary(self):
        self.backend_in_transaction(1)
        died_at = time.monotonic()
        self.cluster.kill_all(1)
        self.go_on("a whole primary", (2, 3), died_at)
        self.cluster.start(1)
        self.comes_back(1)
        self.assert_nothing_is_lost()

    def test_two_primaries(self):
        died_at = time.monotonic()
        self.cluster.kill_all(1)
        self.cluster.kill_all(3)
        self.go_on("two primaries", (2,), died_at)
        self.cluster.start(1)
        self.cluster.start(3)
        self.comes_back(1, 3)
        self.assert_nothing_is_lost()

    def test_an_immediate_stop(self):
        died_at = time.monotonic()
        self.cluster.ctl("stop", self.cluster.dir, "--node", "2", "--immediate")
        self.go_on("an immediate stop", (1, 3), died_at)
        self.cluster.start(2)
        self.comes_back(2)
        self.assert_nothing_is_lost()

    def test_all_primaries(self):
        """Nobody is left to repair: the first that comes back does it."""
        for k in (1, 2, 3):
            self.cluster.kill_all(k)
        self.cluster.start()
        self.comes_back(1, 2, 3)
        self.assert_nothing_is_lost()


class Leaving(unittest.TestCase):
    """A primary that stops in order has a worker that waits for a page; the one that has the page dies, and nobody else is there."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, settings=("autovacuum_naptime=1s", "autovacuum=off")))

    def wait_of(self, kind):
        return self.cluster.sql(2, f"SELECT wait_event FROM pg_stat_activity WHERE backend_type = '{kind}'")

    def test_meets_a_page_of_one_that_dies_meanwhile(self):
        self.cluster.sql(1, "CREATE TABLE t (i int) USING gcl")
        session = self.cluster.session(2)
        session.run("INSERT INTO t VALUES (1)")  # a page of its own
        self.cluster.sql(1, "INSERT INTO t SELECT generate_series(2, 100)")
        live = "SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 't'"
        eventually(lambda: self.cluster.sql(2, live) == ["99"])  # so primary 1 has the page where they are counted
        pids = [pid for pids in of_kinds(self.cluster, 1).values() for pid in pids]
        give(signal.SIGSTOP, *pids)
        session.run("INSERT INTO t VALUES (101)")
        session.close()  # its counts are told
        eventually(lambda: self.wait_of("gcl statistics") == ["GclPeer"])
        give(signal.SIGINT, self.cluster.postmaster(2))
        eventually(lambda: "gcl member" not in of_kinds(self.cluster, 2))
        self.cluster.kill_all(1)
        eventually(lambda: not runs(self.cluster, 2), ENDS_MAX)
        self.cluster.start()
        for rows in self.cluster.everywhere("SELECT count(*) FROM t"):
            self.assertEqual(["101"], rows)

    REPAIR = "gcl repair"

    def test_no_session_begins_behind_its_repair_worker(self):
        came_late, began = False, time.monotonic()
        for turn in range(30):
            self.assertLess(time.monotonic() - began, TURNS_MAX, f"the launcher had a session in each of {turn} turns")
            self.cluster.stop(2)
            starts, launcher = suspended_child(self.cluster, LAUNCHER)
            if launcher is None:
                starts.join()
                continue
            eventually(lambda: {self.REPAIR, "gcl member", "gcl provider"} <= set(of_kinds(self.cluster, 2)))
            provider = of_kinds(self.cluster, 2)["gcl provider"][0]
            give(signal.SIGSTOP, provider)  # so that the server does not leave at once
            time.sleep(1)  # it has joined; what it needs for the rest is the launcher's
            give(signal.SIGINT, runs(self.cluster, 2))
            until = time.monotonic() + 15
            while self.REPAIR in of_kinds(self.cluster, 2) and time.monotonic() < until:
                time.sleep(0.02)
            came_late = self.REPAIR not in of_kinds(self.cluster, 2)
            if came_late:
                self.cluster.sql(1, "CREATE TABLE t (i int) USING gcl")  # the launcher wants a page of primary 1
                self.cluster.kill_all(1)
            give(signal.SIGCONT, launcher)
            time.sleep(0.5)
            give(signal.SIGCONT, provider)
            eventually(lambda: not runs(self.cluster, 2), ENDS_MAX)
            starts.join()
            if came_late:
                break
            self.cluster.start()
        self.assertTrue(came_late, "the launcher had a session each time, or was not seen")
        self.cluster.start()
        self.assertEqual([["0"]] * 2, self.cluster.everywhere("SELECT count(*) FROM t"))


class Arriving(unittest.TestCase):
    """A client waits until its primary has caught up with DDL, and the primary dies around it."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, started=(1,)))

    def waiting_client(self):
        """The process of primary 2 that has a client which is not let in yet."""
        for pid in of_kinds(self.cluster, 2).get(CLIENT, []):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8") as title:
                if "authentication" in title.read():
                    return pid
        return None

    def arrive(self, starts):
        """Clients come while primary 2 starts: their threads, and the process of one that is not let in; None for it,
        if the primary had caught up before."""
        def arrives():
            with contextlib.suppress(SqlError):
                self.cluster.sql(2, "SELECT 1")

        clients = []
        while (pid := self.waiting_client()) is None and starts.is_alive():
            if sum(client.is_alive() for client in clients) < 4:
                clients.append(threading.Thread(target=arrives))
                clients[-1].start()
            time.sleep(0.02)
        return clients, pid

    def test_it_does_not_outlive_its_postmaster(self):
        pid, tables = None, 0
        while pid is None:
            self.assertLess(tables, 3000, "it has caught up before anybody could come")
            self.cluster.sql(1, ";".join(f"CREATE TABLE t{i} (i int PRIMARY KEY) USING gcl" for i in range(tables, tables + 300)))
            tables += 300
            # Its launcher, which sees to its DDL, stands still until somebody has come.
            starts, launcher = suspended_child(self.cluster, LAUNCHER)
            clients, pid = self.arrive(starts)
            if pid is None:
                give(signal.SIGCONT, *filter(None, [launcher]))
                for thread in (starts, *clients):
                    thread.join()
                self.cluster.stop(2)
        self.cluster.kill_all(2, but=pid)
        give(signal.SIGCONT, pid)
        eventually(lambda: not has_memory(pid), ALONE_MAX)
        for thread in (starts, *clients):
            thread.join()
        self.cluster.start(2)
        self.assertEqual([str(tables)], self.cluster.sql(2, "SELECT count(*) FROM pg_class WHERE relname ~ '^t[0-9]+$'"))


class Orphan(unittest.TestCase):
    """A backend is all that is left of its server, and looks at nothing for as long as its query takes."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))

    def test_it_does_not_outlive_its_postmaster(self):
        self.cluster.sql(1, "CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")
        session = self.cluster.session(2)
        session.run("SET work_mem = '1GB'; SELECT count(*) FROM t")
        pid = int(session.one("SELECT pg_backend_pid()"))
        session.send("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a + b < 0")
        runs = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' AND query LIKE '%generate_series%'"
        eventually(lambda: self.cluster.sql(2, runs) == ["1"])
        self.cluster.kill_all(2, but=pid)
        give(signal.SIGCONT, pid)
        eventually(lambda: not has_memory(pid), ALONE_MAX)
        eventually(lambda: self.cluster.sql(1, "SELECT state FROM gcl_stat_cluster WHERE node = 2") != ["live"])
        self.cluster.start(2)
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT count(*) FROM t"))


class SecondEnd(unittest.TestCase):
    """A postmaster dies when it has just forked a process, which has its end of the pipe that tells the others of its death: as long as
    that is so, PostgreSQL takes it for alive."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))

    @staticmethod
    def open_end(postmaster):
        """Another writer of the pipe of which the postmaster has both ends."""
        ends = {}
        for name in os.listdir(f"/proc/{postmaster}/fd"):
            link = os.readlink(f"/proc/{postmaster}/fd/{name}")
            if link.startswith("pipe:"):
                ends.setdefault(link, []).append(name)
        pipes = [names for names in ends.values() if len(names) == 2]
        return [os.open(f"/proc/{postmaster}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK) for names in pipes for name in names]

    def test_no_process_of_its_server_stays(self):
        self.cluster.sql(2, "CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")
        postmaster = self.cluster.postmaster(2)
        processes = [pid for pids in of_kinds(self.cluster, 2).values() for pid in pids]
        ends = self.open_end(postmaster)
        try:
            self.assertTrue(ends)
            os.kill(postmaster, signal.SIGKILL)
            eventually(lambda: not any(map(has_memory, processes)), ALONE_MAX)
            self.assertEqual(["1"], self.cluster.sql(1, "UPDATE t SET i = i RETURNING i"))
        finally:
            for end in ends:
                os.close(end)
        self.cluster.start(2)
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT i FROM t"))


class LeftBehind(unittest.TestCase):
    """A process of PostgreSQL's own is all that is left of a server, and will never end: as one that waits for a lock that a killed
    process had."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))

    def test_the_server_starts_again(self):
        self.cluster.sql(2, "CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")
        writer = int(self.cluster.sql(2, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")[0])
        other = int(self.cluster.sql(1, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")[0])
        os.kill(writer, signal.SIGSTOP)
        self.cluster.kill_all(2, but=writer)
        said = self.cluster.ctl("start", self.cluster.dir, "--node", "2")
        self.assertIn(f"killed process {writer}, which has outlived the former server of primary 2", said.stderr)
        self.assertTrue(has_memory(other), "another server's process is not touched")
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT count(*) FROM t"))


class StuckShutdown(unittest.TestCase):
    """PostgreSQL 15 stands still where a fast shutdown meets a restart after a crash; the others would wait for its pages for ever."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))

    def stands_still(self):
        """Whether it does: it is told to stop while its startup process is there."""
        postmaster = self.cluster.postmaster(2)
        eventually(lambda: "walwriter" in of_kinds(self.cluster, 2))
        give(signal.SIGKILL, of_kinds(self.cluster, 2)["walwriter"][0])
        until = time.monotonic() + 10
        while (process := child_of(postmaster, STARTUP)) is None and time.monotonic() < until:
            time.sleep(0.0005)
        if process is not None:
            give(signal.SIGSTOP, process)
        give(signal.SIGINT, postmaster)
        time.sleep(0.2)
        if process is not None:
            give(signal.SIGCONT, process)
        return self.stays_with_one_child(postmaster)

    def stays_with_one_child(self, postmaster):
        """It does not end, and has one child for longer than a process waits for its processor; over tcp the network
        worker, too."""
        until, since = time.monotonic() + ENDS_MAX, None
        while time.monotonic() < until and runs(self.cluster, 2) == postmaster:
            others = set(children_of(postmaster)) - {child_of(postmaster, kind) for kind in ("gcl network worker", STARTUP)}
            since = (since or time.monotonic()) if len(others) == 1 else None
            if since and time.monotonic() - since > 4:
                return True
            time.sleep(0.05)
        return False

    def try_to_connect(self, ended):
        while not ended.is_set():
            with contextlib.suppress(SqlError):
                self.cluster.sql(2, "SELECT 1")

    def test_gclctl_ends_it(self):
        self.cluster.sql(2, "CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")
        began = time.monotonic()
        while not self.stands_still():
            self.assertLess(time.monotonic() - began, TURNS_MAX, "it has never met the restart")
            eventually(lambda: not runs(self.cluster, 2), ENDS_MAX)
            self.cluster.start(2)
        ended = threading.Event()  # clients come again and again, and each is a child of the postmaster for a moment
        clients = [threading.Thread(target=self.try_to_connect, args=(ended,)) for _ in range(4)]
        for client in clients:
            client.start()
        try:
            said = self.cluster.ctl("stop", self.cluster.dir, "--node", "2")
        finally:
            ended.set()
            for client in clients:
                client.join()
        self.assertIn("primary 2 restarted after a crash, and stands still: it is stopped at once", said.stderr)
        self.assertEqual(["1"], self.cluster.sql(1, "UPDATE t SET i = i RETURNING i"))
        self.cluster.start(2)
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT i FROM t"))


class InDoubt(unittest.TestCase):
    """A commit that changed a table of its own server, too, when that server dies: only its own log can decide."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=(STOP_POINTS,)))
        cls.cluster.sql(1, "CREATE TABLE shared (id int PRIMARY KEY, v int) USING gcl; INSERT INTO shared VALUES (1, 0), (2, 0)")
        for k in (1, 2, 3):
            cls.cluster.sql(k, "CREATE TABLE own (v int) USING heap")

    def setUp(self):
        self.stops = Stops(self.cluster)

    def tearDown(self):
        self.cluster.close_sessions()

    def dies_at(self, point, statements, v):
        session = self.cluster.session(2)
        session.run("BEGIN")
        for statement in statements:
            session.run(statement.format(v=v))
        pid = session.pid()
        self.stops.attach(2, point, pid)
        session.send("COMMIT")
        # Not asked of the stop point: a session that has looked at shared tables waits for a commit that is half done.
        stands = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'GclStop_{point}'"
        eventually(lambda: self.cluster.sql(2, stands) == ["1"])
        self.cluster.kill_all(2)

    def outcome(self, v):
        """Of both tables, on primary 2, and of the shared one on all."""
        seen = self.cluster.everywhere("SELECT v FROM shared WHERE id = 1")
        self.assertEqual([seen[0]] * 3, seen)
        return seen[0] == [str(v)], self.cluster.sql(2, f"SELECT count(*) FROM own WHERE v = {v}") == ["1"]

    def journal(self):
        """The kinds of the entries that the pool's journal has, in order (coherence/region/pool_journal.cpp)."""
        with open(f"{self.cluster.dir}/pool.saved.journal", "rb") as file:
            entries = file.read()
        at, kinds = 0, []
        while at < len(entries):
            length, kind = struct.unpack_from("=QI", entries, at + 24)
            kinds.append(kind)
            at += 40 + length
        return kinds

    def waits_for_it(self, v, committed):
        """It holds its row until its server is back, and a session that waits can give up."""
        eventually(lambda: self.cluster.sql(1, "SELECT node FROM gcl_in_doubt") == ["2"])
        impatient, patient = self.cluster.session(1), self.cluster.session(3)
        with self.assertRaises(SqlError) as caught:
            impatient.run("SET lock_timeout = '300ms'; UPDATE shared SET v = -1 WHERE id = 1")
        self.assertEqual("55P03", caught.exception.state)
        self.assertEqual([], impatient.run("UPDATE shared SET v = v + 1 WHERE id = 2"))
        patient.send("UPDATE shared SET v = v WHERE id = 1 RETURNING v")
        self.assertTrue(patient.blocked())
        said = self.cluster.ctl("status", self.cluster.dir, check=False).stdout
        self.assertIn("transactions in doubt until primary 2 is back: 1 (gcl_in_doubt)", said)
        refused = self.cluster.ctl("remove-primary", self.cluster.dir, "--node", "2", check=False).stderr
        self.assertIn("primary 2 has died with transactions that only its own server can decide", refused)
        self.cluster.start(2)
        self.assertEqual(committed, patient.result(BACK_MAX) == [str(v)])
        self.assertEqual((committed, committed), self.outcome(v))
        self.assertEqual([[]] * 3, self.cluster.everywhere("SELECT * FROM gcl_in_doubt"))
        self.assertEqual([DECISION, JOIN], [kind for kind in self.journal() if kind in (DECISION, JOIN)][-2:])

    BOTH = ("UPDATE shared SET v = {v} WHERE id = 1", "INSERT INTO own VALUES ({v})")

    def test_its_server_has_committed(self):
        self.dies_at("xact_locally_committed", self.BOTH, 11)
        self.waits_for_it(11, True)

    def test_its_server_has_decided_nothing(self):
        """And gives its number to no other transaction."""
        self.dies_at("xact_prepared", self.BOTH, 22)
        self.waits_for_it(22, False)

    def test_what_it_may_have_locked_is_not_changed_under_it(self):
        """Its table locks died with it: an index, or a rewritten table, would have one half of what it did."""
        refused = ("CREATE INDEX ON shared (v)", "CREATE UNIQUE INDEX ON shared (v)", "ALTER TABLE shared ALTER v TYPE bigint",
                   "ALTER TABLE shared ADD CHECK (v >= 0)", "TRUNCATE shared", "DROP TABLE shared",
                   "BEGIN; LOCK TABLE shared IN SHARE MODE; COMMIT")
        for point, v, statement in (("xact_prepared", 133, "CREATE INDEX shared_v ON shared (v)"),
                                    ("xact_locally_committed", 144, "ALTER TABLE shared ALTER v TYPE bigint")):
            with self.subTest(point):
                self.stops = Stops(self.cluster)
                self.dies_at(point, self.BOTH, v)
                for k in (1, 3):
                    for sql in refused:
                        self.assertEqual("55006", self.error_of(self.cluster.session(k), sql)[0], sql)
                    self.cluster.sql(k, "BEGIN; LOCK TABLE shared IN ROW EXCLUSIVE MODE; COMMIT")
                self.cluster.sql(1, f"CREATE TABLE unheard_of_{v} (i int) USING gcl")
                self.cluster.start(2)
                self.cluster.sql(1, statement)
                is_there = point == "xact_locally_committed"
                self.assertEqual((is_there, is_there), self.outcome(v))
                for way in ("enable_seqscan", "enable_indexscan"):
                    self.assertEqual([["1"] if is_there else []] * 3, self.cluster.everywhere(
                        f"SET {way} = off; SET enable_bitmapscan = off; SELECT id FROM shared WHERE v = {v}"))

    @contextlib.contextmanager
    def no_room_for(self, session):
        """The session's process cannot make the pool's journal longer."""
        pid = str(session.pid())
        limit = os.path.getsize(f"{self.cluster.dir}/pool.saved.journal")
        subprocess.run(["prlimit", "--pid", pid, f"--fsize={limit}:"], check=True, **account())
        yield session
        subprocess.run(["prlimit", "--pid", pid, "--fsize=unlimited:"], check=True, **account())

    def error_of(self, session, sql):
        with self.assertRaises(SqlError) as caught:
            session.run(sql)
        return caught.exception.state, "\n".join(line for line in session.collected if line)

    def decided_by_hand(self, v, commit, locally):
        """An administrator decides; the server comes back after all, has decided what it has, and says so if that differs."""
        eventually(lambda: self.cluster.sql(1, "SELECT node FROM gcl_in_doubt") == ["2"])
        node, id_, xid = self.cluster.sql(3, "SELECT node, id, xid FROM gcl_in_doubt")[0].split("|")
        patient = [self.cluster.session(k) for k in (1, 3)]
        for waiter in patient:
            waiter.send("UPDATE shared SET v = v WHERE id = 1 RETURNING v")
            self.assertTrue(waiter.blocked())
        with self.no_room_for(self.cluster.session(1)) as one:  # repair.recorded-first
            state, said = self.error_of(one, f"SELECT gcl_resolve_in_doubt({node}, {id_}, {commit})")
            self.assertEqual("58030", state)
            self.assertIn("pool.saved.journal: File too large", said)
        self.assertEqual(["2"], self.cluster.sql(3, "SELECT node FROM gcl_in_doubt"))
        self.cluster.sql(1, f"SELECT gcl_resolve_in_doubt({node}, {id_}, {commit})")
        for waiter in patient:
            self.assertEqual(commit, waiter.result() == [str(v)])
        self.assertEqual([], self.cluster.sql(3, "SELECT * FROM gcl_in_doubt"))
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(3, f"SELECT gcl_resolve_in_doubt({node}, {id_}, {not commit})")
        self.assertEqual("42704", caught.exception.state)
        logged = len(self.cluster.log(2))
        self.cluster.start(2)
        self.assertEqual((commit, locally), self.outcome(v))
        says = f"WARNING:  .*gcl: transaction {xid} was {{}} by this server, and {{}} in the pool while this server was away"
        warning = says.format(*("committed" if it else "rolled back" for it in (locally, commit)))
        (self.assertNotRegex if commit == locally else self.assertRegex)(self.cluster.log(2)[logged:], warning)
        logged = len(self.cluster.log(2))
        self.cluster.stop(2)
        self.cluster.start(2)
        self.assertNotIn("while this server was away", self.cluster.log(2)[logged:])
        self.assertEqual((commit, locally), self.outcome(v))

    def test_rolled_back_by_hand_and_its_server_had_committed(self):
        self.dies_at("xact_locally_committed", self.BOTH, 44)
        self.decided_by_hand(44, False, True)

    def test_committed_by_hand_and_its_server_had_not(self):
        self.dies_at("xact_prepared", self.BOTH, 55)
        self.decided_by_hand(55, True, False)

    def test_committed_by_hand_as_its_server_had(self):
        self.dies_at("xact_locally_committed", self.BOTH, 66)
        self.decided_by_hand(66, True, True)

    def test_who_may_decide_what(self):
        one = self.cluster.session(1)
        one.run("CREATE ROLE nobody")
        for state, call in (("42501", "SET ROLE nobody; SELECT gcl_resolve_in_doubt(2, 1, true)"),
                            ("22023", "SELECT gcl_resolve_in_doubt(1, 1, true)"), ("22023", "SELECT gcl_resolve_in_doubt(99, 1, true)"),
                            ("55006", "SELECT gcl_resolve_in_doubt(2, 1, true)")):
            with self.assertRaises(SqlError) as caught:
                one.run(call)
            self.assertEqual(state, caught.exception.state, call)
            one.run("RESET ROLE")
        self.cluster.stop(2)
        for number in (-1, 0, 1, 2**60):
            with self.assertRaises(SqlError) as caught:
                one.run(f"SELECT gcl_resolve_in_doubt(2, {number}, true)")
            self.assertEqual("42704", caught.exception.state)
        self.cluster.start(2)
        one.run("DROP ROLE nobody")

    def test_of_shared_tables_alone_nothing_is_in_doubt(self):
        self.dies_at("xact_locally_committed", self.BOTH[:1], 33)
        self.cluster.session(1).run("UPDATE shared SET v = 0 WHERE id = 1")  # does not wait for the server
        self.assertEqual([], self.cluster.sql(1, "SELECT * FROM gcl_in_doubt"))
        self.cluster.start(2)
        self.assertEqual((False, False), self.outcome(33))


if __name__ == "__main__":
    unittest.main(verbosity=2)
