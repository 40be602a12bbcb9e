#!/usr/bin/env python3
"""PostgreSQL's own isolation suite: on a plain server with heap tables, and on the primaries of a cluster with gcl tables.  README.md.

    python3 suite_test.py [SPEC ...]

Environment: GCLCTL, the program.  GCL_ISOLATION_SUITE, the folder of the suite.  KEEP_OUTPUT=DIR keeps what was printed.
"""
import os
import pathlib
import sys
import time
import unittest

import servers
from differences import Accepted, Notices, hunks
from suite import HERE, Suite, play

ACCEPTED = HERE.parent / "accepted/isolation"
RUNS = ("one", "spread")
DIFFERENCES_SHOWN = 150  # lines


def kept(run, played):
    folder = os.environ.get("KEEP_OUTPUT")
    for spec, what in played.items() if folder else ():
        path = pathlib.Path(folder) / run / f"{spec}.out"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(what.output, "utf-8")


class IsolationSuite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.suite = Suite()
        cls.accepted = Accepted(ACCEPTED, RUNS)
        cls.specs = [spec for spec in cls.suite.specs if not cls.suite.judged(spec)]
        if ONLY:
            cls.specs = [spec for spec in cls.suite.specs if spec in ONLY]
        began = time.monotonic()
        with servers.plain() as databases:
            cls.heap = play(cls.suite, cls.specs, databases)
        kept("heap", cls.heap)
        print(f"The suite of {cls.suite.version}: {len(cls.specs)} of {len(cls.suite.specs)} specs, on heap in "
              f"{time.monotonic() - began:.0f} s", flush=True)
        cls.cluster = cls.enterClassContext(servers.cluster())

    def check(self, run, databases, before=servers.clean, notices=Notices.IN_PLACE):
        began = time.monotonic()
        left_out = self.accepted.unspread(run, self.suite)
        specs = [spec for spec in self.specs if spec not in left_out]
        long = self.accepted.waited_for(run)
        longest_first = sorted(specs, key=lambda spec: (spec not in long, -self.heap[spec].seconds))
        played = play(self.suite, longest_first, databases, servers.GCL_TABLES, before, long)
        kept(run, played)
        different, same = {}, 0
        for spec in specs:
            found = hunks(self.heap[spec].output, played[spec].output, notices)
            same += not found
            if left := self.accepted.judge(run, spec, found):
                different[spec] = left
        print(f"{run}: {same} specs print what heap prints, {len(specs) - same - len(different)} what is accepted, "
              f"{len(different)} something else; {time.monotonic() - began:.0f} s", flush=True)
        text = [line for spec, left in different.items() for hunk in left
                for line in (f"{spec}:{hunk.permutation}", *hunk.text.splitlines())]
        text += [f"{ACCEPTED}:{line.number}: it accepts nothing" for line in self.accepted.unused(run, specs)]
        if text:
            self.fail("\n".join(["", *text[:DIFFERENCES_SHOWN]]))

    def test_sessions_of_one_primary(self):
        self.check("one", [servers.database(self.cluster.dsn(1), name) for name in servers.NAMES])

    def test_sessions_spread_over_primaries(self):
        with servers.spread(self.cluster) as (databases, before):
            self.check("spread", databases, before, Notices.ANYWHERE)


ONLY = [name for name in sys.argv[1:] if not name.startswith("-")]

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
