#!/usr/bin/env python3
"""The specs of PostgreSQL's isolation suite whose outcome the order of waits may change: those with SERIALIZABLE transactions, and
those of ALTER TABLE in a mode that gcl has to make stronger.  What has been committed must be what some serial order gives
(serial.py).

    python3 judged_test.py [SPEC ...]

Environment: GCLCTL, the program.  GCL_ISOLATION_SUITE, the folder of the suite.
"""
import pathlib
import queue
import re
import sys
import threading
import time
import traceback
import unittest

import servers
from deferred import Player
from serial import Judge
from suite import Suite

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "isolation"))
from spec import parse  # noqa: E402

DIFFERENCES_SHOWN = 12  # permutations
TIMEOUTS = "-c deadlock_timeout=50ms"


def shown(name, permutation, outcome, error=""):
    text = [f"{name}: {' '.join(permutation)}"]
    for step, lines in outcome.order if outcome else ():
        text += [f"    {step}", *(f"        {line}" for line in lines)]
    return "\n".join(text + ([f"    in the end: {outcome.state}"] if outcome else []) + ([error] if error else []))


class Round:
    """All permutations of some specs, at some databases at a time."""

    def __init__(self, suite, names):
        self.waiting = queue.SimpleQueue()
        for name in names:
            self.waiting.put(parse(name, suite.text[name]))
        self.bad, self.played, self.again, self.lock = [], 0, 0, threading.Lock()
        self.seconds = {}

    def play(self, spec, dsns, look, options, gcl, plain):
        began = time.monotonic()
        player = Player(spec, {session.name: dsns[k % len(dsns)] for k, session in enumerate(spec.sessions)}, look, options, gcl)
        judge = Judge(spec, plain)
        try:
            for permutation in spec.permutations:
                outcome = player.play(permutation)
                order = judge.order(outcome)
                with self.lock:
                    self.played += 1
                    self.again += sum(transaction.again() for transaction in outcome.transactions)
                    if order is None:
                        self.bad.append(shown(spec.name, permutation, outcome, "    no serial order gives this"))
                    elif not order:
                        self.bad.append(shown(spec.name, permutation, outcome, "    nothing has been committed"))
        finally:
            player.close()
            judge.close()
            self.seconds[spec.name] = time.monotonic() - began

    def run(self, places, options, gcl):
        """`places`: (dsns of the sessions, one to look from, a plain server's)."""
        def work(dsns, look, plain):
            while True:
                try:
                    spec = self.waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    servers.clean(look)
                    servers.clean(plain)
                    self.play(spec, dsns, look, options, gcl, plain)
                except BaseException:  # pylint: disable=broad-except
                    with self.lock:
                        self.bad.append(f"{spec.name}: {traceback.format_exc()}")

        workers = [threading.Thread(target=work, args=place) for place in places]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return self


class Judged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.suite = Suite()
        cls.names = [name for name in cls.suite.specs if cls.suite.judged(name) and (not ONLY or name in ONLY)]
        cls.plain = cls.enterClassContext(servers.plain())
        cls.cluster = cls.enterClassContext(servers.cluster())

    def check(self, run, primaries):
        began = time.monotonic()
        places = []
        for name, plain in zip(servers.NAMES, self.plain):
            dsns = [servers.database(self.cluster.dsn(k), name) for k in primaries]
            places.append((dsns, dsns[0], plain))
        played = Round(self.suite, self.names).run(places, f"{TIMEOUTS} {servers.GCL_TABLES}", True)
        slowest = sorted(played.seconds.items(), key=lambda item: -item[1])[:4]
        print(f"{run}: {played.played} permutations of {len(self.names)} specs, {played.again} transactions have to be tried again; "
              f"{time.monotonic() - began:.0f} s ({', '.join(f'{name} {seconds:.0f}' for name, seconds in slowest)})", flush=True)
        if played.bad:
            self.fail("\n".join(["", f"{len(played.bad)}:", *played.bad[:DIFFERENCES_SHOWN]]))

    def test_sessions_of_one_primary(self):
        self.check("one", (1,))

    def test_sessions_spread_over_primaries(self):
        self.check("spread", (1, 2, 3))

    def test_a_write_skew_is_not_serial(self):
        """The judge itself: what REPEATABLE READ lets through on heap."""
        name = "simple-write-skew"
        suite = Suite()
        suite.text[name] = re.sub("SERIALIZABLE", "REPEATABLE READ", suite.text[name])
        played = Round(suite, [name]).run([([self.plain[0]], self.plain[0], self.plain[1])], TIMEOUTS, False)
        self.assertEqual(6, played.played)
        skewed = [text for text in played.bad if "no serial order gives this" in text]
        self.assertEqual(4, len(skewed), played.bad)


ONLY = [name for name in sys.argv[1:] if not name.startswith("-")]

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
