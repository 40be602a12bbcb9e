"""What `gclctl check` says of RDMA devices, in the guest that has two."""
import os
import pathlib
import subprocess
import tempfile
import unittest

GUEST = pathlib.Path(__file__).resolve().parent / "guest.py"
GCLCTL = os.path.abspath(os.environ.get("GCLCTL", "build/bin/gclctl"))
SECONDS_MAX = 240
PLAN = """key = "/nowhere/key"
saved = "/tmp/pool.saved"

[[memory_node]]
number = 0
host = "h0"
address = "10.77.0.1:7400"
size = "64MB"

[[primary]]
number = 1
host = "h1"
address = "[fd00:77::2]:7401"
port = 5432

[[primary]]
number = 2
host = "h1"
address = "127.0.0.1:7402"
port = 5433
"""


class Check(unittest.TestCase):
    def test_a_device_is_found_by_the_address_that_is_its_gid(self):
        with tempfile.TemporaryDirectory(prefix="gcl-rdma-") as folder:
            (pathlib.Path(folder) / "cluster.toml").write_text(PLAN, "utf-8")
            check = f"{GCLCTL} check cluster.toml --host"
            done = subprocess.run([GUEST, "--seconds", str(SECONDS_MAX), "--", "sh", "-c",
                                   f"{check} h0; echo; {check} h1; echo; ip link set rdma1 down; {check} h1; exit 0"],
                                  cwd=folder, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=SECONDS_MAX + 30, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        first, second, cut = done.stdout.split("\n\n")
        self.assertIn("ok       RDMA device rxe0, port 1, has the address of memory node 0 as GID 1, is active, and may be used\n", first)
        self.assertIn("ok       RDMA device rxe1, port 1, has the address of primary 1 as GID 2, is active, and may be used\n", second)
        self.assertIn("note     no RDMA device of this machine has the address of primary 2; transport tcp needs none\n", second)
        self.assertIn("ok       processes may lock any memory\n", second)
        self.assertIn("PROBLEM  the key: cannot open /nowhere/key: No such file", second)
        self.assertNotIn("ok       RDMA device rxe1, port 1, has the address of primary 1", cut)


if __name__ == "__main__":
    unittest.main(verbosity=2)
