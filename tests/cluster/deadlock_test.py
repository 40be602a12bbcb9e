"""Deadlocks across primaries end in 40P01: soon, with one victim, and only true ones."""
import collections
import os
import random
import re
import signal
import subprocess
import threading
import time
import unittest

from harness import Cluster, Load, SqlError, eventually

TIMEOUT = 1.0  # deadlock_timeout of the cluster
SLACK = 1.0    # a cycle is gone within both, unless the machine crawls
FOUND_MAX = 20.0  # seconds; sessions that look for no cycles have a deadlock_timeout far beyond it
PATIENT = "SET deadlock_timeout = '60s';"
LOG_CLOCK = 0.001  # the log's times are cut to that


class Deadlocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("log_lock_waits=on",)))
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl")
        cls.cluster.sql(1, "CREATE TABLE u (id int PRIMARY KEY, v int) USING gcl")
        cls.cluster.sql(1, "INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) i")
        cls.cluster.sql(1, "INSERT INTO u SELECT i, 0 FROM generate_series(1, 20) i")
        cls.cluster.sql(1, "CREATE TABLE h (id int PRIMARY KEY, v int) USING heap")
        cls.cluster.sql(1, "INSERT INTO h VALUES (1, 0)")

    def begin(self, *primaries, settings=""):
        sessions = [self.cluster.session(k) for k in primaries]
        self.addCleanup(lambda: [session.close() for session in sessions])
        for session in sessions:
            session.run(f"{settings} BEGIN")
        return sessions

    def row(self, session, row, send=False):
        (session.send if send else session.run)(f"UPDATE t SET v = v + 1 WHERE id = {row}")

    def closes(self, sessions, closing, finder=None):
        """All of `sessions` wait, each for the next, once the last one has sent `closing`.  One is told to give way, and then
        all others go on, one after the other.  If the others are patient, only `finder`, which has sent nothing yet, looks for
        the cycle.  Returns the victim, and after how many seconds it was told."""
        if finder:
            finder.run(f"SET LOCAL deadlock_timeout = '{TIMEOUT}s'")
        began = time.monotonic()
        closing()
        left, victims = list(sessions), []
        while left and time.monotonic() - began < 2 * FOUND_MAX:
            for session in list(left):
                if session.waits(0.02):
                    continue
                left.remove(session)
                try:
                    session.result()
                except SqlError as error:
                    self.assertEqual("40P01", error.state, error)
                    victims.append((session, time.monotonic() - began))
                    self.assertLess(victims[-1][1], FOUND_MAX)
                session.run("ROLLBACK")
        self.assertEqual([], left, "some still wait")
        self.assertEqual(1, len(victims))
        return victims[0]

    def best_of(self, attempt, within):
        """Seconds that `attempt` returns: the machine may crawl, but not always."""
        took = []
        while not took or min(took) >= within:
            self.assertLess(len(took), 10, f"not within {within} s: {took}")
            took.append(attempt())

    def test_two_primaries(self):
        def attempt(youngest):
            a, b = self.begin(1, 2)
            self.row(a, 1)
            self.row(b, 2)
            first, last = (b, a) if youngest == 0 else (a, b)
            self.row(first, 1 if first is b else 2, send=True)
            self.assertTrue(first.blocked())
            victim, took = self.closes([a, b], lambda: self.row(last, 2 if last is a else 1, send=True))
            self.assertIs(last, victim, "the youngest waiter is to give way")
            return took

        for youngest in (0, 1):
            self.best_of(lambda youngest=youngest: attempt(youngest), TIMEOUT + SLACK)

    def test_three_primaries(self):
        sessions = self.begin(1, 2, 3, settings=PATIENT)
        for k, session in enumerate(sessions):
            self.row(session, 3 + k)
        self.row(sessions[0], 4, send=True)
        self.row(sessions[1], 5, send=True)
        self.assertTrue(sessions[0].blocked() and sessions[1].blocked())
        self.closes(sessions, lambda: self.row(sessions[2], 3, send=True), sessions[2])

    def test_a_neighbour_on_the_same_primary_may_be_part_of_it(self):
        a, near, b = self.begin(1, 1, 2, settings=PATIENT)
        self.row(a, 6)
        self.row(near, 7)
        self.row(b, 8)
        self.row(near, 6, send=True)  # for a, in the server's own lock manager
        self.row(a, 8, send=True)     # for b
        self.assertTrue(near.blocked() and a.blocked())
        self.closes([a, near, b], lambda: self.row(b, 7, send=True), b)

    def test_an_advisory_lock_may_be_part_of_it(self):
        a, near, b = self.begin(1, 1, 2, settings=PATIENT)
        a.run("SELECT pg_advisory_xact_lock(77)")
        self.row(near, 7)
        self.row(b, 8)
        near.send("SELECT pg_advisory_xact_lock(77)")
        self.row(a, 8, send=True)
        self.assertTrue(near.blocked() and a.blocked())
        self.closes([a, near, b], lambda: self.row(b, 7, send=True), b)

    def test_the_closing_wait_may_be_a_local_one(self):
        a, near, b = self.begin(1, 1, 2)
        pids = {session: session.pid() for session in (a, b)}
        a.run("UPDATE h SET v = v + 1 WHERE id = 1")
        self.row(near, 7)
        self.row(b, 8)
        self.row(a, 8, send=True)
        self.row(b, 7, send=True)
        for session in (a, b):  # both look for a deadlock, and there is none
            eventually(lambda pid=pids[session]: self.logged(f"process {pid} still waiting for "))
        self.closes([a, near, b], lambda: near.send("UPDATE h SET v = v + 1 WHERE id = 1"))

    def test_a_unique_key_may_be_part_of_it(self):
        a, b = self.begin(1, 2, settings=PATIENT)
        a.run("INSERT INTO t VALUES (101, 0)")
        b.run("INSERT INTO t VALUES (102, 0)")
        a.send("INSERT INTO t VALUES (102, 0)")
        self.assertTrue(a.blocked())
        self.closes([a, b], lambda: b.send("INSERT INTO t VALUES (101, 0)"), b)

    def test_ddl_may_be_part_of_it(self):
        for statement in ("TRUNCATE u", "LOCK TABLE u"):
            for coordinator_first in (True, False):
                coordinator, writer = self.begin(1, 2)
                self.row(coordinator, 9)
                writer.run("UPDATE u SET v = v + 1 WHERE id = 1")
                waits = [lambda: coordinator.send(statement), lambda: self.row(writer, 9, send=True)]
                if not coordinator_first:
                    waits.reverse()
                waits[0]()
                self.assertTrue((coordinator if coordinator_first else writer).blocked())
                self.closes([coordinator, writer], waits[1])

    def test_what_ddl_has_locked_here_may_be_part_of_it(self):
        # coordinator -> near (a table lock here) -> far (a row) -> the lock that the coordinator has on far's primary
        coordinator, near, far = self.begin(1, 1, 2)
        coordinator.run("LOCK TABLE u IN EXCLUSIVE MODE")
        near.run("LOCK TABLE h IN ROW EXCLUSIVE MODE")
        self.row(far, 10)
        far.send("UPDATE u SET v = v + 1 WHERE id = 2")
        self.row(near, 10, send=True)
        self.assertTrue(far.blocked() and near.blocked())
        self.closes([coordinator, near, far], lambda: coordinator.send("LOCK TABLE h IN ACCESS EXCLUSIVE MODE"))

    def test_the_ddl_lock_may_be_part_of_it(self):
        # coordinator -> near (a heap table) -> far (a row) -> the DDL lock, before any message of the coordinator
        coordinator, near, far = self.begin(1, 1, 2)
        near.run("CREATE TABLE same_name (a int) USING heap")
        self.row(far, 11)
        coordinator.send("CREATE TABLE same_name (a int) USING gcl")
        self.assertTrue(coordinator.blocked())
        far.send("CREATE TABLE other_name (a int) USING gcl")
        self.assertTrue(far.blocked())
        self.closes([coordinator, near, far], lambda: self.row(near, 11, send=True))

    def test_deadlock_timeout_of_the_session_counts(self):
        def attempt():
            patient, = self.begin(1, settings=PATIENT)
            hasty, = self.begin(2, settings="SET deadlock_timeout = '100ms';")
            self.row(patient, 12)
            self.row(hasty, 13)
            self.row(hasty, 12, send=True)
            self.assertTrue(hasty.blocked())
            victim, took = self.closes([patient, hasty], lambda: self.row(patient, 13, send=True))
            self.assertIs(hasty, victim)
            return took

        self.best_of(attempt, 0.1 + SLACK)

    def test_a_search_that_took_long_does_not_put_off_the_next_one(self):
        member = int(self.cluster.sql(3, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'gcl member'")[0])

        def attempt():
            patient, = self.begin(1, settings=PATIENT)
            hasty, = self.begin(2, settings="SET deadlock_timeout = '100ms';")
            self.row(patient, 12)
            self.row(hasty, 13)
            os.kill(member, signal.SIGSTOP)
            try:
                self.row(hasty, 12, send=True)
                self.assertTrue(hasty.blocked())  # has looked for a cycle, and primary 3 had no answer
            finally:
                os.kill(member, signal.SIGCONT)
            return self.closes([patient, hasty], lambda: self.row(patient, 13, send=True))[1]

        self.best_of(attempt, 1.5)  # the next one came after 3 s

    def test_nobody_gives_way_before_deadlock_timeout(self):
        a, b = self.begin(1, 2, settings="SET deadlock_timeout = '10s';")
        self.row(a, 12)
        self.row(b, 13)
        self.row(a, 13, send=True)
        self.row(b, 12, send=True)
        self.assertTrue(a.waits(2.2) and b.waits(0.1))
        self.closes([a, b], lambda: None)

    def test_plpgsql_catches_it(self):
        a, b = self.begin(1, 2, settings=PATIENT + "SET client_min_messages = notice;")
        b.run(f"SET LOCAL deadlock_timeout = '{TIMEOUT}s'")
        self.row(a, 14)
        self.row(b, 15)
        self.row(a, 15, send=True)
        self.assertTrue(a.blocked())
        b.send("DO $$ BEGIN UPDATE t SET v = -1 WHERE id = 14; EXCEPTION WHEN deadlock_detected THEN"
               " RAISE NOTICE 'caught %', SQLSTATE; END $$")
        self.assertFalse(b.waits(FOUND_MAX))
        self.assertIn("caught 40P01", " ".join(b.result()))
        self.assertTrue(a.waits(0.1))  # b still has its row
        self.assertEqual("15", b.one("SELECT id FROM t WHERE id = 15 FOR UPDATE"))
        b.run("COMMIT")
        a.result()
        a.run("COMMIT")

    def test_a_rolled_back_savepoint_of_the_victim_lets_others_go_on(self):
        a, b = self.begin(1, 2, settings=PATIENT)
        self.row(a, 14)
        b.run(f"SET LOCAL deadlock_timeout = '{TIMEOUT}s'; SAVEPOINT s")
        self.row(b, 15)
        self.row(a, 15, send=True)
        self.assertTrue(a.blocked())
        with self.assertRaises(SqlError) as caught:
            b.run("UPDATE t SET v = -1 WHERE id = 14")
        self.assertEqual("40P01", caught.exception.state)
        b.run("ROLLBACK TO s")
        a.result()  # though b goes on
        a.run("ROLLBACK")
        self.assertEqual("2", b.one("SELECT count(*) FROM t WHERE id IN (14, 15)"))
        b.run("COMMIT")

    def test_a_victim_that_tries_again_in_a_block_succeeds(self):
        (a, b), gate = self.begin(1, 2), self.cluster.session(2)
        self.addCleanup(gate.close)
        gate.run("SELECT pg_advisory_lock(15)")
        self.row(a, 14)
        b.send("DO $$ BEGIN FOR i IN 1..20 LOOP BEGIN"
               " UPDATE t SET v = v + 1 WHERE id = 15; PERFORM pg_advisory_xact_lock_shared(15);"
               " UPDATE t SET v = v + 1 WHERE id = 14; RETURN;"
               " EXCEPTION WHEN deadlock_detected THEN RAISE NOTICE 'again'; PERFORM pg_sleep(0.5); END; END LOOP;"
               " RAISE 'never'; END $$")
        self.assertTrue(b.blocked())
        self.row(a, 15, send=True)
        self.assertTrue(a.blocked())
        gate.run("SELECT pg_advisory_unlock(15)")
        self.assertFalse(a.waits(FOUND_MAX))
        a.result()
        a.run("COMMIT")
        b.result()
        b.run("COMMIT")

    def logged(self, text):
        """Whether the server of a primary has said it."""
        for k in (1, 2, 3):
            with open(f"{self.cluster.dir}/node{k}/log", encoding="utf-8") as log:
                if text in log.read():
                    return True
        return False

    def test_the_detail_names_processes_and_primaries(self):
        (a,), (b,) = self.begin(1, settings=PATIENT), self.begin(2)
        pids = a.pid(), b.pid()
        self.row(a, 16)
        self.row(b, 17)
        self.row(a, 17, send=True)
        self.assertTrue(a.blocked())
        self.row(b, 16, send=True)
        self.assertFalse(b.waits(FOUND_MAX))
        text = "\n".join(line for line in b.collected if line)
        self.assertRegex(text, "ERROR:  40P01: deadlock detected")
        self.assertRegex(text, f"DETAIL:  Process {pids[1]} of primary 2 waits for ShareLock on transaction [0-9]+ of "
                               f"primary 1; blocked by process {pids[0]} of primary 1.")
        self.assertRegex(text, f"Process {pids[0]} of primary 1 waits for ShareLock on transaction [0-9]+ of "
                               f"primary 2; blocked by process {pids[1]} of primary 2.")
        with self.assertRaises(SqlError):
            b.result()
        b.run("ROLLBACK")
        a.result()
        a.run("COMMIT")

    def test_a_long_wait_is_logged(self):
        # A victim may be told before it has logged its wait.
        a, b = self.begin(1, 2)
        pid = b.pid()
        self.row(a, 16)
        self.row(b, 16, send=True)
        eventually(lambda: self.logged(f"process {pid} still waiting for ShareLock"))
        a.run("COMMIT")
        b.result()
        b.run("COMMIT")

    def test_cancel_and_timeouts_stay_what_they_are(self):
        for how in ("cancel", "statement_timeout", "lock_timeout"):
            a, b = self.begin(1, 2, settings=PATIENT)  # long enough to come first
            pid = b.pid()
            self.row(a, 18)
            self.row(b, 19)
            self.row(a, 19, send=True)
            if how != "cancel":
                b.run(f"SET LOCAL {how} = '500ms'")
            self.row(b, 18, send=True)
            if how == "cancel":
                self.assertTrue(b.blocked())
                self.cluster.sql(2, f"SELECT pg_cancel_backend({pid})")
            with self.assertRaises(SqlError) as caught:
                b.result()
            self.assertEqual("55P03" if how == "lock_timeout" else "57014", caught.exception.state)
            a.result()
            b.run("ROLLBACK")
            a.run("ROLLBACK")

    def test_a_deadlock_within_one_primary_says_its_own_detail(self):
        (a,), (far, near) = self.begin(1, settings="SET deadlock_timeout = '50ms';"), self.begin(2, 1, settings=PATIENT)
        for other, told in ((far, True), (near, False)):  # the second is PostgreSQL's own to find
            self.row(a, 17)
            self.row(other, 18)
            self.row(other, 17, send=True)
            self.assertTrue(other.blocked())
            with self.assertRaisesRegex(SqlError, "40P01"):
                self.row(a, 18)
            self.assertEqual(told, " of primary " in "".join(line for line in a.collected if line), a.collected)
            a.run("ROLLBACK")
            other.result()
            other.run("ROLLBACK")
            a.run("BEGIN")

    def test_waits_are_seen_from_every_primary(self):
        a, b, near = self.begin(1, 2, 1)
        pids = [a.pid(), b.pid(), near.pid()]
        self.row(a, 20)
        self.row(b, 20, send=True)
        near.run("SELECT 1")
        self.row(near, 20, send=True)
        self.assertTrue(b.blocked() and near.blocked())
        seen = "SELECT node, pid, blocked_by_node, blocked_by_pid FROM gcl_stat_waits ORDER BY node"
        eventually(lambda: self.cluster.everywhere(seen) == [[f"1|{pids[2]}|1|{pids[0]}", f"2|{pids[1]}|1|{pids[0]}"]] * 3)
        a.run("ROLLBACK")
        # One of the two has the row now, and the other waits for it.
        eventually(lambda: self.cluster.sql(3, "SELECT count(*) FROM gcl_stat_waits") == ["1"])
        for _ in range(2):
            owners = []
            eventually(lambda: owners.extend(s for s in (b, near) if s.pending and not s.waits(0.02)) or owners)
            self.assertEqual(1, len(owners))
            owners[0].result()
            owners[0].run("ROLLBACK")
        eventually(lambda: self.cluster.sql(3, "SELECT * FROM gcl_stat_waits") == [])

    def test_a_waiter_that_is_terminated_leaves_nothing(self):
        a, b = self.begin(1, 2)
        pid = b.pid()
        self.row(a, 20)
        self.row(b, 20, send=True)
        self.assertTrue(b.blocked())
        self.cluster.sql(2, f"SELECT pg_terminate_backend({pid})")
        with self.assertRaises(SqlError):
            b.result()
        eventually(lambda: self.cluster.sql(3, "SELECT * FROM gcl_stat_waits") == [])
        a.run("ROLLBACK")


class Client(threading.Thread):
    """Runs transactions that lock a few rows in any order, and notes what it held and wanted, and when (time.time())."""
    ROWS, LOCKS = 6, 3

    def __init__(self, cluster, primary, load, seed):
        super().__init__()
        self.session = cluster.session(primary)
        self.name_ = (self.session.pid(), primary)
        self.load, self.random = load, random.Random(seed)
        self.holds = []      # (row, when it got it, when its transaction ended)
        self.wants = []      # (row, when it asked, when it was answered)
        self.deadlocks = []  # texts
        self.failures = []
        self.committed = 0

    def transaction(self):
        got = []
        try:
            self.session.run("BEGIN")
            for row in self.random.sample(range(1, self.ROWS + 1), self.LOCKS):
                asked = time.time()
                try:
                    self.session.run(f"UPDATE r SET v = v + 1 WHERE id = {row}")
                finally:
                    self.wants.append((row, asked, time.time()))
                got.append((row, time.time()))
            self.session.run("COMMIT")
            self.committed += 1
        except SqlError as error:
            if error.state != "40P01":
                raise
            self.deadlocks.append("\n".join(line for line in self.session.collected if line))
            self.session.run("ROLLBACK")
        ended = time.time()
        self.holds += [(row, when, ended) for row, when in got]

    def run(self):
        try:
            while self.load.goes_on():
                self.transaction()
        except Exception as error:  # pylint: disable=broad-except
            self.failures.append(repr(error))


def near(client, moment):
    """What the client's notes say of a second before and after `moment`, in seconds after it."""
    def told(notes):
        return ", ".join(f"{row} from {began - moment:.3f} to {ended - moment:.3f}" for row, began, ended in notes
                         if began < moment + 1 and ended > moment - 1)
    return f"{client.name_} wanted {told(client.wants)}; held {told(client.holds)}"


class DeadlocksUnderLoad(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("deadlock_timeout=50ms", "log_line_prefix=%n [%p] ")))
        cls.cluster.sql(1, "CREATE TABLE r (id int PRIMARY KEY, v int) USING gcl")
        cls.cluster.sql(1, "INSERT INTO r SELECT i, 0 FROM generate_series(1, 200) i")

    def deadlocks_logged(self):
        """{(pid, primary): when its server said so, each time}.  The log says so before the victim releases anything."""
        said = collections.defaultdict(list)
        for primary in (1, 2, 3):
            with open(f"{self.cluster.dir}/node{primary}/log", encoding="utf-8") as log:
                for when, pid in re.findall(r"^([\d.]+) \[(\d+)\] ERROR:  deadlock detected$", log.read(), re.M):
                    said[int(pid), primary].append(float(when))
        return said

    def check_cycle(self, clients, victim, said, text):
        """The processes of the detail form a cycle, and at one moment after the victim had asked, and before it was
        said, each wanted a row that the next one held, or stood behind that one in the row's queue.  (A process without
        a processor says later what it has found; and others go on meanwhile, if they were in another cycle, too, whose
        victim was quicker.)"""
        links = re.findall(r"Process (\d+) of primary (\d+) waits for (.*?); blocked by process (\d+) of primary (\d+)", text)
        self.assertGreater(len(links), 1, text)
        waiters = [(int(link[0]), int(link[1])) for link in links]
        holders = [(int(link[3]), int(link[4])) for link in links]
        self.assertEqual(victim.name_, waiters[0])
        self.assertEqual(holders, waiters[1:] + waiters[:1], text)
        since = next(asked for _, asked, answered in victim.wants if asked < said + LOG_CLOCK and said < answered)
        edges = []  # of each link: the times, within those, at which it was so
        for waiter, holder, link in zip(waiters, holders, links):
            waiter, holder = clients[waiter], clients[holder]
            queues = re.fullmatch(r"ExclusiveLock on tuple \(\d+,\d+\) of relation \d+ of database \d+", link[2])
            held = holder.wants if queues else holder.holds
            both = [(max(asked, got, since), min(answered, ended, said + LOG_CLOCK)) for row, asked, answered in waiter.wants
                    for of, got, ended in held if of == row]
            edges.append([(begins, ends) for begins, ends in both if begins < ends])
        moments = [begins for edge in edges for begins, _ in edge]
        self.assertTrue(any(all(any(begins <= moment < ends for begins, ends in edge) for edge in edges) for moment in moments),
                        "\n".join([text, f"from {since:.3f} to {said:.3f}: {edges}", *(near(clients[waiter], said) for waiter in waiters)]))

    def test_every_victim_was_in_a_cycle(self):
        def found():
            return sum(" of primary " in text for client in clients for text in client.deadlocks)

        clients = []
        load = Load(15, lambda: any(client.failures for client in clients) or
                    (found() > 5 and sum(client.committed for client in clients) > 20))
        clients += [Client(self.cluster, k, load, seed=10 * k + i) for k in (1, 2, 3) for i in range(2)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(180)
            self.assertFalse(client.is_alive(), "a client hangs")
            self.assertEqual([], client.failures)
        by_name = {client.name_: client for client in clients}
        checked = local = 0
        logged = self.deadlocks_logged()
        for client in clients:
            self.assertEqual(len(client.deadlocks), len(logged[client.name_]))
            for said, text in zip(logged[client.name_], client.deadlocks):
                if " of primary " not in text:
                    local += 1  # of two on one primary: PostgreSQL's own
                    continue
                self.check_cycle(by_name, client, said, text)
                checked += 1
        committed = sum(client.committed for client in clients)
        self.assertGreater(checked, 5, "there were to be deadlocks")
        self.assertGreater(committed, 20)
        # What was committed is there, and what gave way is not.
        self.assertEqual([str(committed * Client.LOCKS)], self.cluster.sql(1, "SELECT sum(v) FROM r WHERE id <= 100"))
        print(f" {committed} committed, {checked} cycles across primaries and {local} within one", end=" ")

    def test_no_client_that_locks_in_order_is_a_victim(self):
        script = f"{self.cluster.dir}/ordered.sql"
        with open(script, "w", encoding="ascii") as f:
            f.write("\\set a random(101, 110)\n\\set b random(101, 110)\n\\set c least(:a, :b)\n\\set d greatest(:a, :b)\n"
                    "BEGIN;\nUPDATE r SET v = v + 1 WHERE id = :c;\nUPDATE r SET v = v + 1 WHERE id = :d;\nCOMMIT;\n")
        os.chmod(script, 0o644)
        environment = {**os.environ, "PGOPTIONS": "-c deadlock_timeout=2ms"}
        transactions = 0
        load = Load(15, lambda: transactions > 1000)
        while load.goes_on():
            running = [subprocess.Popen(["pgbench", "-n", "-c", "4", "-T", "7", "-f", script, "--max-tries=10",
                                         "--failures-detailed", self.cluster.dsn(k)],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
                       for k in (1, 2, 3)]
            for process in running:
                text = process.communicate(timeout=120)[0]
                self.assertEqual(0, process.returncode, text)
                transactions += int(re.search(r"transactions actually processed: (\d+)", text).group(1))
                self.assertIn("number of transactions retried: 0 ", text)
                self.assertIn("number of deadlock failures: 0 ", text)
        self.assertGreater(transactions, 1000)
        print(f" {transactions} transactions", end=" ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
