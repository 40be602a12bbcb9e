"""A primary is removed from the running cluster for good: the others go on under load, nothing waits for it any more, and its
data directory is refused.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import unittest

import left_behind
from deaths import ACCOUNTS, BANK, EACH, BankClient
from harness import GCLCTL, Cluster, Session, SqlError, data_directory, eventually
from stop_points import STOP_POINTS, Stops

GOES_ON_MAX = 20.0  # seconds, on a machine that crawls
KEPT_FOR = "SELECT node FROM gcl_stat_ddl_log_kept ORDER BY node"
IS_EMPTY = "SELECT DISTINCT kept_entries FROM gcl_stat_ddl_log_kept"


class RemovePrimary(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, settings=("deadlock_timeout=200ms",)))
        self.cluster.sql(1, BANK)
        self.clients, self.ended, self.ddl = [], threading.Event(), []
        self.addCleanup(self.end_load)

    # --- the load -----------------------------------------------------------------------------------------------------

    def begin_load(self):
        self.clients = [BankClient(self.cluster, k, f"{k}.{i}") for k in (1, 2, 3) for i in range(2)]
        self.definer = threading.Thread(target=self.define)
        for thread in (self.definer, *(client.thread for client in self.clients)):
            thread.start()
        eventually(lambda: all(client.times for client in self.clients) and len(self.ddl) > 1)

    def define(self):
        """DDL on primary 1, until the load ends; an error is the last that is noted."""
        session = Session(self.cluster.dsn(1))
        try:
            while not self.ended.is_set():
                session.run("CREATE TABLE passing (a int PRIMARY KEY) USING gcl; INSERT INTO passing VALUES (1); DROP TABLE passing")
                self.ddl.append(time.monotonic())
        except BaseException as error:  # pylint: disable=broad-except
            self.ddl.append(error)
        finally:
            session.close()

    def end_load(self):
        self.ended.set()
        for client in self.clients:
            client.ended.set()
        if self.clients:
            for thread in (self.definer, *(client.thread for client in self.clients)):
                thread.join()

    def go_on(self, *primaries):
        """Sessions of these primaries commit, and there is DDL."""
        since = time.monotonic()
        clients = [client for client in self.clients if client.k in primaries]
        eventually(lambda: all(c.errors or c.times[-1] > since for c in clients), GOES_ON_MAX)
        eventually(lambda: isinstance(self.ddl[-1], BaseException) or self.ddl[-1] > since, GOES_ON_MAX)

    def assert_nothing_is_lost(self):
        self.end_load()
        self.assertEqual([], [error for client in self.clients for error in client.errors])
        self.assertNotIsInstance(self.ddl[-1], BaseException, self.ddl[-1])
        for k in (1, 2):
            self.assertEqual([str(ACCOUNTS * EACH)], self.cluster.sql(k, "SELECT sum(bal) FROM acct"))
        there = set(self.cluster.sql(1, "SELECT who, n FROM hist"))
        told = {f"{client.name}|{n}" for client in self.clients for n in client.told}
        self.assertEqual(set(), told - there)

    # --- gclctl -------------------------------------------------------------------------------------------------------

    def remove(self, k, *more):
        return self.cluster.ctl("remove-primary", self.cluster.dir, "--node", str(k), *more).stdout

    def refused(self, words, *arguments):
        done = self.cluster.ctl(*arguments, check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertIn(words, done.stdout + done.stderr)

    def started_by_hand(self, k):
        """The server in the data directory that was kept."""
        program = next(str(path) for path in pathlib.Path(self.cluster.dir, "prefix").rglob("bin/postgres"))
        data = f"{self.cluster.dir}/node{k}/data"
        with open(f"{self.cluster.dir}/byhand", "ab") as log:
            server = subprocess.Popen([program, "-D", data], cwd=data, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      **data_directory.account())

        def end():
            if server.poll() is None:
                server.send_signal(signal.SIGINT)
                server.wait(60)

        self.addCleanup(end)
        return server, end

    # --- tests --------------------------------------------------------------------------------------------------------

    def test_one_that_runs(self):
        c = self.cluster
        c.sql(3, "CREATE TABLE own (a int); INSERT INTO own VALUES (42)")
        self.begin_load()
        said = self.remove(3)
        self.assertIn("primary 3 is removed: the cluster has 2\n", said)
        self.assertIn(f"is kept, with its ordinary tables: {c.dir}/node3/data", said)
        self.go_on(1, 2)
        self.assert_nothing_is_lost()
        # Nothing waits for it any more.
        self.assertEqual(["1", "2"], c.sql(1, KEPT_FOR))
        eventually(lambda: c.sql(1, IS_EMPTY) == ["0"])
        self.assertEqual(["1", "2"], c.sql(2, "SELECT node FROM gcl_stat_cluster ORDER BY node"))
        done = c.ctl("status", c.dir)
        self.assertIn(f"primary 3  removed; its data directory is kept: {c.dir}/node3/data\n", done.stdout)
        # It does not come back.
        for verb in (("start", c.dir), ("stop", c.dir), ("remove-primary", c.dir)):
            self.refused("primary 3 was removed from the cluster", *verb, "--node", "3")
        server, end = self.started_by_hand(3)
        eventually(lambda: self.answer(3, "SELECT a FROM own") == ["42"])
        self.assertEqual("55000", self.answer(3, "SELECT count(*) FROM acct"))
        self.assertEqual("55000", self.answer(3, "CREATE ROLE from_afar"))
        c.sql(1, "CREATE ROLE near; DROP ROLE near")
        self.assertIsNone(server.poll())
        end()
        # Not after a restart of all either.
        c.stop()
        c.start()
        self.assertEqual(["1", "2"], c.sql(1, KEPT_FOR))
        c.sql(2, "ALTER TABLE acct ADD COLUMN later int")
        self.becomes_another(3)

    def answer(self, k, sql):
        """Rows, or an SQLSTATE."""
        try:
            return self.cluster.sql(k, sql)
        except SqlError as error:
            return error.state

    def becomes_another(self, k):
        """Its number is given again; the old data directory is not taken for the new one's."""
        c, data = self.cluster, f"{self.cluster.dir}/node{k}/data"
        if os.path.exists(data):
            self.refused("put it out of the way first", "add-primary", c.dir, "--node", str(k))
            os.rename(data, f"{c.dir}/former")
        self.assertIn("3 primaries", c.ctl("add-primary", c.dir, "--node", str(k)).stdout)
        c.start(k)
        c.sql(k, "INSERT INTO acct (id, bal) VALUES (1000, 0); DELETE FROM acct WHERE id = 1000")
        self.assertEqual(["1", "2", "3"], c.sql(1, KEPT_FOR))
        self.assertEqual(3, c.ctl("status", c.dir).stdout.count("  up ("))
        self.refused(f"(primary {k}) is in use", "add-primary", c.dir, "--node", str(k))
        if not os.path.exists(f"{c.dir}/former"):
            return
        c.stop(k)
        os.rename(data, f"{c.dir}/latter")
        os.rename(f"{c.dir}/former", data)
        self.started_by_hand(k)
        eventually(lambda: self.answer(k, "SELECT a FROM own") == ["42"])
        self.assertEqual("55000", self.answer(k, "SELECT count(*) FROM acct"))
        self.assertEqual(["f"], c.sql(1, "SELECT fenced FROM gcl_stat_node"))

    def test_one_that_has_died(self):
        c = self.cluster
        self.begin_load()
        still = c.workers(3)["gcl message worker"]
        os.kill(still, signal.SIGSTOP)  # so the death is not repaired
        try:
            c.kill_all(2)
            eventually(lambda: "DEAD" in c.ctl("status", c.dir, check=False).stdout)
            self.refused("primary 2 does not run, and is still one of the cluster: ERROR:  primary 2 has died, and what it had "
                         "is not repaired yet", "remove-primary", c.dir, "--node", "2")
        finally:
            os.kill(still, signal.SIGCONT)
        eventually(lambda: "DEAD" not in c.ctl("status", c.dir, check=False).stdout)
        self.assertIn("primary 2 is removed: the cluster has 2\n", self.remove(2, "--delete-data"))
        self.assertFalse(os.path.exists(f"{c.dir}/node2"))
        self.go_on(1, 3)
        self.end_load()
        self.assertEqual([], [error for client in self.clients for error in client.errors])
        self.assertEqual(["1", "3"], c.sql(1, KEPT_FOR))
        self.becomes_another(2)
        self.assert_nothing_is_lost()

    def test_one_whose_data_cannot_be_deleted_at_once(self):
        """It lies on another disk, and something in there stays at first: the command is begun again behind its note."""
        c = self.cluster
        c.sql(3, "INSERT INTO hist VALUES ('of the one that goes', 1)")
        moved = f"{left_behind.new_dir('/var/tmp', GCLCTL)}/data"
        self.addCleanup(shutil.rmtree, os.path.dirname(moved), ignore_errors=True)
        os.chmod(os.path.dirname(moved), 0o755)
        c.stop(3)
        subprocess.run(["mv", f"{c.dir}/node3/data", moved], check=True)
        os.symlink(moved, f"{c.dir}/node3/data")
        c.start(3)
        held = pathlib.Path(moved, "held")
        held.mkdir()
        (held / "file").touch()
        if os.geteuid() == 0:
            shutil.chown(held, "postgres", "postgres")
        held.chmod(0o500)
        arguments = ("remove-primary", c.dir, "--node", "3")
        self.refused(": Permission denied", *arguments, "--delete-data")
        self.assertEqual(["1", "2"], c.sql(1, KEPT_FOR))
        self.refused("primary 3 was removed from the cluster", *arguments)
        held.chmod(0o700)
        self.assertIn("what was left of primary 3 is deleted", self.remove(3, "--delete-data"))
        self.assertFalse(os.path.exists(f"{c.dir}/node3") or os.path.exists(f"{moved}/global"))
        self.refused("primary 3 was removed from the cluster", *arguments, "--delete-data")
        c.ctl("stop", c.dir, "--immediate")
        shutil.rmtree(c.pool_dir())
        c.start()  # the log of the one that is no more is there
        self.assertEqual(["1"], c.sql(2, "SELECT count(*) FROM hist WHERE who = 'of the one that goes'"))

    def test_what_is_refused(self):
        c = self.cluster
        for words, *arguments in (("--node is required", ), ("no primary 4: the cluster has 3", "--node", "4"), ("--node", "--node", "0")):
            self.refused(words, "remove-primary", c.dir, *arguments)
        c.stop(1)
        c.stop(3)
        self.refused("no other primary runs", "remove-primary", c.dir, "--node", "2")
        self.assertEqual(["1"], c.sql(2, "SELECT 1"))
        self.remove(1, "--delete-data")  # one that was stopped in order
        self.refused("no other primary runs", "remove-primary", c.dir, "--node", "2")
        c.start()
        self.assertEqual(["2", "3"], c.sql(3, KEPT_FOR))


