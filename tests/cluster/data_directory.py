"""A data directory as initdb leaves it, made once for a run of the cluster tests and copied by `gclctl init --data-from`.

    python3 data_directory.py make|remove        fixtures of ctest; a test that is run by itself does without

`make` also removes what killed tests have left behind.
"""
import struct
import hashlib
import os
import pathlib
import pwd
import shutil
import subprocess
import sys

import left_behind

GCLCTL = os.environ.get("GCLCTL", "build/bin/gclctl")
PG_BIN = pathlib.Path(os.environ.get("GCL_PG_BINDIR", "/usr/lib/postgresql/15/bin"))


ON_DISK = None  # where, for what measures a disk
MEMORY = "/dev/shm"
MEMORY_MIN = 8 << 30  # bytes; clusters of three tests at a time, and some air


def parent():
    """The folder for what tests make; the servers' account can enter it.  In memory if there is enough: clusters are made,
    stopped and destroyed a hundred times, and no test is about what a disk does in that time."""
    there = os.statvfs(MEMORY)
    if ON_DISK:
        return ON_DISK
    if there.f_blocks * there.f_frsize >= MEMORY_MIN:
        return MEMORY
    return "/var/tmp"  # on the disk, and only root can change what leads there


def path():
    """The same in all tests of one build and user."""
    of_build = hashlib.sha256(os.path.realpath(GCLCTL).encode()).hexdigest()[:8]
    return pathlib.Path(parent()) / f"gcl-data-{os.geteuid()}-{of_build}"


def account():
    """Keyword arguments for subprocess: servers do not run as root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("postgres")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def initdb(bindir, to):
    done = subprocess.run([pathlib.Path(bindir) / "initdb", "-D", to, "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
                           "-A", "trust", "-N"], text=True, capture_output=True, cwd="/", **account())
    if done.returncode != 0:
        raise RuntimeError(f"initdb ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def make():
    left_behind.remove_orphans(parent(), GCLCTL)
    whole, half = path(), path().with_suffix(".half")
    for old in (whole, half):
        shutil.rmtree(old, ignore_errors=True)
    initdb(PG_BIN, half)
    half.rename(whole)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make()
    else:
        shutil.rmtree(path())


def ddl_position(data, database):
    """How far a stopped server, or one behind a CHECKPOINT, has applied the log in the database of that OID: what holds
    if the transaction `xid` committed, and if it did not; 0: that is known."""
    with open(f"{data}/global/9700", "rb") as file:
        page = file.read(8192)
    for at in range(24, 8192 - 47, 48):
        oid, used, xid, before, _, after, _ = struct.unpack("=I?3xI4x4Q", page[at:at + 48])
        if used and oid == database:
            return before, after, xid
    return 0, 0, 0
