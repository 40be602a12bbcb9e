"""The network between the parts of a cluster delays, loses, reorders, and is cut: between all, between two, in one direction, for a
moment and for long.  Nobody hangs; a primary that is cut off commits nothing, and reads nothing that others have changed meanwhile;
nothing that a client was told is lost; and all come back when the network does.

    GCL_TRANSPORT=tcp python3 network_test.py ShortBad ShortCut          some of it, for ./check
"""
import itertools
import random
import re
import signal
import threading
import time
import unittest
from collections import Counter

import deaths
import network
import stacks
from deaths import BANK, BankClient, Client
from harness import Hang, eventually, give
from list_append import LISTS, ListClient, Lists, assert_lists_kept
from network import MEMORY, NetworkCluster

LEASE = 1.8  # seconds: coherence/transport/tcp/member/mirror.hpp
# Seconds until what one waits for has an answer, or an error.  A primary cut off from memory: the lease, and its server's end.  Others:
# until the death is certain, and repaired.  Where two do not reach each other, they wait for each other before (kTimes in
# tcp_transport.cpp), and memory node 0 for what others say.
SLACK = 6.0  # of a machine that does other things, too
CRAWL = 2  # and of one that crawls: a process may wait for its processor each time that it is waited for
CUT_OFF_MAX = CRAWL * (LEASE + SLACK)
MEMORY_MAX = CRAWL * (5.0 + SLACK)
PEERS_MAX = CRAWL * (15.0 + SLACK)
DEAD_MAX = 30.0  # seconds until a death is in the log
BACK_MAX = 60.0  # seconds until all work, after the network is whole again
LOAD = 3.0  # seconds
MOMENT = 1.0  # second, that what a client sends may be on its way
PATIENT = 10  # seconds of patience where nobody is to die: no silence of network or machine lasts a third of it
PRIMARIES = (1, 2, 3)


class Watch(Client):
    """Asks one thing after the other, and keeps how long each took.  All count in one row, and what one reads is no older than what
    anybody was told before.  No number of a sequence is given twice."""

    def __init__(self, cluster, k, name, told):
        super().__init__(cluster, k, name)
        self.highest, self.asked, self.old, self.numbers, self.pending = told, [], [], [], None

    def transaction(self, session):
        begin, least = time.monotonic(), self.highest[0]
        found = self.ask(session, "SELECT n FROM counted")
        if found < least:
            self.old.append(f"{self.name} read {found} in {time.monotonic() - begin:.3f} s, and somebody was told {least} before")
        self.numbers.append(self.ask(session, "SELECT nextval('numbers')"))
        if len(self.numbers) % 4 == self.k:
            now = self.ask(session, "UPDATE counted SET n = n + 1 RETURNING n")
            with LOCK:
                self.highest[0] = max(self.highest[0], now)

    def ask(self, session, sql):
        self.pending = begin = time.monotonic()
        try:
            found = int(session.one(sql))
        finally:
            self.asked.append((begin, time.monotonic()))
            self.pending = None
        self.sent.append(begin)
        self.times.append(self.asked[-1][1])
        return found

    def longest(self, since):
        """Of what was asked then or later, or has no answer yet."""
        now = time.monotonic()
        pending = self.pending
        return max([end - begin for begin, end in self.asked if end >= since] + ([now - pending] if pending else []), default=0.0)


LOCK = threading.Lock()


