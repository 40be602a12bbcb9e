"""Small file systems for tests of full disks: tmpfs of a size, in a mount namespace of the test's own.

    if __name__ == "__main__":
        small_disk.enter_namespace()      # begins the program anew there; the mounts end with its last process
        unittest.main()

    disk = SmallDisk(path, megabytes)     # an empty directory
    disk.fill()                           # no room is left: any process that writes gets ENOSPC
    disk.make_room()
"""
import contextlib
import ctypes
import os
import shutil
import subprocess
import sys

import data_directory

INSIDE = "GCL_IN_MOUNT_NAMESPACE"


SKIPPED = 77  # to ctest


def enter_namespace():
    """Root has the right to mount; others have it in a user namespace, where that is allowed."""
    if os.environ.get(INSIDE):
        return
    way = ["unshare", "--mount", "--propagation", "private", *(["--user", "--map-current-user", "--keep-caps"] if os.geteuid() != 0 else [])]
    if shutil.which("unshare") and subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", [*way, sys.executable, *sys.argv])
    print("skipped: file systems cannot be mounted here (it takes the right to, or user namespaces)", file=sys.stderr)
    sys.exit(SKIPPED)


# The program mount(8) asks for root also where the kernel does not.
LIBC = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND, MNT_DETACH = 32, 4096, 2


def done(result, path):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{os.strerror(ctypes.get_errno())}: {path}")


def mount(path, flags=0, data="", source="tmpfs", kind="tmpfs"):
    done(LIBC.mount(*(text.encode() for text in (source, path, kind)), ctypes.c_ulong(flags), data.encode()), path)


def bind(source, path):
    mount(path, MS_BIND, source=source)


def unmount(path):
    done(LIBC.umount2(path.encode(), MNT_DETACH), path)


class SmallDisk:
    def __init__(self, path, megabytes):
        self.path, self.ballast = path, f"{path}/ballast"
        before = os.stat(path)
        mount(path, data=f"size={megabytes}m,mode={before.st_mode & 0o777:o}")
        os.chown(path, before.st_uid, before.st_gid)

    def fill(self):
        """To the last byte that the servers' account could have."""
        with open(self.ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    assert error.errno == 28, error

    def make_room(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.ballast)

    def grow(self, megabytes):
        mount(self.path, MS_REMOUNT, f"size={megabytes}m")


def own(path):
    """It belongs to the account of the servers."""
    who = data_directory.account()
    if who:
        os.chown(path, who["user"], who["group"])
