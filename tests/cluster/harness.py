"""A cluster of primaries for tests, through gclctl and psql and nothing else.

    with Cluster(primaries=3) as cluster:
        one, two = cluster.session(1), cluster.session(2)
        one.run("BEGIN; UPDATE t SET v = 1")
        two.send("UPDATE t SET v = 2")          # returns at once
        self.assertTrue(two.blocked())          # it waits for a lock
        one.run("COMMIT")
        two.result()                            # rows, or SqlError with its SQLSTATE

A slow machine makes a test slow and nothing else: what is to happen is waited for (blocked(), eventually()), with a bound that
only a hang reaches.  What a failure says comes last, with what the cluster was at (telling.py).

Environment: GCLCTL, the program.  KEEP=1 leaves a cluster behind for inspection.  GCL_LONGER, GCL_SEED, GCL_TRANSPORT, GCL_PATIENCE,
GCL_SLOWNESS: see below.  GCL_RDMA_DEVICE: of verbs.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest

import telling
from session import PSQL, SLOWNESS, Hang, Session, SqlError, eventually

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import data_directory  # noqa: E402
import left_behind  # noqa: E402
import ports  # noqa: E402

GCLCTL = os.environ.get("GCLCTL", "build/bin/gclctl")
LOAD_MAX = 60.0  # seconds; what has not been done by then is missing, and the test says so
# Random tests: how many times as much as usual, and which random numbers; the tests labelled slow set both.
LONGER = int(os.environ.get("GCL_LONGER", 1))
SEED = int(os.environ.get("GCL_SEED", 0))
TRANSPORT = os.environ.get("GCL_TRANSPORT", "shm")  # how primaries reach the pool: shm, tcp, verbs

telling.Telling.psql = PSQL
unittest.TextTestRunner.resultclass = telling.Telling


def new_dir():
    return left_behind.new_dir(data_directory.parent(), GCLCTL)


# What a primary holds when no client is there has leaked.  Workers that repeat other primaries' DDL keep their sessions; the
# session that asks has not touched the pool.
HELD = """SELECT what, held FROM gcl_stat_held WHERE held <> CASE what WHEN 'sessions of backends' THEN
          (SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'gcl ddl%') ELSE 0 END
          UNION ALL SELECT 'clients', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
          HAVING count(*) > 0"""
SERVES = "SELECT l.state FROM gcl_stat_ddl_log l JOIN gcl_stat_cluster c USING (node) WHERE c.this"
HELD_MAX = 30.0  # seconds until what the last clients had is given back
NOT_SERVING = ("08006", "57P01", "57P02", "57P03", "55000")


class Cluster:
    # False in tests that leave a cluster with something under way, or dead.
    holds_nothing = True
    environment = {}  # of gclctl, and so of the servers that it starts, beside the test's own

    def __init__(self, primaries=3, pool="256MB", cache="32MB", settings=(), extension=True, memory_nodes=1, started=(), spare=0,
                 data_from=None, fences=False, patience=None):
        self.primaries = primaries
        self.started = started  # empty: all
        self.dir = os.path.join(new_dir(), "c")
        os.chmod(os.path.dirname(self.dir), 0o755)
        self.ports = ports.Reservation(primaries + spare + 1)  # spare: primaries that are added; the last: a memory node
        self.arguments = [self.dir, "--primaries", str(primaries), "--pool-size", pool, "--cache-size", cache,
                          "--port", str(self.ports.base), "--memory-nodes", str(memory_nodes)]
        data_from = data_from or data_directory.path()
        if os.path.exists(data_from):
            self.arguments += ["--data-from", str(data_from)]
        if TRANSPORT != "shm":
            self.arguments += ["--transport", TRANSPORT, "--memory-port", str(self.ports.base + primaries + spare)]
        if TRANSPORT == "verbs":
            self.arguments += ["--rdma-device", os.environ["GCL_RDMA_DEVICE"]]
        patience = patience or os.environ.get("GCL_PATIENCE")  # seconds, where a machine may stand still
        if patience:
            self.arguments += ["--patience", str(patience)]
        if fences:  # a death does, instead of being repaired
            self.arguments.append("--fence-on-death")
        for setting in ("fsync=off", *settings):
            self.arguments += ["--set", setting]
        self.extension = extension
        self.sessions = []
        self.first_dsn = ""
        self.keep = bool(os.environ.get("KEEP"))
        if self.keep:
            left_behind.keep(os.path.dirname(self.dir))

    def make(self):
        self.ctl("init", *self.arguments)
        for k in self.started or (None,):
            self.start(k)
        if self.extension:
            self.sql(1, "CREATE EXTENSION gcl")

    def __enter__(self):
        telling.clusters[id(self)] = self
        try:
            self.make()
        except BaseException:
            telling.Telling.take()
            self.holds_nothing = False
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.close_sessions()
        try:
            if self.holds_nothing and self.exists():
                self.assert_left_in_order()
        except BaseException:
            telling.Telling.take()
            raise
        finally:
            telling.clusters.pop(id(self), None)
            if self.keep:
                print("kept:", self.dir)
            else:
                if self.exists():
                    self.ctl("destroy", self.dir)
                shutil.rmtree(os.path.dirname(self.dir), ignore_errors=True)
                self.ports.close()

    def exists(self):
        """Some tests destroy theirs."""
        return os.path.exists(os.path.join(self.dir, "cluster.conf"))

    def assert_left_in_order(self):
        """REQUIRES: no client is connected.  Primaries that do not run are not asked."""
        looks = {k: Session(self.dsn(k)) for k in range(1, self.primaries + 1)}  # one each: connecting is dear
        try:
            self._assert_nothing_held(looks)
            self._assert_same_catalogs(looks)
        finally:
            for look in looks.values():
                look.close()

    @staticmethod
    def _assert_nothing_held(looks):
        """Where it is fenced, all is."""
        for k, look in looks.items():
            try:
                if look.run("SELECT 1 FROM pg_am WHERE amname = 'gcl'") and look.one("SELECT fenced FROM gcl_stat_node") == "f":
                    eventually(lambda look=look: look.run(HELD) == [], HELD_MAX)
            except Hang as hang:
                raise AssertionError(f"primary {k} holds what nobody is there for: {look.run(HELD)}") from hang
            except SqlError as error:
                if error.state not in NOT_SERVING:
                    raise

    @staticmethod
    def _assert_same_catalogs(looks):
        """Of shared tables, on all primaries that serve, in the database of the sessions."""
        found = {}
        for k, look in looks.items():
            try:
                if look.run("SELECT 1 FROM pg_am WHERE amname = 'gcl'") and look.run(SERVES) == ["serving"]:
                    found[k] = look.run("SELECT gcl_ddl_fingerprint()")[0]
            except SqlError as error:
                if error.state not in NOT_SERVING:
                    raise
        assert len(set(found.values())) <= 1, f"the catalogs of shared tables differ: {found}"

    def run_gclctl(self, arguments, within=()):
        """`within`: what the command begins with."""
        began = time.time()
        done = subprocess.run([*within, GCLCTL, *arguments], text=True, capture_output=True, timeout=180 * SLOWNESS,
                              env={**os.environ, **self.environment})
        telling.step(f"gclctl {' '.join(arguments)}", began, telling.short(f"{done.returncode} {(done.stderr or done.stdout)[-200:]}"))
        return done

    def ctl(self, *arguments, check=True):
        done = self.run_gclctl(arguments)
        if check and done.returncode != 0:
            raise RuntimeError(f"gclctl {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
                               + self.server_errors())
        return done

    def server_errors(self):
        text = ""
        for k in range(1, self.primaries + 1):
            text += "".join(f"\nnode {k}: {line}" for line in telling.bad_lines(self, k, 10))
        return text

    def log(self, k):
        with open(f"{self.dir}/node{k}/log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def start(self, node=None):
        self.ctl("start", self.dir, *(["--node", str(node)] if node else []))

    def try_start(self, node):
        """It may end meanwhile."""
        self.ctl("start", self.dir, "--node", str(node), check=False)

    def stop(self, node=None):
        return self.ctl("stop", self.dir, *(["--node", str(node)] if node else []))

    def dsn(self, k):
        """As gclctl tells it for the first primary; their ports are successive."""
        if not self.first_dsn:
            self.first_dsn = self.ctl("dsn", self.dir, "1").stdout.strip()
        port = " port={} ".format
        assert port(self.ports.base) in self.first_dsn, self.first_dsn
        return self.first_dsn.replace(port(self.ports.base), port(self.ports.base + k - 1))

    def session(self, k):
        session = Session(self.dsn(k))
        self.sessions.append(session)
        return session

    def close_sessions(self):
        while self.sessions:
            self.sessions.pop().close()

    def sql(self, k, text):
        session = Session(self.dsn(k))
        try:
            return session.run(text)
        finally:
            session.close()

    def everywhere(self, text):
        """The answers of all primaries."""
        return [self.sql(k, text) for k in range(1, self.primaries + 1)]

    def pool_dir(self):
        """Where the pool lies while the machine is up."""
        with open(f"{self.dir}/cluster.conf", encoding="utf-8") as f:
            values = dict(line.strip().split("=", 1) for line in f if "=" in line)
        return f"{values['memory_dir']}/gcl-{values['id']}".replace('"', "")

    def postmaster(self, k):
        with open(f"{self.dir}/node{k}/data/postmaster.pid", encoding="ascii") as f:
            return int(f.readline())

    def workers(self, k):
        """{backend_type: pid} of the extension's workers on primary K."""
        rows = self.sql(k, "SELECT backend_type, pid FROM pg_stat_activity WHERE backend_type LIKE 'gcl%'")
        return {row.split("|")[0]: int(row.split("|")[1]) for row in rows}

    def kill_all(self, k, but=None):
        """A primary dies as with a power cut of its machine: every process of it at once.  Process `but` is left, stopped."""
        postmaster = self.postmaster(k)
        os.kill(postmaster, signal.SIGSTOP)  # it makes no more children
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(postmaster)], text=True, capture_output=True).stdout.split()
        everybody = [postmaster, *map(int, children)]
        victims = [pid for pid in everybody if pid != but]
        give(signal.SIGSTOP, *everybody)  # or those that are left for a moment do something about it
        give(signal.SIGKILL, *victims)
        # A server that starts before they have let go of its shared memory ends at once.
        eventually(lambda: not any(has_memory(victim) for victim in victims), 60)


