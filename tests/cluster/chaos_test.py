"""Processes of random primaries are killed and stopped at random moments, several at once and in the middle of repairs, while
clients move money, append to lists, and make and drop tables.  All come back, and nothing that a client was told is lost.

A round begins when all clients work, strikes one to three times, starts what is down, and ends when all clients work again.

Environment: GCL_SEED, to strike the same in the same order again (the moment is the machine's); SECONDS, how long; TURN, the first turn
(turn N strikes the same whatever was before); PRIMARIES, how many.
"""
import os
import random
import re
import signal
import statistics
import threading
import time
import unittest
from collections import Counter

import deaths
import stacks
from deaths import BANK, BankClient
from ddl_load import DdlClient, assert_tables_kept
from harness import TRANSPORT, Cluster, Hang, SqlError, eventually, give, has_memory
from list_append import LISTS, ListClient, Lists, assert_lists_kept
from processes import AUXILIARY, CLIENT, POSTMASTER, STARTUP, VACUUM, of_kinds, runs

SEED = os.environ.get("GCL_SEED") or str(random.SystemRandom().randrange(10**6))
SECONDS = float(os.environ.get("SECONDS", 40))
FIRST = int(os.environ.get("TURN", 0))
PRIMARIES = tuple(range(1, int(os.environ.get("PRIMARIES", 3)) + 1))
SETTINGS = ("deadlock_timeout=200ms", "autovacuum_naptime=1s", "autovacuum_vacuum_threshold=200", "autovacuum_vacuum_scale_factor=0.02",
            "gcl.checkpoint_timeout=2s")
SESSIONS = 2  # of each workload on each primary
STOPPED_MAX = 2.5  # seconds that a process or a primary stands still
PATIENCE = float(os.environ.get("GCL_PATIENCE", 2))  # of memory node 0, over tcp: seconds; some stops are longer
END_MAX = 60.0  # seconds until a primary has left
ORPHAN_MAX = 20.0  # seconds until the last process of a server ends by itself
MESSAGE_WORKER = "gcl message worker"
TABLES = ("acct", "hist", "lists")
# What a log must not have, whichever process is killed.  (A process that was killed was "terminated by signal 9".)
BAD = re.compile(r"PANIC|VERIFY|TRAP:|was committed, but|terminated by signal (?!9\b)|the pool is fenced|did not go on|could not be ended|"
                 r"cache lookup failed|XX\d\d\d")


