#!/usr/bin/env python3
"""What tests/accepted/isolation accepts and what it does not, on outputs made up here."""
import pathlib
import tempfile
import unittest

from differences import Accepted, Notices, hunks

HEAP = """Parsed test spec with 2 sessions

starting permutation: a b
step a: SELECT;
1
step b: COMMIT;

starting permutation: b a
step b: COMMIT;
step a: SELECT;
1
"""


class Differences(unittest.TestCase):
    def accepted(self, *lines):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write("\n".join(lines))
            file.flush()
            return Accepted(pathlib.Path(file.name), ("one", "spread"))

    def left(self, accepted, gcl, run="one"):
        return [hunk.text for hunk in accepted.judge(run, "s", hunks(HEAP, gcl))]

    def test_what_is_the_same_has_no_hunks(self):
        self.assertEqual([], hunks(HEAP, HEAP))

    def test_a_hunk_is_of_one_permutation(self):
        gcl = HEAP.replace("1\n", "2\n")
        self.assertEqual([(" a b", "-1\n+2\n"), (" b a", "-1\n+2\n")], [(hunk.permutation, hunk.text) for hunk in hunks(HEAP, gcl)])

    def test_notices_may_count_by_themselves(self):
        heap = HEAP.replace("1\n", "s1: NOTICE:  x\n1\ns1: NOTICE:  y\n", 1)
        other = HEAP.replace("1\n", "1\ns1: NOTICE:  x\ns1: NOTICE:  y\n", 1)
        self.assertEqual([], hunks(heap, other, Notices.ANYWHERE))
        self.assertNotEqual([], hunks(heap, other))
        self.assertEqual(["-s1: NOTICE:  y\n"], [hunk.text for hunk in hunks(heap, heap.replace("s1: NOTICE:  y\n", ""), Notices.ANYWHERE)])

    def test_a_permutation_that_is_missing_is_a_hunk(self):
        self.assertEqual(["-the permutation\n"], [hunk.text for hunk in hunks(HEAP, HEAP[:HEAP.rindex("\nstarting")])])

    def test_a_line_accepts_whole_hunks_of_its_spec_in_its_runs(self):
        gcl = HEAP.replace("1\n", "2\n3\n", 1)
        for line, left in (("s differs /-1\\n\\+2\\n\\+3/: so", []), ("s differs /-1\\n\\+2/: so", ["-1\n+2\n+3\n"]),
                           ("t differs /-1\\n\\+2\\n\\+3/: so", ["-1\n+2\n+3\n"])):
            with self.subTest(line):
                self.assertEqual(left, self.left(self.accepted("[one]", line), gcl))
                self.assertEqual(["-1\n+2\n+3\n"], self.left(self.accepted("[spread]", line), gcl))

    def test_a_refusal_accepts_what_follows_in_its_permutation_alone(self):
        gcl = HEAP.replace("SELECT;\n1\nstep b: COMMIT;\n", "SELECT;\nERROR:  X: not yet\n", 1).replace("\n1\n", "\n2\n")
        line = "s refused /X: not yet/: not yet"
        self.assertEqual(["-1\n+2\n"], self.left(self.accepted("[one]", line), gcl))
        before = HEAP.replace("step a: SELECT;\n1\n", "step a: SELECT\n1\nERROR:  X: not yet\n", 1)
        self.assertEqual(["-step a: SELECT;\n+step a: SELECT\n"], self.left(self.accepted("[one]", line), before))

    def test_a_line_that_accepts_nothing_is_told(self):
        accepted = self.accepted("[one spread]", "s differs /-1\\n\\+2/: so", "s sometimes /-1\\n\\+3/: so")
        self.left(accepted, HEAP.replace("1\n", "2\n"), "one")
        self.assertEqual([], accepted.unused("one", ["s"]))
        self.assertEqual([2], [line.number for line in accepted.unused("spread", ["s"])])

    def test_what_is_not_understood_is_an_error(self):
        for lines in (("[one]", "s differs /x/"), ("[one]", "s differs /x/: "), ("[two]",), ("[one]", "s different /x/: so")):
            with self.subTest(lines), self.assertRaises(ValueError):
                self.accepted(*lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
