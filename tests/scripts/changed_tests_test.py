"""Which tests `./check quick` runs, in a little repository with this one's folders."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
BUFMGR, ENGINE, LOCKS = r"test_(bufmgr|recovery|replacement)\.", r"test_engine\.", r"cluster\.locks$"
COHERENCE, SEEDS, SURVIVORS = r"test_(coherence|conformance|bufmgr)\.", r"test_sim\.Sim/Seeds\..*/[01]", r"test_sim\.Sim/SurvivorSeeds\..*/[01]"


class ChangedTests(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gcl-scripts-")
        self.addCleanup(shutil.rmtree, self.dir)
        # No user's own settings, and not the repository that a hook of git runs this in.
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.dir, "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{who}_NAME": "somebody", f"GIT_{who}_EMAIL": "somebody@example.org"}
        self.git("init", "-q", "-b", "main")
        os.mkdir(os.path.join(self.dir, "scripts"))
        shutil.copy(os.path.join(SCRIPTS, "changed_tests.sh"), os.path.join(self.dir, "scripts"))
        self.commit("scripts/lib.sh", "docs/words.md")
        self.commit("bufmgr/pool.cpp")

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.dir, env=self.environment, check=True, capture_output=True)

    def write(self, *files):
        for name in files:
            path = os.path.join(self.dir, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a", encoding="ascii") as file:
                file.write("more\n")

    def commit(self, *files):
        self.write(*files)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "more")

    def assert_chosen(self, *tests):
        done = subprocess.run([os.path.join(self.dir, "scripts", "changed_tests.sh")], cwd="/", env=self.environment,
                              text=True, capture_output=True, check=False)
        self.assertEqual((0, "|".join(sorted(tests)) + "\n", ""), (done.returncode, done.stdout, done.stderr))

    def test_on_main_what_was_committed_last(self):
        self.assert_chosen(BUFMGR)
        self.commit("extension/engine/heap.cpp")
        self.assert_chosen(ENGINE)
        self.commit("docs/words.md")
        self.assert_chosen()

    def test_on_main_what_is_not_committed(self):
        self.write("extension/engine/heap.cpp")
        self.assert_chosen(ENGINE)
        self.write("scripts/lib.sh")
        self.assert_chosen(ENGINE, r"scripts\.")
        self.git("add", "-A")
        self.assert_chosen(ENGINE, r"scripts\.")

    def test_on_a_branch_what_differs_from_main(self):
        self.git("checkout", "-q", "-b", "branch")
        self.commit("tests/cluster/locks_test.py")
        self.commit("tests/unit/engine/heap/heap_test.cpp")
        self.assert_chosen(LOCKS, ENGINE)
        self.write("tests/cluster/names_test.py")  # git does not know it
        self.assert_chosen(LOCKS, ENGINE, r"cluster\.names$")
        # What main has got since is not this branch's.
        self.git("checkout", "-q", "main")
        self.commit("coherence/line.cpp")
        self.git("checkout", "-q", "branch")
        self.assert_chosen(LOCKS, ENGINE)

    def test_on_no_branch_as_on_one(self):
        self.git("checkout", "-q", "--detach")
        self.assert_chosen(BUFMGR)
        self.commit("extension/engine/heap.cpp")
        self.commit("tests/cluster/locks_test.py")
        self.assert_chosen(ENGINE, LOCKS)

    def test_behind_main_what_was_committed_there(self):
        self.commit("extension/engine/heap.cpp")
        self.git("checkout", "-q", "--detach", "HEAD~1")
        self.assert_chosen(BUFMGR)

    def test_the_protocol_is_explored_and_simulated(self):
        for file in ("latch/latch_word.hpp", "line/line_machine.cpp", "message/slots.hpp", "session/evictor.cpp", "session.cpp"):
            self.commit(f"coherence/{file}")
            self.assert_chosen(COHERENCE, r"test_model\.few", SEEDS, SURVIVORS)
        self.commit("coherence/region/damage.cpp")
        self.assert_chosen(COHERENCE)

    def test_what_recovers_is_simulated_with_survivors(self):
        self.commit("recovery/checkpoint.cpp")
        self.assert_chosen(r"test_(recovery|engine)\.", SURVIVORS, r"test_sim\.Sim/PoolSurvivorSeeds\..*/[01]")

    def test_what_tests_and_builds_are_made_of(self):
        build = [r"example\.", r"test_bufmgr\.", r"test_memnode\.", r"cluster\.sql$"]
        for file, *tests in (("tests/power/disk.cpp", r"cluster\.power_loss$"), ("tests/docker/compose.sh", r"scripts\."),
                             ("tests/support/hooked_transport.hpp", ENGINE),
                             ("tests/support/stores.hpp", COHERENCE, r"test_recovery\.", r"test_memnode\.", SEEDS),
                             ("cmake/gcl_test.cmake", *build), ("CMakeLists.txt", *build)):
            self.commit(file)
            self.assert_chosen(*tests)

    def test_whatever_changes_the_expression_is_one_of_ctests(self):
        """It has nine pairs of parentheses at most, one of them around all (./check)."""
        with open(os.path.join(SCRIPTS, "changed_tests.sh"), encoding="utf-8") as script:
            patterns = re.search(r"case \$1 in(.*?)esac", script.read(), re.S)[1]
        files = [file.strip().replace("*", "new") for case in re.findall(r"^    (\S.*?)\)(?: |$)", patterns, re.M) for file in case.split("|")]
        self.commit(*files)
        done = subprocess.run([os.path.join(self.dir, "scripts", "changed_tests.sh")], env=self.environment, text=True, capture_output=True, check=True)
        self.assertGreater(len(files), 40)
        self.assertLessEqual(done.stdout.count("("), 8)

    def test_the_first_commit_has_none_before_it(self):
        self.git("checkout", "-q", "--detach", "HEAD~1")
        self.assert_chosen()


if __name__ == "__main__":
    unittest.main(verbosity=2)
