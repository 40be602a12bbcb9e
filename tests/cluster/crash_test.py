"""Processes die, stop and leave under load.  An unclean death fences the pool: every session hears of it within 5 s, none
hangs, and start says so.  A process that only sleeps, and a primary that leaves in order, disturb no session.

Environment: GCL_SEED; SECONDS, how long to kill (each death takes a cluster of its own).
"""
import os
import random
import signal
import subprocess
import threading
import time
import traceback
import unittest

from harness import Cluster, SqlError, eventually
from workload import TABLES, TOTAL, Reader, Worker

SEED = os.environ.get("GCL_SEED") or str(random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("SECONDS", 20))
HEARD_MAX = 5.0  # seconds from a death to the last session that knows, in the best of some deaths: the machine may crawl
HANG = 30.0  # seconds
PRIMARIES = 3
# What a session is told when a primary dies or leaves.
ENDS = {"57P02", "57P01", "57P03", "08006", "58000"}
WORKERS = "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'gcl%' ORDER BY random() LIMIT 1"
CLIENTS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class Mortal(Worker):
    """A worker that ends when it hears of a death."""

    dying = None  # set before a process is killed

    def is_the_end(self, error):
        return self.dying is not None and self.dying.is_set() and error.state in ENDS


class MortalReader(Reader):
    dying = None
    is_the_end = Mortal.is_the_end


class RandomLoad:
    """Random transactions on all primaries until stop(), or until each has heard of a death."""

    def __init__(self, cluster, seed, primaries=range(1, PRIMARIES + 1)):
        self.failures, self.dying, self.threads = [], threading.Event(), []
        far = time.monotonic() + 600
        self.workers = [Mortal(f"w{k}_{i}", lambda k=k: cluster.session(k), seed, far) for k in primaries for i in (0, 1)]
        self.readers = [MortalReader(f"r{k}", lambda k=k: cluster.session(k), seed, far, self.workers) for k in primaries]
        for one in [*self.workers, *self.readers]:
            one.dying = self.dying
            self.threads.append(threading.Thread(target=self.guarded, args=(one,), daemon=True))
            self.threads[-1].start()

    def guarded(self, one):
        try:
            one.run()
        except BaseException:  # pylint: disable=broad-except
            self.failures.append(traceback.format_exc())

    def at_work(self):
        """Waits until every worker has committed something."""
        eventually(lambda: self.failures or all(worker.committed for worker in self.workers))

    def stop(self):
        """Returns the names of those that do not end."""
        for one in [*self.workers, *self.readers]:
            one.until = 0
        return self.join(40)

    def join(self, seconds):
        """Waits for all; returns the names of those still at work after `seconds`."""
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [one.name for one, thread in zip([*self.workers, *self.readers], self.threads) if thread.is_alive()]

    def committed(self):
        return {worker.name: worker.committed for worker in self.workers}


def processes_of(cluster):
    """Processes that run in a data directory of the cluster.  (Its memory node is none.)"""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(cluster.dir + "/node"):
                found.append(int(pid))
        except OSError:
            pass
    return found


def assert_made_again(test, cluster):
    """A fenced pool, when all primaries are down (gclctl.fenced-made-again)."""
    said = cluster.ctl("start", cluster.dir)
    test.assertRegex(said.stdout, "(?s)the pool is fenced: .*the pool is whole again")
    for sums in cluster.everywhere("SELECT sum(bal) FROM acct"):
        test.assertEqual([f"{TOTAL}"], sums)