class NetworkTest(unittest.TestCase):
    patience = None  # of the cluster: as it comes

    def setUp(self):
        self.cluster = self.enterContext(NetworkCluster(primaries=len(PRIMARIES), patience=self.patience))
        self.network = self.cluster.network
        self.cluster.sql(1, f"{BANK}; {LISTS}; CREATE TABLE counted (n int) USING gcl; INSERT INTO counted VALUES (0);"
                            " CREATE SEQUENCE numbers")
        lists, told = Lists(1), [0]
        self.lists = lists
        self.bank = [BankClient(self.cluster, k, f"bank {k}") for k in PRIMARIES]
        self.appenders = [ListClient(self.cluster, k, f"list {k}", lists) for k in PRIMARIES]
        self.watches = {k: Watch(self.cluster, k, f"watch {k}", told) for k in PRIMARIES}
        self.clients = [*self.bank, *self.appenders, *self.watches.values()]
        for client in self.clients:
            client.thread.start()
        self.addCleanup(self.end)
        self.ended = False
        self.assert_all_work()

    def end(self):
        for client in self.clients:
            client.ended.set()
        for client in self.clients:
            client.thread.join()

    def tearDown(self):
        """Everything holds afterwards, whatever the test did."""
        deaths.stop(self, self.clients)
        self.assertEqual([], [old for watch in self.watches.values() for old in watch.old])
        numbers = Counter(number for watch in self.watches.values() for number in watch.numbers)
        self.assertEqual([], [number for number, times in numbers.items() if times > 1], "given twice")
        deaths.assert_bank_kept(self, self.cluster, self.bank, "bank")
        assert_lists_kept(self, self.cluster, self.lists)
        deaths.assert_in_order(self, self.cluster, "acct", "hist", "lists", "counted")

    # --- what is looked at

    def deaths(self, k):
        return len(re.findall(rf": node {k} \(incarnation \d+\) is dead:", self.cluster.memory_log()))

    def assert_all_work(self, but=(), seconds=BACK_MAX):
        since = time.monotonic()
        try:
            deaths.assert_all_work([client for client in self.clients if client.k not in but], since, seconds)
        except Hang:
            print(stacks.of(self.cluster), self.cluster.server_errors(), flush=True)
            raise
        self.assertEqual([], [error for client in self.clients for error in client.errors])
        return time.monotonic() - since

    def assert_nobody_died(self, how, **values):
        """The network is like that for a moment, and is whole again."""
        before = [self.deaths(k) for k in PRIMARIES]
        since, counts = time.monotonic(), self.network.counts()
        how(**values)
        time.sleep(LOAD)
        self.assert_all_work()
        after = self.network.counts()
        longest = max(watch.longest(since) for watch in self.watches.values())
        done = sum(t >= since for client in self.clients for t in client.times)
        self.network.heal()
        print(f"{values}: {done} answers, the longest took {longest:.2f} s; packets",
              {what: after[what] - counts[what] for what in after}, flush=True)
        self.assertEqual(before, [self.deaths(k) for k in PRIMARIES], values)
        return {what: after[what] - counts[what] for what in after}

    def cut_again_and_again(self, cut, whole, times):
        """For less than a third of the lease: this test is not always woken when it wants to be."""
        for _ in range(times):
            self.network.every(up=False)
            time.sleep(cut)
            self.network.every(up=True)
            time.sleep(whole)

    def strike(self, what, victim, survivors_max, *, victim_max=CUT_OFF_MAX, silent_after=LEASE, names=(), heal=None,
               then=lambda: None):
        """After `what` one primary dies; the others go on; it comes back when the network does.  `silent_after`: seconds until it
        commits nothing any more; None: until it is dead.  `names`: (host, text): in whose log the text is then.
        `then`: is called when it is dead."""
        before, logs = self.deaths(victim), {host: len(self.log(host)) for host in (MEMORY, *PRIMARIES)}
        since = time.monotonic()
        what()
        struck = time.monotonic()
        try:
            eventually(lambda: self.deaths(victim) > before, DEAD_MAX)
        except Hang as hang:
            raise Hang(f"primary {victim} is not dead\n{self.cluster.memory_log()[-3000:]}") from hang
        dead = time.monotonic() - struck
        then()
        self.assert_all_work(but=(victim,))
        survivors = max(watch.longest(since) for k, watch in self.watches.items() if k != victim)
        cut_off = self.watches[victim].longest(since)
        healed = time.monotonic()
        # By when they were asked: who hears of an answer may have had no processor when it came.
        silent = struck + (silent_after or dead) + MOMENT
        speak = [client.name for client in self.clients if client.k == victim
                 and any(silent < sent and t < healed for sent, t in zip(client.sent, client.times))]
        for host, text in names:
            self.assertIn(text, self.log(host)[logs[host]:], f"log of host {host}")
        (heal or self.network.heal)()
        back = self.assert_all_work()
        print(f"dead after {dead:.1f} s; the longest answer took others {survivors:.1f} s, and the one cut off {cut_off:.1f} s;"
              f" all work {back:.1f} s after the network is whole", flush=True)
        self.assertEqual([], speak, "answers of a primary that is cut off")
        self.assertLess(survivors, survivors_max)
        self.assertLess(cut_off, victim_max)

    def log(self, host):
        return self.cluster.memory_log() if host == MEMORY else self.cluster.log(host)


def at(host):
    return f"{network.address(host)}:"