class Chaos(unittest.TestCase):
    make_cluster = Cluster

    def setUp(self):
        self.cluster = self.enterContext(self.make_cluster(primaries=len(PRIMARIES), cache="8MB", memory_nodes=2, settings=SETTINGS))
        self.cluster.sql(1, f"{BANK}; {LISTS}")
        self.lists = Lists(SEED)
        self.bank = [BankClient(self.cluster, k, f"bank {k}.{i}") for k in PRIMARIES for i in range(SESSIONS)]
        self.appenders = [ListClient(self.cluster, k, f"list {k}.{i}", self.lists) for k in PRIMARIES for i in range(SESSIONS)]
        self.makers = [DdlClient(self.cluster, k, f"ddl {k}") for k in PRIMARIES]
        self.clients = [*self.bank, *self.appenders, *self.makers]
        self.strikes, self.pauses, self.back = Counter(), [], []
        self.leaving = set()
        self.down, self.ending = set(), set()  # primaries whose postmaster was ended; these postmasters
        self.standing, self.starts = [], {}  # threads: what lets stopped processes go on; what starts a primary, by its number
        self.to_go_on = set()  # these processes
        self.log = []

    # --- one strike ---------------------------------------------------------------------------------------------------

    def one_of(self, chance, k, *wanted):
        """A process of one of these kinds, or of any; None if there is none now."""
        kinds = of_kinds(self.cluster, k)
        found = sorted(kind for kind in kinds if not wanted or kind in wanted)
        if not found:
            return None, None
        kind = chance.choice(found)
        return kind, chance.choice(kinds[kind])

    def kill_one(self, chance, k, *kinds):
        kind, pid = self.one_of(chance, k, *kinds)
        if pid:
            give(signal.SIGKILL, pid)
        return kind

    def kill_backend(self, chance, k):
        return self.kill_one(chance, k, CLIENT)

    def kill_message_worker(self, chance, k):
        return self.kill_one(chance, k, MESSAGE_WORKER)

    def kill_worker(self, chance, k):
        kinds = sorted(kind for kind in of_kinds(self.cluster, k) if kind.startswith("gcl ") and kind != MESSAGE_WORKER)
        return self.kill_one(chance, k, chance.choice(kinds)) if kinds else None

    def kill_auxiliary(self, chance, k):
        kind = self.kill_one(chance, k, *AUXILIARY, STARTUP, VACUUM)
        if kind == STARTUP:  # its postmaster ends, too, if the process was not about to end anyway
            self.down.add(k)
        return kind

    def kill_postmaster(self, _, k):
        return self.end(k, POSTMASTER, lambda postmaster: give(signal.SIGKILL, postmaster))

    def kill_primary(self, _, k):
        return self.end(k, "all", lambda _: self.cluster.kill_all(k))

    def stop_at_once(self, _, k):
        """The postmaster ends its processes, and no checkpoint is written."""
        return self.end(k, "all", lambda postmaster: give(signal.SIGQUIT, postmaster))

    def leave(self, _, k):
        """In order, whatever dies meanwhile."""
        self.leaving.add(k)
        return self.end(k, "all", lambda postmaster: give(signal.SIGINT, postmaster))

    def end(self, k, what, how):
        postmaster = runs(self.cluster, k)
        if not postmaster:
            return None
        self.down.add(k)
        self.ending.add(postmaster)
        how(postmaster)
        return what

    def start_again(self, _, k):
        """While others are repaired; it may be killed meanwhile.  Not twice at a time: of two postmasters that find the lock file
        of a dead one, either may remove the other's."""
        if k not in self.down or (k in self.starts and self.starts[k].is_alive()):
            return None
        self.starts[k] = threading.Thread(target=self.cluster.try_start, args=(k,))
        self.starts[k].start()
        return "all"

    def stand_still(self, chance, pids):
        def go_on():
            time.sleep(seconds)
            give(signal.SIGCONT, *pids)
            self.to_go_on.difference_update(pids)

        seconds = chance.random() * STOPPED_MAX
        if TRANSPORT == "tcp" and PATIENCE > STOPPED_MAX and chance.random() < 0.2:
            seconds += PATIENCE
        self.to_go_on.update(pids)
        give(signal.SIGSTOP, *pids)
        self.standing.append(threading.Thread(target=go_on))
        self.standing[-1].start()

    def stop_process(self, chance, k):
        kind, pid = self.one_of(chance, k)
        if pid:
            self.stand_still(chance, [pid])
        return kind

    def stop_primary(self, chance, k):
        pids = [pid for pids in of_kinds(self.cluster, k).values() for pid in pids]
        self.stand_still(chance, pids)
        return pids and "all"

    def kill_around_stopped(self, chance, k):
        """One process is left, stopped: its primary's death is not certain until it ends.  Over tcp it may be: what the process does
        when it goes on reaches no memory any more."""
        kind, pid = self.one_of(chance, k)
        if not pid or kind == POSTMASTER or pid in self.to_go_on:
            return None
        self.down.add(k)
        self.cluster.kill_all(k, but=pid)
        if not has_memory(pid):  # it had ended by itself, or with a server that restarts
            return kind
        watcher = next((other for other in PRIMARIES if other not in self.struck), None)
        until = time.monotonic() + chance.random() * STOPPED_MAX
        while time.monotonic() < until:
            if watcher and TRANSPORT == "shm":
                self.assertNotEqual(["dead"], self.cluster.sql(watcher, f"SELECT state FROM gcl_stat_cluster WHERE node = {k}"), kind)
            time.sleep(0.05)
        give(chance.choice((signal.SIGCONT, signal.SIGCONT, signal.SIGKILL)), pid)
        try:
            eventually(lambda: not has_memory(pid), ORPHAN_MAX)
        except Hang as hang:
            raise Hang(f"{kind} {pid} goes on without its postmaster") from hang
        return kind

    KINDS = {kill_backend: 4, kill_message_worker: 3, kill_worker: 4, kill_auxiliary: 2, kill_postmaster: 3, kill_primary: 3,
             stop_process: 4, stop_primary: 2, kill_around_stopped: 3, stop_at_once: 1, leave: 2}

    def strike(self, chance, victims):
        """All of the victims at once."""
        def one(how, own, k):
            try:
                if not runs(self.cluster, k):
                    how = Chaos.start_again
                what = how(self, own, k)
                self.log.append(f"{how.__name__} {k} ({what})")
                self.strikes[how.__name__] += bool(what)
            except BaseException as error:  # pylint: disable=broad-except
                failures.append(error)

        self.struck.update(victims)
        failures = []
        threads = [threading.Thread(target=one, args=(*chance.choices(list(self.KINDS), self.KINDS.values()),
                                                      random.Random(chance.random()), k)) for k in victims]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for failure in failures:
            raise failure

    # --- one round ----------------------------------------------------------------------------------------------------

    def heal(self, chance):
        """Primaries that were ended are started, one by one or all at once; one that was not comes back by itself."""
        for thread in (*self.standing, *self.starts.values()):
            thread.join()
        self.standing, self.starts = [], {}
        # As an operator does who sees that one has not stopped: it may have been about to restart after a crash (gclctl's
        # stuck_shutdown.hpp).
        for k in sorted(self.leaving):
            if runs(self.cluster, k) in self.ending:
                self.cluster.ctl("stop", self.cluster.dir, "--node", str(k))
        self.leaving = set()
        eventually(lambda: not any(map(has_memory, self.ending)), END_MAX)
        eventually(lambda: all(not runs(self.cluster, k) or self.serves(k) for k in self.down), END_MAX)
        down, self.down, self.ending = [k for k in sorted(self.down) if not runs(self.cluster, k)], set(), set()
        chance.shuffle(down)
        if chance.random() < 0.5:
            for k in down:
                self.cluster.start(k)
        elif down:
            self.cluster.start()

    def serves(self, k):
        try:
            return self.cluster.sql(k, "SELECT 1") == ["1"]
        except SqlError:
            return False

    def turn(self, number):
        chance = random.Random(f"{SEED}/{number}")
        self.struck, self.log = set(), []
        began = time.monotonic()
        for _ in range(chance.choice((1, 1, 2, 3, 4, 6, 10))):
            count = chance.choices((1, 2, 3), (16, 5, 1))[0]
            self.strike(chance, chance.sample(PRIMARIES, count))
            time.sleep(chance.choice((0, chance.random() * 0.3, chance.random() * 2)))
        healing = time.monotonic()
        self.heal(chance)
        deaths.assert_all_work(self.clients, time.monotonic())
        now = time.monotonic()
        self.back.append(now - healing)
        pauses = [client.longest_pause(began, now) for client in self.clients if client.k not in self.struck]
        self.pauses += pauses
        print(f"turn {number}: {', '.join(self.log)}; survivors paused {max(pauses, default=0):.2f} s,"
              f" all work {now - healing:.2f} s after the last", flush=True)
        deaths.assert_bank_is_there(self, self.cluster, chance.choice(PRIMARIES), self.bank)
        if errors := [error for client in self.clients for error in client.errors]:
            self.fail("\n".join(errors))
        time.sleep(chance.random() * 1.5)

    def test_nothing_is_lost(self):
        print(f"GCL_SEED={SEED} SECONDS={SECONDS:g}", flush=True)
        for client in self.clients:
            client.thread.start()
        until, number = time.monotonic() + SECONDS, FIRST
        try:
            deaths.assert_all_work(self.clients, time.monotonic())
            while time.monotonic() < until:
                self.turn(number)
                number += 1
        except BaseException as error:
            print(f"GCL_SEED={SEED} TURN={number}: {', '.join(self.log)}{self.cluster.server_errors()}", flush=True)
            if not isinstance(error, self.failureException):  # something stands still
                print(stacks.of(self.cluster), flush=True)
            raise
        finally:
            for client in self.clients:
                client.ended.set()
            for client in self.clients:
                client.thread.join()
        deaths.stop(self, self.clients)
        self.tell(number - FIRST)
        self.assert_all_kept()

    # --- afterwards ---------------------------------------------------------------------------------------------------

    def tell(self, turns):
        joined = sum(self.cluster.log(k).count("gcl: joined pool") for k in PRIMARIES) - len(PRIMARIES)
        print(f"{turns} turns; {dict(sorted(self.strikes.items()))}; primaries joined again: {joined}")
        print(f"commits: {sum(len(client.told) for client in self.bank)} of the bank,"
              f" {sum(len(client.told) for client in self.appenders)} of lists,"
              f" {sum(len(client.times) for client in self.makers)} of tables;"
              f" unanswered: {sum(len(client.unknown) for client in self.clients)}")
        for what, seconds in (("survivors paused", self.pauses), ("all worked again after", self.back)):
            if seconds:
                print(f"{what}: median {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s", flush=True)

    def assert_all_kept(self):
        deaths.assert_bank_kept(self, self.cluster, self.bank, "bank")
        assert_lists_kept(self, self.cluster, self.lists)
        assert_tables_kept(self, self.cluster, self.makers)
        deaths.assert_in_order(self, self.cluster, *TABLES)
        for k in PRIMARIES:
            self.assertEqual([], [line for line in self.cluster.log(k).splitlines() if BAD.search(line)], f"primary {k}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
