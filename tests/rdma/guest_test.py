"""The guest: what a command finds there, and what its end looks like here."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

GUEST = pathlib.Path(__file__).resolve().parent / "guest.py"
SECONDS_MAX = 240  # a guest starts in 5 to 20 s, and in a minute where much else is going on


class Guest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="gcl-rdma-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def guest(self, *arguments, **environment):
        return subprocess.run([GUEST, "--seconds", str(SECONDS_MAX), *arguments], cwd=self.dir, env={**os.environ, **environment},
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=SECONDS_MAX + 30, check=False)

    def script(self, text):
        path = self.dir / "script"
        path.write_text(text, "utf-8")
        return ["sh", "-eu", path]

    def test_its_devices_are_up_and_what_one_sends_to_the_other_takes_the_cable(self):
        done = self.guest(*self.script("""
            ibv_devinfo
            grep . /sys/class/infiniband/rxe?/ports/1/gids/[0-2]
            across() { cat /sys/class/net/rdma0/statistics/rx_bytes; }
            listens() { ss -Hltn sport = 18515 | grep -q .; }
            for gid in 1 2; do
              before=$(across)
              ibv_rc_pingpong -d rxe0 -g $gid -n 50 >server.$gid &
              until listens; do sleep 0.1; done
              ibv_rc_pingpong -d rxe1 -g $gid -n 50 127.0.0.1
              wait $!
              echo across: $(($(across) - before >= 50 * 4096))
            done
            """))
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        self.assertEqual(2, done.stdout.count("PORT_ACTIVE"), done.stdout)
        for end in (0, 1):
            self.assertIn(f"rxe{end}/ports/1/gids/1:0000:0000:0000:0000:0000:ffff:0a4d:000{end + 1}\n", done.stdout)
            self.assertIn(f"rxe{end}/ports/1/gids/2:fd00:0077:0000:0000:0000:0000:0000:000{end + 1}\n", done.stdout)
        self.assertEqual(2, done.stdout.count("50 iters"), done.stdout)
        self.assertEqual(2, done.stdout.count("across: 1\n"), done.stdout)

    def test_a_command_is_where_it_would_be_here_and_its_exit_code_is_its_own(self):
        (self.dir / "kept").mkdir()
        (self.dir / "here").write_text("of the host\n", "utf-8")
        done = self.guest("--write", "kept", "--", *self.script("""
            pwd; cat here; echo "$WORD"; ulimit -l; df /dev/shm | tail -n 1; id -u
            echo guest >here; echo guest >kept/file; echo 'to standard error' >&2
            exit 7
            """), WORD="it's said")
        self.assertEqual((7, "to standard error\n"), (done.returncode, done.stderr), done.stdout)
        where, here, word, locked, shm, account = done.stdout.splitlines()
        self.assertEqual((str(self.dir), "of the host", "it's said", "unlimited", "0"), (where, here, word, locked, account))
        self.assertTrue(shm.startswith("shm "), shm)
        self.assertEqual(("of the host\n", "guest\n"), ((self.dir / "here").read_text("utf-8"), (self.dir / "kept/file").read_text("utf-8")))

    def test_a_command_that_ends_by_a_signal_says_so_and_one_that_is_not_there(self):
        for code, command in ((128 + signal.SIGKILL, "kill -KILL $$"), (127, "exec /no/such/program")):
            self.assertEqual(code, self.guest("sh", "-c", command).returncode)

    def test_one_that_hangs_is_ended_and_said_to_hang(self):
        began = time.monotonic()
        self.assertEqual(0, self.guest("true").returncode)
        bound = 10 + round(3 * (time.monotonic() - began))  # of a guest that starts as slowly as this one
        began = time.monotonic()
        done = self.guest("--seconds", str(bound), "sh", "-c", "echo begun; exec sleep 1000")
        self.assertEqual((124, "begun\n"), (done.returncode, done.stdout), done.stderr)
        self.assertIn(f"guest.py: sh had not ended after {bound} s", done.stderr)
        passed = time.monotonic() - began
        self.assertTrue(bound <= passed < bound + 30, passed)

    def test_a_panic_is_no_exit_code(self):
        done = self.guest("sh", "-c", "echo c >/proc/sysrq-trigger")
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertIn("Kernel panic", done.stderr)
        self.assertIn("guest.py: the guest ended without an exit code of sh", done.stderr)

    def test_a_killed_one_leaves_nothing(self):
        with subprocess.Popen([GUEST, "--verbose", "sleep", "1000"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as guest:
            guest.stderr.readline()  # it runs
            children = pathlib.Path(f"/proc/{guest.pid}/task/{guest.pid}/children").read_text("ascii").split()
            self.assertEqual(1, len(children))
            machine = os.pidfd_open(int(children[0]))
            self.addCleanup(os.close, machine)
            guest.kill()
            done = subprocess.run(["tail", "--pid", children[0], "-f", "/dev/null"], timeout=30, check=False)
            self.assertEqual(0, done.returncode)
            with self.assertRaises(ProcessLookupError):
                signal.pidfd_send_signal(machine, 0)

    def test_what_is_missing_is_said(self):
        done = self.guest("true", GCL_GUEST_KERNEL=str(self.dir))
        self.assertEqual((125, f"guest.py: there is no kernel in {self.dir}; scripts/fetch_guest_kernel.sh {self.dir} gets it\n"),
                         (done.returncode, done.stderr))
        (self.dir / "python3").symlink_to(shutil.which("python3"))
        (self.dir / "kernel").mkdir()
        (self.dir / "kernel/vmlinux").touch()
        done = self.guest("true", GCL_GUEST_KERNEL=str(self.dir), PATH=str(self.dir))
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertIn("qemu-system-x86_64 is missing: apt-get install", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