class ShortBad(NetworkTest):
    patience = PATIENT

    def test_all_in_a_moment(self):
        slow = self.assert_nobody_died(self.network.every, delay=0.001, loss=0.01, late=0.01)
        self.assertGreater(min(slow["lost"], slow["late"]), 0, slow)


class ShortCut(NetworkTest):
    def test_all_in_a_minute(self):
        net = self.network
        self.strike(lambda: net.cut_from_all(2), 2, MEMORY_MAX, names=[(2, at(MEMORY)), (MEMORY, at(2))])
        self.strike(lambda: net.paths([(MEMORY, 3)], up=False), 3, MEMORY_MAX)


class Bad(NetworkTest):
    """The network is slow and bad, and whole."""

    def test_delay(self):
        for delay in (50e-6, 500e-6, 0.005, 0.02):
            self.assert_nobody_died(self.network.every, delay=delay)

    def test_loss(self):
        for loss in (0.01, 0.05):
            self.assertGreater(self.assert_nobody_died(self.network.every, loss=loss, delay=200e-6)["lost"], 0)

    def test_reordering(self):
        self.assertGreater(self.assert_nobody_died(self.network.every, late=0.05)["late"], 0)
        self.assert_nobody_died(self.network.every, delay=0.001, jitter=0.003)

    def test_flapping_shorter_than_the_lease(self):
        self.assertGreater(self.assert_nobody_died(self.cut_again_and_again, cut=0.1, whole=0.5, times=10)["lost"], 0)
        self.assertGreater(self.assert_nobody_died(self.cut_again_and_again, cut=0.4, whole=1.2, times=5)["lost"], 0)


class BadForLonger(NetworkTest):
    """Memory node 0 has more patience than it comes with."""

    patience = PATIENT

    def test_flapping_shorter_than_the_lease(self):
        self.assertGreater(self.assert_nobody_died(self.cut_again_and_again, cut=2.5, whole=3.0, times=3)["lost"], 0)


class Cut(NetworkTest):
    def test_from_all(self):
        self.strike(lambda: self.network.cut_from_all(2), 2, MEMORY_MAX, names=[(2, at(MEMORY)), (MEMORY, at(2)), (1, at(2)), (3, at(2))])

    def test_from_memory_but_not_from_peers(self):
        self.strike(lambda: self.network.cut(2, MEMORY), 2, MEMORY_MAX, names=[(2, at(MEMORY)), (MEMORY, at(2))])

    def test_from_peers_but_not_from_memory(self):
        self.strike(lambda: self.network.cut(2, 1, 3), 2, PEERS_MAX, victim_max=PEERS_MAX, silent_after=None,
                    names=[(1, at(2)), (3, at(2)), (MEMORY, "node 2 (incarnation")])

    def test_two_peers_from_each_other(self):
        self.strike(lambda: self.network.cut(1, 3), 3, PEERS_MAX, victim_max=PEERS_MAX, silent_after=None, names=[(1, at(3))])

    def test_to_memory_only(self):
        self.strike(lambda: self.network.paths([(2, MEMORY)], up=False), 2, MEMORY_MAX, names=[(MEMORY, at(2))])

    def test_from_memory_only(self):
        self.strike(lambda: self.network.paths([(MEMORY, 2)], up=False), 2, MEMORY_MAX, names=[(2, at(MEMORY))])

    def test_to_a_peer_only(self):
        self.strike(lambda: self.network.paths([(1, 3)], up=False), 3, PEERS_MAX, victim_max=PEERS_MAX, silent_after=None)

    def test_from_a_peer_only(self):
        self.strike(lambda: self.network.paths([(3, 1)], up=False), 3, PEERS_MAX, victim_max=PEERS_MAX, silent_after=None)

    def test_for_long(self):
        """Longer than a server that starts waits for anything."""
        def heal():
            time.sleep(45)
            self.network.heal()
        self.strike(lambda: self.network.cut_from_all(2), 2, MEMORY_MAX, heal=heal)

    def test_answers_that_lie_in_the_network(self):
        """What memory node 0 sent arrives when it has given the node up."""
        def what():
            self.network.paths([(2, MEMORY)], up=False)
            self.network.paths([(MEMORY, 2)], delay=1.5)

        def then():
            path = self.network.path(MEMORY, 2)
            self.assertGreater(path["under_way"], 0)
            eventually(lambda: self.network.path(MEMORY, 2)["passed"] >= path["passed"] + path["under_way"])
        self.strike(what, 2, MEMORY_MAX, then=then)

    def test_large_packets_alone(self):
        """A path that a greeting passes, and no page."""
        self.strike(lambda: self.network.paths(self.network.between(2, MEMORY), size=1000), 2, MEMORY_MAX, silent_after=None)

    def test_large_packets_alone_between_peers(self):
        self.strike(lambda: self.network.paths(self.network.between(1, 3), size=1000), 3, PEERS_MAX, victim_max=PEERS_MAX, silent_after=None)


