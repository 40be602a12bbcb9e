"""The workers that do the other primaries' DDL are ended at bad moments: no primary does a part only."""
import os
import signal
import unittest

from data_directory import ddl_position
from harness import Cluster, Session, SqlError, eventually

END = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'gcl ddl {}'"
COMMITS = "SELECT pg_logical_emit_message(true, '', '')"


class DdlWorkers(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))
        self.cluster.sql(1, "CREATE TABLE t (id int, v int) USING gcl")

    def end(self, k, which):
        self.assertEqual(["1"], self.cluster.sql(k, END.format(which)))

    def launcher(self, k):
        return self.cluster.workers(k).get("gcl ddl launcher")

    def let_no_commit_end(self):
        """On primary 1, from now on: a commit waits for a standby that does not exist."""
        self.cluster.sql(1, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'; SELECT pg_reload_conf()")
        self.probe = self.cluster.session(1)
        waits = f"SELECT wait_event FROM pg_stat_activity WHERE application_name = '{self.probe.name}'"

        def is_set():
            """A transaction that was committed before that does not wait."""
            if not self.probe.waits(0):
                self.probe.result()
                self.probe.send(COMMITS)
            return self.cluster.sql(1, waits) == ["SyncRep"]

        self.probe.send(COMMITS)
        eventually(is_set)

    def let_commits_end(self):
        self.cluster.sql(1, "ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()")
        self.probe.result()

    def test_a_launcher_stays_as_long_as_sessions_use_tables(self):
        session = self.cluster.session(2)
        session.run("INSERT INTO t VALUES (1, 1)")
        before = self.launcher(2)
        self.end(2, "launcher")
        self.cluster.sql(1, "CREATE UNIQUE INDEX t_v ON t (v)")
        with self.assertRaises(SqlError) as caught:
            session.run("INSERT INTO t VALUES (2, 1)")
        self.assertEqual("23505", caught.exception.state)
        self.assertEqual(before, self.launcher(2))
        # No session needs the launcher any more: it ends, and another one starts.
        session.close()
        self.assertTrue(eventually(lambda: self.launcher(2) not in (None, before)))
        self.assertEqual(["1"], self.cluster.sql(2, "INSERT INTO t VALUES (3, 3) RETURNING 1"))

    def test_a_primary_that_stops_fails_no_ddl_of_the_others(self):
        # A worker that is wanted while the server ends all its workers does not start any more.
        self.cluster.sql(2, END.format("apply"))
        eventually(lambda: "gcl ddl apply" not in self.cluster.workers(2))
        postmaster, session = self.cluster.postmaster(2), self.cluster.session(1)
        user = self.cluster.session(2)
        user.run("INSERT INTO t VALUES (1, 1)")
        slow = user.pid()  # ends later than the rest: until then the primary is a member
        for pid in (slow, postmaster):
            os.kill(pid, signal.SIGSTOP)
        try:
            session.send("CREATE TABLE meanwhile (a int) USING gcl")
            session.waits_for("GclDdlAnswers")
            os.kill(postmaster, signal.SIGINT)  # is dealt with before what workers the launcher asked for
            os.kill(postmaster, signal.SIGCONT)
            eventually(lambda: "received fast shutdown request" in self.cluster.log(2))
            session.waits_for("GclDdlAnswers")
        finally:
            for pid in (postmaster, slow):
                os.kill(pid, signal.SIGCONT)
        session.result(30)
        eventually(lambda: not os.path.exists(f"{self.cluster.dir}/node2/data/postmaster.pid"), 60)
        self.cluster.start(2)
        self.assertEqual(["0"], self.cluster.sql(2, "SELECT count(*) FROM meanwhile"))

    def test_a_launcher_has_nothing_to_cancel(self):
        before = self.launcher(2)
        self.cluster.sql(2, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gcl ddl launcher'")
        self.cluster.sql(1, "CREATE INDEX ON t (id)")
        self.assertEqual(before, self.launcher(2))

    def test_a_lock_that_was_lost_fails_its_transaction(self):
        locker = self.cluster.session(1)
        locker.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE")
        self.end(2, "apply")
        self.assertTrue(eventually(lambda: "gcl ddl apply" not in self.cluster.workers(2)))
        self.cluster.sql(2, "INSERT INTO t VALUES (1, 1)")
        with self.assertRaises(SqlError) as caught:
            locker.run("COMMIT")
        self.assertEqual("25P02", caught.exception.state)
        # As any other, if nothing was lost.
        locker.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE; COMMIT")

    def test_what_is_prepared_is_committed_before_the_worker_ends(self):
        """The coordinator waits for a standby that does not exist, between the others' answers and its own commit."""
        session = self.cluster.session(2)
        session.run("INSERT INTO t VALUES (1, 1)")
        coordinator = self.cluster.session(1)
        self.let_no_commit_end()
        try:
            coordinator.send("CREATE UNIQUE INDEX t_v ON t (v)")
            self.assertTrue(eventually(lambda: self.cluster.sql(
                1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'CREATE UNIQUE%'") == ["1"]))
            self.end(2, "apply")
            session.send("INSERT INTO t VALUES (2, 1)")
            self.assertTrue(session.blocked())
        finally:
            self.let_commits_end()
        coordinator.result()
        with self.assertRaises(SqlError) as caught:
            session.result()
        self.assertEqual("23505", caught.exception.state)

    def test_a_position_is_resolved_when_its_transaction_has_ended(self):
        oid = int(self.cluster.sql(2, "SELECT oid FROM pg_database WHERE datname = current_database()")[0])

        def position():
            self.cluster.sql(2, "CHECKPOINT")
            return ddl_position(f"{self.cluster.dir}/node2/data", oid)

        self.cluster.sql(1, "CREATE TABLE first (a int) USING gcl")
        eventually(lambda: position()[2] == 0)
        _, before, _ = position()
        for i in range(3):
            self.cluster.sql(1, f"CREATE TABLE t_{i} (a int) USING gcl")
        eventually(lambda: position() == (before + 3, before + 3, 0))

    def refused(self, sql):
        """With which state primary 2 does not do it; None: it does."""
        try:
            self.cluster.sql(2, f"SET lock_timeout = '300ms'; {sql}")
        except SqlError as error:
            return error.state
        return None

    def test_a_database_that_could_not_commit_is_kept_out_and_passes_over_nothing(self):
        # Of two workers of the database on primary 2 only the first finds the table in the way.
        coordinator, locker = self.cluster.session(1), self.cluster.session(1)
        for session in (coordinator, locker):
            session.run("BEGIN; LOCK TABLE t IN SHARE MODE")
        for session in (coordinator, locker):
            session.run("COMMIT")
        self.let_no_commit_end()
        coordinator.send("CREATE TABLE in_the_way (a int) USING gcl")
        eventually(lambda: self.cluster.sql(1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'CREATE TABLE%'") == ["1"])
        mine = "backend_type = 'gcl ddl apply' AND state = 'idle in transaction'"
        self.assertEqual(["1"], self.cluster.sql(2, f"SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE {mine}"))
        self.cluster.sql(2, "CREATE TABLE in_the_way (b text) USING heap")
        self.let_commits_end()
        coordinator.result()
        eventually(lambda: self.refused("INSERT INTO t VALUES (1, 1)") == "55000")
        eventually(lambda: self.cluster.sql(1, "SELECT state FROM gcl_stat_ddl_log WHERE node = 2") == ["failing"])
        # Other primaries go on, through either slot; primary 2 takes their DDL from the log, once nothing is in the way.
        coordinator.run("CREATE TABLE behind (a int) USING gcl")
        locker.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE")
        coordinator.run("ALTER TABLE behind ADD COLUMN b int")
        self.assertEqual("55000", self.refused("SELECT count(*) FROM t"))
        self.cluster.sql(2, "DROP TABLE in_the_way")
        # What was locked meanwhile is locked here before a session is let in.
        eventually(lambda: self.refused("SELECT count(*) FROM t") is None)
        self.assertEqual("55P03", self.refused("INSERT INTO t VALUES (1, 1)"))
        locker.run("LOCK TABLE t")
        self.assertEqual("55P03", self.refused("SELECT count(*) FROM t"))
        locker.run("COMMIT")
        eventually(lambda: self.refused("INSERT INTO t VALUES (1, 1)") is None)  # the end is told, and not awaited
        self.assertEqual([["0"]] * 2, self.cluster.everywhere("SELECT count(*) FROM in_the_way JOIN behind USING (a)"))
        self.assertEqual(1, len({answer[0] for answer in self.cluster.everywhere("SELECT gcl_ddl_fingerprint()")}))

    def waits_for_the_standby(self, text):
        return self.cluster.sql(1, f"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '{text}%'") == ["1"]

    def test_a_worker_that_could_not_catch_up_leaves_nothing_in_the_way(self):
        self.cluster.sql(1, "CREATE DATABASE other")
        other = Session(f"{self.cluster.dsn(1)} dbname=other")
        self.addCleanup(other.close)
        other.run("CREATE EXTENSION gcl")
        coordinator, locker, two = (self.cluster.session(k) for k in (1, 1, 2))
        oid = int(two.one("SELECT oid FROM pg_database WHERE datname = current_database()"))
        workers = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'gcl ddl apply' AND datname = current_database()"
        lock, make, undecided = "BEGIN; LOCK TABLE t IN SHARE MODE", "CREATE TABLE in_the_way (a int) USING gcl", "CREATE TABLE undecided (a int) USING gcl"
        locker.run(lock)
        before = two.one(workers)
        # DDL is under way in another database: the launcher of primary 2 cannot catch up.
        self.let_no_commit_end()
        other.send(undecided)
        eventually(lambda: self.waits_for_the_standby(undecided))
        # And the launcher has seen that not all has ended: from now on it resolves positions every second.
        coordinator.run("SET synchronous_commit = local; CREATE TABLE first (a int) USING gcl; RESET synchronous_commit")
        eventually(lambda: self.resolved(two, oid))
        coordinator.send(make)
        eventually(lambda: self.waits_for_the_standby(make))
        locker.run("COMMIT")
        eventually(lambda: two.run(f"{workers} AND state = 'idle'") == [before])
        self.assertEqual(["1"], two.run(f"SELECT count(pg_terminate_backend(pid, 10000)) FROM ({workers} AND query LIKE '{make}%') w"))
        two.run("CREATE TABLE in_the_way (b text) USING heap")
        self.cluster.sql(1, f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '{make}%'")  # of its wait for the standby
        coordinator.result()
        # The remaining worker meets the table in the way when it has to lock t, and stays.
        with self.assertRaises(SqlError) as caught:
            locker.run(lock)
        self.assertEqual("42P07", caught.exception.state)
        locker.run("ROLLBACK")
        eventually(lambda: two.run(workers) == [before])
        # When that table is gone, the worker goes on, then another one, and in the end the launcher.
        two.run("DROP TABLE in_the_way")
        for session in (coordinator, locker):
            session.run(lock)
        self.assertIn(before, two.run(workers))
        self.assertEqual(2, len(two.run(workers)))
        eventually(lambda: self.resolved(two, oid))  # also while it is behind
        self.let_commits_end()
        other.result()
        for session in (coordinator, locker):
            session.run("COMMIT")
        self.assertEqual([["0"]] * 2, self.cluster.everywhere("SELECT count(*) FROM in_the_way"))

    def resolved(self, two, oid):
        """The position of primary 2 names no transaction."""
        two.run("CHECKPOINT")
        return ddl_position(f"{self.cluster.dir}/node2/data", oid)[2] == 0

    def stopped(self, k):
        """The apply worker of primary K answers nothing, until the test ends or goes on."""
        pid = self.cluster.workers(k)["gcl ddl apply"]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        return lambda: os.kill(pid, signal.SIGCONT)

    def logged(self, k, *texts):
        with open(f"{self.cluster.dir}/node{k}/log", encoding="utf-8") as log:
            content = log.read()
        return all(text in content for text in texts)

    def test_a_commit_can_be_cancelled_until_it_is_decided(self):
        coordinator = self.cluster.session(1)
        pid = coordinator.pid()
        coordinator.run("BEGIN; CREATE TABLE undecided (a int) USING gcl")
        go_on = self.stopped(2)
        coordinator.send("COMMIT")
        eventually(lambda: self.cluster.sql(1, f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}") == ["GclDdlAnswers"])
        self.assertEqual(["prepare|2|awaited"], self.cluster.sql(1, "SELECT phase, node, answer FROM gcl_stat_ddl"))
        eventually(lambda: self.logged(2, f"process {pid} of primary 1 has waited for", "for this primary's answer (prepare"))
        self.cluster.sql(1, f"SELECT pg_cancel_backend({pid})")
        with self.assertRaises(SqlError) as caught:
            coordinator.result()
        self.assertEqual("57014", caught.exception.state)
        go_on()
        self.cluster.sql(2, "CREATE TABLE undecided (b text) USING gcl")

    def test_the_log_names_the_statement_that_has_no_answer(self):
        self.cluster.sql(1, "CREATE TABLE first (a int) USING gcl")
        coordinator = self.cluster.session(1)
        pid = coordinator.pid()
        go_on = self.stopped(2)
        coordinator.send("CREATE TABLE slow_here (a int) USING gcl")
        eventually(lambda: self.logged(2, f"process {pid} of primary 1 has waited for", "CREATE TABLE slow_here"))
        go_on()
        coordinator.result()
        # And an error's context.
        self.cluster.sql(2, "CREATE TABLE in_the_way (a int) USING heap")
        with self.assertRaises(SqlError):
            coordinator.run("CREATE TABLE in_the_way (a int) USING gcl")
        self.assertTrue(self.logged(2, f"of process {pid} of primary 1: CREATE TABLE in_the_way"))
        self.cluster.sql(2, "DROP TABLE in_the_way")

    def test_what_is_decided_says_whom_it_waits_for(self):
        self.let_no_commit_end()
        coordinator = self.cluster.session(1)
        pid = coordinator.pid()
        coordinator.send("CREATE TABLE decided (a int) USING gcl")
        eventually(lambda: self.cluster.sql(
            1, f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}") == ["SyncRep"])
        go_on = self.stopped(2)
        self.let_commits_end()
        eventually(lambda: self.cluster.sql(1, "SELECT phase, node, answer FROM gcl_stat_ddl") == ["commit|2|awaited"])
        self.cluster.sql(1, f"SELECT pg_cancel_backend({pid})")
        event = f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}"
        eventually(lambda: self.cluster.sql(1, event) == ["GclDdlAnswers"])  # but for the moments of its heartbeat
        eventually(lambda: self.logged(1, "the transaction is committed, and waits for primary 2 to do the same"))
        go_on()
        self.assertIn("waits for primary 2", " ".join(coordinator.result()))
        self.assertEqual([["0"]] * 2, self.cluster.everywhere("SELECT count(*) FROM decided"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
