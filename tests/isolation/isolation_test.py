"""Every spec of specs/ on one stock PostgreSQL server with heap tables, and on three primaries with gcl tables, each
session on another one: the same answers, the same waits, the same order.

    python3 isolation_test.py [-v] [SPEC ...]       -v: prints what happened on one server

Environment: GCLCTL, the program.
"""
import glob
import os
import sys
import time
import unittest

from runner import InvalidPermutation, Permutation
from side_by_side import SideBySide
from spec import parse

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUTS = "-c deadlock_timeout=100ms"


def shown(places):
    return "\n".join(f"  {step} {what}" + "".join(f"\n      {line}" for line in (lines[0] if lines else []))
                     for events in places for step, what, *lines in events)


class Specs(SideBySide):
    options = TIMEOUTS
    maxDiff = None

    def check(self, path):
        name = os.path.basename(path).removesuffix(".spec")
        with open(path, encoding="utf-8") as file:
            spec = parse(name, file.read())
        began, done = time.monotonic(), 0
        for permutation in spec.permutations:
            try:
                expected = Permutation(spec, self.one).run(permutation)
            except InvalidPermutation:
                continue
            if VERBOSE:
                print(f"\n{name}: {' '.join(permutation)}\n{shown(expected)}")
            with self.subTest(permutation=" ".join(permutation)):
                seen = Permutation(spec, self.several).run(permutation, expected)
                self.compare(spec, expected, seen)
            done += 1
        self.assertGreater(done, 0, "no permutation can run")
        print(f"{name}: {done} permutations, {time.monotonic() - began:.1f} s", flush=True)

    def compare(self, spec, expected, seen):
        for places in (seen, expected):
            for events in places:
                for k, (step, what, *lines) in enumerate(events):
                    if step not in spec.differs or not lines:
                        continue
                    if places is seen:
                        self.assertRegex("\n".join(lines[0]), spec.differs[step])
                    events[k] = (step, what, [spec.differs[step].pattern])
        self.assertEqual(shown(expected), shown(seen))


def add_tests(names):
    for path in sorted(glob.glob(f"{HERE}/specs/*.spec")):
        name = os.path.basename(path).removesuffix(".spec")
        if not names or name in names:
            setattr(Specs, f"test_{name.replace('-', '_')}", lambda self, path=path: self.check(path))


VERBOSE = "-v" in sys.argv
add_tests([name for name in sys.argv[1:] if name != "-v"])

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