class Crash(unittest.TestCase):
    def cluster_under_load(self, seed):
        cluster = self.enterContext(Cluster(primaries=PRIMARIES, cache="16MB", settings=("autovacuum=off",), fences=True))
        cluster.sql(1, TABLES)
        return cluster, RandomLoad(cluster, seed)

    def setUp(self):
        self.took = []  # seconds until all knew, of each death

    def victim(self, chance, cluster, kind, k):
        if kind == "postmaster":
            return cluster.postmaster(k)
        if kind == "auxiliary":
            parent = cluster.postmaster(k)
            children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], text=True, capture_output=True)
            names = ("checkpointer", "background writer", "walwriter", "logical replication launcher", "stats")
            return int(chance.choice([line.split()[0] for line in children.stdout.splitlines()
                                      if any(name in line for name in names)]))
        found = []  # clients come and go
        eventually(lambda: found.extend(cluster.sql(k, WORKERS if kind == "worker" else f"{CLIENTS} ORDER BY random() LIMIT 1")) or found)
        return int(found[0])

    def die(self, turn, kind):
        chance = random.Random(f"{SEED}/{turn}")
        cluster, load = self.cluster_under_load(f"{SEED}/{turn}")
        try:
            time.sleep(1 + chance.random())
            k = chance.randint(1, PRIMARIES)
            victim = self.victim(chance, cluster, kind, k)
            with self.subTest(GCL_SEED=SEED, turn=turn, kind=kind, primary=k, pid=victim):
                load.dying.set()
                began = time.monotonic()
                os.kill(victim, signal.SIGKILL)
                working = load.join(HANG)
                self.took.append(time.monotonic() - began)
                self.assertEqual([], working, f"not heard after {HANG} s" + cluster.server_errors())
                print(f"{turn}: {kind} {victim} of primary {k}: heard after {self.took[-1]:.2f} s", flush=True)
                self.assertEqual([], load.failures, "\n".join(load.failures))
                self.assert_fenced(cluster, k)
        finally:
            load.stop()
            self.doCleanups()

    def assert_fenced(self, cluster, dead):
        for k in range(1, PRIMARIES + 1):
            if k == dead:
                continue  # down, or up again and refused
            self.assertEqual(["1"], cluster.sql(k, "SELECT 1"))
            with self.assertRaises(SqlError) as caught:
                cluster.sql(k, "SELECT count(*) FROM acct")
            self.assertEqual("57P02", caught.exception.state)
        began = time.monotonic()
        cluster.ctl("stop", cluster.dir, check=False)
        self.assertLess(time.monotonic() - began, 60)
        eventually(lambda: processes_of(cluster) == [])
        assert_made_again(self, cluster)

    def test_deaths_at_random_moments(self):
        kinds = ["backend", "worker", "postmaster", "auxiliary"]
        chance, until, turn = random.Random(SEED), time.monotonic() + SECONDS, 0
        chance.shuffle(kinds)
        while time.monotonic() < until or turn < len(kinds):
            self.die(turn, kinds[turn % len(kinds)])
            turn += 1
        self.assertLess(min(self.took), HEARD_MAX)


