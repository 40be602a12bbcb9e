"""A loss of power, for real: what servers and gclctl do to files is recorded, and a disk is made as it may be when the power goes
in the middle of that (tests/power/README.md).

    recording = Recording(cluster)            # REQUIRES: the cluster is stopped.  What there is on the disk is durable
    cluster.start()                           # servers and gclctl are recorded from here on
    at = recording.count()                    # how many changes there were up to now
    recording.kill_all(2)                     # instead of the cluster's own: nobody is in the middle of a change
    recording.end()                           # REQUIRES: nothing runs
    image(recording.dir, at, seed, to)        # the directory, as it may be if power was lost after that many changes

Environment: GCL_POWER, the folder with power_image and power_record.so.
"""
import mmap
import os
import pathlib
import re
import shutil
import struct
import subprocess

from harness import GCLCTL, eventually

PROGRAMS = pathlib.Path(os.environ.get("GCL_POWER", pathlib.Path(GCLCTL).resolve().parent.parent / "power"))
COUNT, END, PAUSED, INSIDE, BROKEN = 8, 16, 24, 28, 32  # tests/power/record.hpp
NOTHING = 0
LEFT_OUT = r"prefix|run|node\d+/log"  # of the cluster's directory: programs, sockets, servers' logs


def power_image(*words):
    done = subprocess.run([PROGRAMS / "power_image", *map(str, words)], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"power_image {words}: {done.stderr}")
    return done.stdout


class Recording:
    def __init__(self, cluster):
        self.cluster, self.root = cluster, cluster.dir
        self.dir = os.path.join(os.path.dirname(cluster.dir), "recording")
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o755)
        power_image("begin", self.root, self.dir)
        library = shutil.copy(PROGRAMS / "power_record.so", self.dir)  # where the servers' account finds it
        with open(f"{self.dir}/log", "r+b") as log:
            self.header = mmap.mmap(log.fileno(), mmap.PAGESIZE)
        cluster.environment = {"LD_PRELOAD": library, "GCL_POWER_LOG": f"{self.dir}/log"}

    def count(self):
        """The number of the next change."""
        return struct.unpack_from("=Q", self.header, COUNT)[0]

    def word(self, at):
        return struct.unpack_from("=I", self.header, at)[0]

    def kill_all(self, *primaries):
        struct.pack_into("=I", self.header, PAUSED, 1)
        eventually(lambda: self.word(INSIDE) == 0)
        for k in primaries:
            self.cluster.kill_all(k)
        struct.pack_into("=I", self.header, PAUSED, 0)

    def end(self):
        """Fails if something was not seen: with all that was recorded, the directory is as it is."""
        self.cluster.environment = {}
        assert self.word(BROKEN) == 0, f"the recording broke: {self.word(BROKEN)}"
        whole = f"{self.dir}/whole"
        power_image("whole", self.dir, whole)
        wrong = list(differences(self.root, whole))
        assert not wrong, f"not recorded: {wrong[:20]}"
        shutil.rmtree(whole)


def changes(recording, root):
    """(number, kind, path) of each, in order; a rename has both paths, and a directory the cluster's below it."""
    for line in power_image("list", recording).splitlines():
        number, kind, path = line.split(" ", 2)
        yield int(number), kind, path.replace(root + "/", "")


def image(recording, at, seed, to, deaf=None):
    """Returns what was chosen, in words.  Seed NOTHING: of what is not durable, nothing is there.  `deaf`: to syncs of files whose
    path matches, the disk lies."""
    chosen = power_image("make", recording, at, seed, to, *(["--deaf", deaf] if deaf else [])).strip()
    os.mkdir(f"{to}/run", 0o700)
    for lock in pathlib.Path(to).glob("node*/data/postmaster.pid"):
        if not re.match(rb"\d+\n", lock.read_bytes()):
            lock.unlink()  # of a start that was cut off: PostgreSQL asks its administrator to do so
    return chosen


def differences(one, other, below=""):
    """Paths below two directories where these differ."""
    names = [{name for name in os.listdir(f"{root}/{below}") if not re.fullmatch(LEFT_OUT, below + name)} for root in (one, other)]
    yield from (f"{below}{name} is in one only" for name in names[0] ^ names[1])
    for name in names[0] & names[1]:
        path = below + name
        if os.path.isdir(f"{one}/{path}"):
            yield from differences(one, other, path + "/")
        elif os.path.getsize(f"{one}/{path}") != os.path.getsize(f"{other}/{path}"):
            yield f"{path}: {os.path.getsize(f'{one}/{path}')} and {os.path.getsize(f'{other}/{path}')} bytes"
        elif subprocess.run(["cmp", "-s", f"{one}/{path}", f"{other}/{path}"], check=False).returncode != 0:
            yield path
