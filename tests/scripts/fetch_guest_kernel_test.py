"""scripts/fetch_guest_kernel.sh: what it takes out of which packages, and what it says when it gets none."""
import lzma
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/fetch_guest_kernel.sh"
MODULES = "lib/modules/6.1.0-9-amd64/kernel"
PACKAGES = {
    "linux-image-6.1.0-9-amd64": ["boot/vmlinuz-6.1.0-9-amd64", f"{MODULES}/drivers/infiniband/sw/rxe/rdma_rxe.ko", f"{MODULES}/drivers/net/veth.ko",
                                  f"{MODULES}/drivers/gpu/drm/drm.ko", f"{MODULES}/fs/9p/9p.ko"],
    "busybox-static": ["bin/busybox"],
}
FOLDERS = ("crypto lib fs/configfs fs/fscache fs/netfs fs/overlayfs net/9p net/ipv4 net/ipv6 drivers/virtio drivers/char drivers/infiniband/core "
           "arch/x86/crypto").split()


def bootable(packed):
    """What a boot loader would load: two sectors of set-up, something else, the packed kernel."""
    offset = 40
    image = bytearray(1024)
    image[0x1F1] = 1
    struct.pack_into("<II", image, 0x248, offset, len(packed))
    return bytes(image) + bytes(offset) + packed + b"its end"


class Fetch(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="gcl-scripts-"))
        self.addCleanup(shutil.rmtree, self.dir)
        (self.dir / "bin").mkdir()
        self.program("apt-get", f'echo "$@" >>{self.dir}/asked; echo no network; exit 100')
        self.program("apt-cache", "printf 'linux-image-amd64\\n  Depends: linux-image-6.1.0-9-amd64\\n'")

    def program(self, name, text):
        path = self.dir / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", "ascii")
        path.chmod(0o755)

    def packages_are_there(self, pack=lzma.compress):
        for name, files in PACKAGES.items():
            root = self.dir / "packages" / name
            (root / "DEBIAN").mkdir(parents=True)
            (root / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@a>\nDescription: it\n", "ascii")
            for file in files:
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_bytes(bootable(pack(b"the kernel")) if "vmlinuz" in file else file.encode())
            for folder in FOLDERS if len(files) > 1 else ():
                (root / MODULES / folder).mkdir(parents=True)
                (root / MODULES / folder / f"{folder.replace('/', '-')}.ko").touch()
            subprocess.run(["dpkg-deb", "--build", root, f"{root}_1_all.deb"], check=True, capture_output=True)
        self.program("apt-get", f'echo "$@" >>{self.dir}/asked\ncase $* in *" download "*) cp {self.dir}/packages/*.deb . ;; esac')

    def fetch(self):
        done = subprocess.run([SCRIPT, self.dir / "kernels"], env={"PATH": f"{self.dir}/bin:/usr/bin:/bin"}, cwd="/",
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=50, check=False)
        asked = self.dir / "asked"
        return done.returncode, done.stderr, asked.read_text("ascii") if asked.exists() else ""

    def test_the_kernel_that_debian_names_is_taken_once_with_what_a_guest_may_want(self):
        self.packages_are_there()
        code, said, asked = self.fetch()
        self.assertEqual((0, ""), (code, said))
        self.assertIn(" download linux-image-6.1.0-9-amd64 busybox-static\n", asked)
        kernels = self.dir / "kernels"
        self.assertEqual("6.1.0-9-amd64", os.readlink(kernels / "kernel"))
        self.assertEqual(["6.1.0-9-amd64", "kernel"], sorted(path.name for path in kernels.iterdir()))
        self.assertEqual("the kernel", (kernels / "kernel/vmlinux").read_text("ascii"))
        self.assertEqual("bin/busybox", (kernels / "kernel/busybox").read_text("ascii"))
        modules = {path.name for path in (kernels / "kernel/modules").iterdir()}
        self.assertLessEqual({"rdma_rxe.ko", "veth.ko", "9p.ko"}, modules)
        self.assertNotIn("drm.ko", modules)
        os.unlink(self.dir / "asked")
        self.assertEqual((0, "", ""), self.fetch())

    def test_without_a_network_it_says_so_and_leaves_nothing(self):
        code, said, _ = self.fetch()
        self.assertEqual(1, code)
        for text in ("no network", "linux-image-6.1.0-9-amd64 and busybox-static could not be downloaded", "Is there a network"):
            self.assertIn(text, said)
        self.assertEqual([], list((self.dir / "kernels").iterdir()))

    def test_a_kernel_that_is_packed_in_another_way_is_told(self):
        self.packages_are_there(bytes)
        code, said, _ = self.fetch()
        self.assertEqual(1, code)
        self.assertIn("the kernel of linux-image-6.1.0-9-amd64 could not be unpacked", said)
        self.assertEqual([], list((self.dir / "kernels").iterdir()))

    def test_an_archive_without_such_a_kernel_is_said(self):
        self.program("apt-cache", "exit 100")
        code, said, _ = self.fetch()
        self.assertEqual(1, code)
        self.assertIn("linux-image-amd64 is not known", said)
        self.assertEqual([], list((self.dir / "kernels").iterdir()))

    def test_another_machine_is_told(self):
        self.program("dpkg", "echo arm64")
        self.assertEqual((1, "The guest's kernel is missing: it is known for amd64 machines only, and this is arm64\n", ""), self.fetch())


if __name__ == "__main__":
    unittest.main()