class DdlInDoubt(unittest.TestCase):
    """A primary dies right after it has committed DDL, and is lost: an administrator decides, and removes it."""

    def lost_and_decided(self, commit):
        c = self.enterContext(Cluster(primaries=3, settings=(STOP_POINTS,)))
        c.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        stops, session = Stops(c), c.session(2)
        pid = session.pid()
        stops.attach(2, "xact_locally_committed", pid)
        session.send("BEGIN; CREATE TABLE doubtful (a int) USING gcl; INSERT INTO t VALUES (1); COMMIT")
        eventually(lambda: c.sql(2, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'GclStop_xact_locally_committed'"))
        c.kill_all(2)
        eventually(lambda: c.sql(1, "SELECT node FROM gcl_in_doubt") == ["2"])
        eventually(lambda: "DEAD" not in c.ctl("status", c.dir, check=False).stdout)  # its name is free
        refused = c.ctl("remove-primary", c.dir, "--node", "2", check=False).stderr
        self.assertIn("gcl_resolve_in_doubt(node, id, commit)", refused)
        c.sql(3, f"SELECT gcl_resolve_in_doubt(node, id, {commit}) FROM gcl_in_doubt")
        for k in (1, 3):
            eventually(lambda k=k: c.sql(k, "SELECT count(*) FROM pg_class WHERE relname = 'doubtful'") == [str(int(commit))])
            self.assertEqual(["1"] if commit else [], c.sql(k, "SELECT id FROM t"))
            c.sql(k, f"CREATE TABLE after_{k} (a int) USING gcl; INSERT INTO after_{k} VALUES ({k})")
        c.start(2)  # after all
        for sql in ("SELECT count(*) FROM t", "SELECT count(*) FROM doubtful", "CREATE ROLE from_afar"):
            with self.assertRaises(SqlError) as caught:
                c.sql(2, sql)
            self.assertEqual("55000", caught.exception.state, sql)
        self.assertIn("gcl_resolve_in_doubt() for DDL of it", c.log(2))
        self.assertIn("primary 2 is removed: the cluster has 2\n",
                      c.ctl("remove-primary", c.dir, "--node", "2", "--delete-data").stdout)
        c.ctl("add-primary", c.dir, "--node", "2")
        c.start(2)
        first, *others = c.everywhere("SELECT gcl_ddl_fingerprint(), (SELECT count(*) FROM t)")
        self.assertEqual([first] * 2, others)
        c.sql(2, "ALTER TABLE t ADD COLUMN later int")

    def test_committed(self):
        self.lost_and_decided(True)

    def test_rolled_back(self):
        self.lost_and_decided(False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
