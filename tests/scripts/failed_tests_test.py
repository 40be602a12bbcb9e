"""scripts/failed_tests.py: what a run of ctest that failed says once more at the end of ./check."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class FailedTests(unittest.TestCase):
    def setUp(self):
        self.dir = self.enterContext(tempfile.TemporaryDirectory(prefix="gcl-failed-tests-"))

    def said_of(self, **tests):
        """`tests`: shell commands."""
        with open(f"{self.dir}/CTestTestfile.cmake", "w", encoding="ascii") as file:
            for name, command in tests.items():
                file.write(f"add_test([=[{name.replace('_', '.')}]=] sh -c [=[{command}]=])\n")
        subprocess.run(["ctest", "--test-dir", self.dir, "-j", "3"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return subprocess.run([f"{ROOT}/scripts/failed_tests.py", self.dir], capture_output=True, text=True, check=True).stdout

    def test_only_what_failed_is_told(self):
        said = self.said_of(a_good="echo fine", a_bad="echo one; echo; echo two >&2; exit 1")
        self.assertEqual("--- a.bad: its last lines, of 2\none\ntwo\n", said)

    def test_of_much_the_last_lines(self):
        said = self.said_of(long="seq 1000; exit 1").splitlines()
        self.assertEqual(["--- long: its last lines, of 1000", "971"], said[:2])
        self.assertEqual("1000", said[-1])

    def test_of_many_the_first(self):
        said = self.said_of(**{f"t_{n}": f"echo {n}; exit 1" for n in range(5)})
        self.assertEqual(3, said.count("its last lines"))
        self.assertIn("--- 2 more have failed\n", said)

    def test_of_one_that_says_nothing(self):
        self.assertEqual("--- silent: its last lines, of 0\n", self.said_of(silent="exit 3"))

    def test_where_all_passed(self):
        self.assertEqual("", self.said_of(good="true"))

    def test_where_nothing_ran(self):
        self.assertEqual("", subprocess.run([f"{ROOT}/scripts/failed_tests.py", self.dir], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    unittest.main()
