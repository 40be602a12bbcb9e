"""Small file systems for tests of full disks: tmpfs of a size, in a mount namespace of the test's own.

    if __name__ == "__main__":
        small_disk.enter_namespace()      # begins the program anew there; the mounts end with its last process
        unittest.main()

    disk = SmallDisk(path, megabytes)     # an empty directory
    disk.fill()                           # no room is left: whoever writes gets ENOSPC
    disk.make_room()
"""
import contextlib
import os
import shutil
import subprocess
import sys

import data_directory

INSIDE = "GCL_IN_MOUNT_NAMESPACE"


def ways():
    """Of util-linux: root of the machine has the right to mount, others in a user namespace, where that is allowed."""
    mounts = ["--mount", "--propagation", "private"]
    return [mounts] if os.geteuid() == 0 else [["--user", "--map-current-user", *mounts]]


def enter_namespace():
    if os.environ.get(INSIDE):
        return
    for way in ways():
        if shutil.which("unshare") and subprocess.run(["unshare", *way, "true"], capture_output=True, check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp("unshare", ["unshare", *way, sys.executable, *sys.argv])
    print("skipped: file systems cannot be mounted here (it takes root, or user namespaces)", file=sys.stderr)
    sys.exit(0)


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def unmount(path):
    subprocess.run(["umount", "--lazy", path], check=True)


class SmallDisk:
    def __init__(self, path, megabytes):
        self.path, self.ballast = path, f"{path}/ballast"
        before = os.stat(path)
        mount("-t", "tmpfs", "-o", f"size={megabytes}m,mode={before.st_mode & 0o777:o}", "tmpfs", path)
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
        mount("-o", f"remount,size={megabytes}m", self.path)


def own(path):
    """It belongs to the account of the servers."""
    who = data_directory.account()
    if who:
        os.chown(path, who["user"], who["group"])