class Gone(NetworkTest):
    def test_a_primary_without_a_word(self):
        """Its host has lost power: no connection is closed."""
        def what():
            self.network.cut_from_all(2)
            self.cluster.kill_all(2)

        def heal():
            self.network.heal()
            self.cluster.start(2)
        self.strike(what, 2, MEMORY_MAX, names=[(1, at(2)), (3, at(2)), (MEMORY, at(2))], heal=heal)

    def restart_memory(self, number, away):
        before = [self.deaths(k) for k in PRIMARIES]
        process = self.cluster.memory_node()
        since = time.monotonic()
        give(number, process)
        eventually(lambda: self.cluster.memory_node() is None)
        time.sleep(away)
        self.cluster.start_memory_node()
        back = self.assert_all_work()
        longest = max(watch.longest(since) for watch in self.watches.values())
        print(f"memory node 0 was away for {away} s; all work {back:.1f} s after it is there; the longest answer took {longest:.1f} s",
              flush=True)
        self.assertEqual([deaths + 1 for deaths in before], [self.deaths(k) for k in PRIMARIES])
        for k in PRIMARIES:
            self.assertIn(at(MEMORY), self.cluster.log(k))
        self.assertLess(longest, away + CUT_OFF_MAX + MEMORY_MAX)

    def test_memory_restarted_in_order(self):
        self.restart_memory(signal.SIGTERM, 0)

    def test_memory_killed(self):
        self.restart_memory(signal.SIGKILL, 0)
        self.restart_memory(signal.SIGKILL, 30)

    def test_memory_cut_from_all(self):
        before = [self.deaths(k) for k in PRIMARIES]
        since = time.monotonic()
        self.network.cut_from_all(MEMORY)
        struck = time.monotonic()
        eventually(lambda: all(self.deaths(k) > was for k, was in zip(PRIMARIES, before)), DEAD_MAX)
        time.sleep(10)
        self.assertEqual([], [client.name for client in self.clients if any(t > struck + LEASE + MOMENT for t in client.sent)])
        self.network.heal()
        print(f"all work {self.assert_all_work():.1f} s after memory is there", flush=True)
        for watch in self.watches.values():
            self.assertLess(watch.longest(since), CUT_OFF_MAX)


class Flapping(NetworkTest):
    def flap(self, which):
        before = self.deaths(2)
        for _ in range(5):
            for path in (which, self.network.between(2, 1, 3)):
                self.network.paths(path, up=False)
                time.sleep(2.5)
                self.network.paths(path, up=True)
                time.sleep(1.5)
        self.network.heal()
        back = self.assert_all_work()
        print(f"all work {back:.1f} s after; deaths: {[self.deaths(k) for k in PRIMARIES]}", flush=True)
        self.assertGreater(self.deaths(2), before)

    def test_longer_than_the_lease(self):
        self.flap(self.network.between(2, MEMORY))

    def test_in_one_direction(self):
        self.flap([(MEMORY, 2)])
        self.flap([(2, MEMORY)])

    def test_all_at_random(self):
        """Each path by itself, for half a minute."""
        chance, lost = random.Random(1), self.network.counts()["lost"]
        paths = list(itertools.permutations((MEMORY, *PRIMARIES), 2))
        for _ in range(20):
            self.network.paths(chance.sample(paths, 4), up=False)
            time.sleep(chance.random() * 2)
            self.network.paths(chance.sample(paths, 8), up=True)
            time.sleep(chance.random())
        self.network.heal()
        self.assertGreater(self.network.counts()["lost"], lost)
        back = self.assert_all_work()
        print(f"all work {back:.1f} s after; deaths: {[self.deaths(k) for k in PRIMARIES]}", flush=True)


if __name__ == "__main__":
    network.look()
    unittest.main(verbosity=2)