class Sleeping(unittest.TestCase):
    """A process that is stopped holds up others, and nothing else happens."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=PRIMARIES, cache="16MB", settings=("autovacuum=off",), fences=True))
        self.cluster.sql(1, TABLES)

    def assert_all_well(self, load):
        self.assertEqual([], load.stop(), "still at work")
        self.assertEqual([], load.failures, "\n".join(load.failures))
        for k in range(1, PRIMARIES + 1):
            self.assertEqual([f"{TOTAL}"], self.cluster.sql(k, "SELECT sum(bal) FROM acct"))
            self.assertEqual(["f"], self.cluster.sql(k, "SELECT fenced FROM gcl_stat_node"))

    def test_a_backend_with_a_page_latch(self):
        busy, look = self.cluster.session(1), self.cluster.session(1)
        pid = busy.pid()
        busy.send("DO $$BEGIN FOR i IN 1..3000000 LOOP UPDATE acct SET ver = ver + 1 WHERE id = 1 + i % 100;"
                  " COMMIT; END LOOP; END$$")
        held = "SELECT sum(held) FROM gcl_stat_held WHERE what IN ('exclusive latches', 'shared latches')"
        until = time.monotonic() + 300

        def keeps():
            """Whether one of the latches is its own: those of others are given back."""
            for _ in range(2):
                look.send(held)
                if look.waits(2) or look.result() == ["0"]:
                    return False
                time.sleep(0.1)
            return True

        while True:
            time.sleep(random.random() / 500)  # or it has had no CPU, and is where it was
            os.kill(pid, signal.SIGSTOP)
            if keeps():
                break
            os.kill(pid, signal.SIGCONT)
            if look.pending:  # it was stopped with a lock of PostgreSQL's own, which every snapshot needs
                look.result()
            self.assertLess(time.monotonic(), until, "never stopped with a latch")
        try:
            other = self.cluster.session(2)
            other_pid = other.pid()
            other.send("UPDATE acct SET ver = ver + 1")
            self.assertTrue(other.waits(6))
            self.assertEqual(["t"], self.cluster.sql(2, f"SELECT pg_cancel_backend({other_pid})"))
            with self.assertRaises(SqlError) as caught:
                other.result()
            self.assertEqual("57014", caught.exception.state)
            other.send("SELECT sum(bal) FROM acct")
            other.waits(0.5)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual([f"{TOTAL}"], other.result())
        self.assertEqual(["t"], look.run(f"SELECT pg_cancel_backend({pid})"))
        with self.assertRaises(SqlError) as caught:
            busy.result()
        self.assertEqual("57014", caught.exception.state)
        self.assertEqual(["f"], other.run("SELECT fenced FROM gcl_stat_node"))

    def test_backends_and_workers_at_random(self):
        chance, load = random.Random(SEED), RandomLoad(self.cluster, SEED)
        time.sleep(0.5)
        for _ in range(4):
            k = chance.randint(1, PRIMARIES)
            victims = self.cluster.sql(k, chance.choice([WORKERS, f"{CLIENTS} ORDER BY random() LIMIT 2"]))
            for pid in map(int, victims):
                os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.random() * 2)
            for pid in map(int, victims):
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.2)
        self.assert_all_well(load)


class Leaving(unittest.TestCase):
    """Primaries that are stopped in order under load: the others go on, nothing that was committed is lost."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=PRIMARIES, cache="16MB", settings=("autovacuum=off",), fences=True))
        self.cluster.sql(1, TABLES)

    def leave(self, k, how):
        os.kill(self.cluster.postmaster(k), how)

    def is_down(self, k):
        return not os.path.exists(f"{self.cluster.dir}/node{k}/data/postmaster.pid")

    def assert_kept(self, *loads):
        for load in loads:
            self.assertEqual([], load.failures, "\n".join(load.failures) + self.cluster.server_errors())
        rows = dict(row.split("|") for row in self.cluster.sql(1, "SELECT who, max(n) FROM hist GROUP BY who"))
        for load in loads:
            for who, n in load.committed().items():
                self.assertGreaterEqual(int(rows.get(who, 0)), n, who)
        for k in range(1, PRIMARIES + 1):
            self.assertEqual([f"{TOTAL}"], self.cluster.sql(k, "SELECT sum(bal) FROM acct"))

    def test_fast_one_by_one(self):
        going, staying = RandomLoad(self.cluster, SEED, (3,)), RandomLoad(self.cluster, SEED, (1, 2))
        going.at_work()
        staying.at_work()
        going.dying.set()
        self.leave(3, signal.SIGINT)
        self.assertEqual([], going.join(HANG))
        eventually(lambda: self.is_down(3), 60)
        time.sleep(0.5)
        self.assertEqual([], staying.failures, "\n".join(staying.failures))
        self.cluster.start(3)
        self.assertEqual([], staying.stop(), "still at work")
        self.assert_kept(going, staying)

    def test_smart(self):
        going, staying = RandomLoad(self.cluster, SEED, (3,)), RandomLoad(self.cluster, SEED, (1, 2))
        going.at_work()
        staying.at_work()
        going.dying.set()  # a session that reconnects is refused
        self.leave(3, signal.SIGTERM)
        time.sleep(1)
        self.assertFalse(self.is_down(3))
        going.stop()
        eventually(lambda: self.is_down(3), 60)
        self.assertEqual([], staying.stop(), "still at work")
        self.cluster.start(3)
        self.assert_kept(going, staying)

    def test_fast_all_at_once(self):
        load = RandomLoad(self.cluster, SEED)
        load.at_work()
        time.sleep(1)
        load.dying.set()
        said = self.cluster.stop()
        self.assertIn("saved", said.stdout)
        self.assertEqual([], load.join(HANG))
        eventually(lambda: processes_of(self.cluster) == [])
        self.cluster.start()
        self.assert_kept(load)

    def test_immediate_is_a_death(self):
        load = RandomLoad(self.cluster, SEED)
        load.at_work()
        time.sleep(1)
        load.dying.set()
        began = time.monotonic()
        self.leave(2, signal.SIGQUIT)
        self.assertEqual([], load.join(HANG))
        print(f"heard after {time.monotonic() - began:.2f} s")
        self.assertEqual([], load.failures, "\n".join(load.failures))
        self.cluster.ctl("stop", self.cluster.dir, check=False)
        assert_made_again(self, self.cluster)


class Terminated(unittest.TestCase):
    """An administrator ends all processes of a primary that there are: pg_terminate_backend()."""

    def test_its_workers_go_on(self):
        cluster = self.enterContext(Cluster(primaries=2))
        cluster.sql(1, "CREATE TABLE t (i int) USING gcl; INSERT INTO t VALUES (1)")
        workers = ("SELECT backend_type FROM pg_stat_activity WHERE backend_type LIKE 'gcl%' AND backend_type <> 'gcl ddl apply'"
                   " ORDER BY 1")
        before = cluster.sql(2, workers)
        cluster.sql(2, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        launcher = 1  # it ends, and another one starts
        eventually(lambda: cluster.log(2).count("told to end, and goes on") >= len(before) - launcher)
        self.assertEqual(["1"], cluster.sql(2, "INSERT INTO t VALUES (2); CREATE TABLE u (i int) USING gcl; SELECT min(i) FROM t"))
        eventually(lambda: before == cluster.sql(2, workers))
        cluster.stop(2)
        self.assertEqual(["2"], cluster.sql(1, "SELECT count(*) FROM t"))
        cluster.start(2)
        self.assertEqual(["0"], cluster.sql(2, "SELECT count(*) FROM u"))


if __name__ == "__main__":
    print(f"GCL_SEED={SEED}", flush=True)
    unittest.main(verbosity=2)
