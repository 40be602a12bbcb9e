"""./demo, docker/demo and ./check: what they answer to wrong arguments, and to a user who may not install what is missing."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Commands(unittest.TestCase):
    def setUp(self):
        # A copy that other users can read: the checkout may lie in a home directory.
        self.dir = tempfile.mkdtemp(prefix="gcl-scripts-")
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        for name in ("demo", "check"):
            shutil.copy(os.path.join(ROOT, name), self.dir)
        for name in ("scripts", "docker"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.dir, name),
                            ignore=shutil.ignore_patterns("__pycache__", "secrets"))

    def program(self, name, text):
        """A program that the commands find before the system's."""
        os.makedirs(os.path.join(self.dir, "bin"), exist_ok=True)
        path = os.path.join(self.dir, "bin", name)
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def run_command(self, *arguments, **more):
        environment = {"PATH": f"{self.dir}/bin:/usr/bin:/bin", "HOME": self.dir}
        done = subprocess.run([os.path.join(self.dir, arguments[0]), *arguments[1:]], cwd="/", env=environment,
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=50, **more)
        return done.returncode, done.stdout, done.stderr

    def test_wrong_arguments_are_refused_before_anything_is_done(self):
        self.program("dpkg-query", "echo the packages were asked for; exit 1")
        for arguments in (("demo", "--what"), ("demo", "3"), ("demo", "--seconds"), ("demo", "--seconds", "0"),
                          ("demo", "--seconds", "5s"), ("demo", "--primaries", "0"), ("demo", "--primaries", "33"),
                          ("demo", "--primaries"), ("demo", "--primaries", "--keep"), ("check", "all"),
                          ("check", "slow", "slow"), ("check", "one"), ("check", "quick", "locks"),
                          ("docker/demo", "--what"), ("docker/demo", "--seconds", "0"), ("docker/demo", "3")):
            with self.subTest(arguments):
                code, out, err = self.run_command(*arguments)
                self.assertEqual((1, ""), (code, out))
                self.assertRegex(err, r"usage: (\./demo|\./check|docker/demo) \[")

    def test_a_user_who_may_not_install_is_told_the_line_and_gets_2(self):
        self.program("dpkg-query", "exit 1")
        self.program("sudo", "exit 1")
        self.program("apt-get", "echo apt-get was run")
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        for command in ("demo", "check"):
            with self.subTest(command):
                code, out, err = self.run_command(command, **user)
                self.assertEqual(2, code, out + err)
                self.assertNotIn("apt-get was run", out)
                line = next(line for line in err.splitlines() if "scripts/install_packages.sh" in line).split()
                self.assertTrue(os.access(line[0], os.X_OK), line[0])
                self.assertIn("postgresql-15", line)
                self.assertEqual(command == "check", "clang-tidy" in line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