class Load:
    """A load is put on for `seconds`, and then until it has done `enough()`: a slow machine plays as much as a quick one."""

    def __init__(self, seconds, enough):
        self.stop, self.enough = time.monotonic() + seconds, enough

    def goes_on(self):
        now = time.monotonic()
        return now < self.stop or (now < self.stop + LOAD_MAX and not self.enough())

    def end(self):
        """Something is wrong: the load ends."""
        self.stop = -LOAD_MAX


def give(number, *pids):
    """The signal, to those that are there still."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def has_memory(pid):
    """Neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def together(works, load=None):
    """Runs all of `works` at once, each in a thread of its own, and returns what they raised.  That ends the load."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException:  # pylint: disable=broad-except
            errors.append(traceback.format_exc())
            if load:
                load.end()

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


# SQL: a function that returns when a session on its primary has the advisory lock 99.  It takes no snapshot of its own.
STAND_STILL = """CREATE FUNCTION stand_still() RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 99 AND granted) LOOP PERFORM pg_sleep(0.01); END LOOP;
    RETURN 0; END$$"""
GO_ON, STAND_STILL_AGAIN = "SELECT pg_advisory_lock(99)", "SELECT pg_advisory_unlock(99)"


def horizon_passes(session):
    """Waits until VACUUM on the session's primary removes what has been deleted so far: primaries tell each other every few
    milliseconds which snapshots they have."""
    session.run("CREATE TABLE IF NOT EXISTS horizon_probe (v int) USING gcl")
    session.run("INSERT INTO horizon_probe VALUES (1)")
    session.run("DELETE FROM horizon_probe")
    eventually(lambda: re.search(r" [1-9]\d* removed", " ".join(session.run("VACUUM VERBOSE horizon_probe"))))


def holds_back(session, k, pid):
    """Waits until VACUUM on the session's primary is kept by the snapshot of process PID on primary K, and by no other, from
    what the last two transactions have deleted."""
    eventually(lambda: session.run("""SELECT string_agg(node || '|' || pid, ' ') FROM gcl_stat_horizon WHERE holds
                                      HAVING min(bound_behind) >= 2""") == [f"{k}|{pid}"])
