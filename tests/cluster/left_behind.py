"""Directories of tests, and what a killed test leaves in them: files, and servers that still run.

Each directory has an heir, a process that waits for the end of its test, and then stops and removes what is still there.  The
heir is no child of the test: ctest, when a test takes too long, kills the test's children, too.
`data_directory.py make` removes what heirs did not get to.

    folder = new_dir(parent, gclctl)
    python3 left_behind.py FOLDER GCLCTL        the heir
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PREFIX = "gcl-test-"
OWNER = "owner"  # a pipe in the directory that its test holds open for writing as long as it runs
DESTROY_MAX = 60.0  # seconds; a gclctl of the test may be at work still


def new_dir(parent, gclctl):
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    owner = os.path.join(folder, OWNER)
    os.mkfifo(owner + ".new")
    os.open(owner + ".new", os.O_RDWR)  # until this process ends
    os.rename(owner + ".new", owner)
    subprocess.run(["setsid", "--fork", sys.executable, os.path.abspath(__file__), folder, os.path.abspath(gclctl)], cwd="/",
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return folder


def keep(folder):
    """No test owns the folder any more, and its heir leaves it alone."""
    os.unlink(os.path.join(folder, OWNER))


def is_orphan(folder):
    """Of this user."""
    try:
        if folder.stat().st_uid != os.geteuid():
            return False
        owner = os.open(folder / OWNER, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.read(owner, 1) == b""
        finally:
            os.close(owner)
    except OSError:  # there is a writer (EAGAIN); or no such pipe
        return False


def works_in(pid, folder):
    try:
        return pathlib.Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(folder)
    except OSError:
        return False


def inherit(folder, gclctl):
    deadline = time.monotonic() + DESTROY_MAX
    while (clusters := list(folder.rglob("cluster.conf"))) and time.monotonic() < deadline:
        for cluster in clusters:
            if subprocess.run([gclctl, "destroy", cluster.parent], stdin=subprocess.DEVNULL, cwd="/", check=False).returncode != 0:
                time.sleep(1)
    for server in folder.rglob("postmaster.pid"):
        pid = int(server.read_text("ascii").split()[0])
        if works_in(pid, folder):
            os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(folder, ignore_errors=True)


def remove_orphans(parent, gclctl):
    for folder in pathlib.Path(parent).glob(PREFIX + "*"):
        if is_orphan(folder):
            with contextlib.suppress(OSError):  # its heir may be at it, too
                inherit(folder, gclctl)


def wait_for_its_end(folder):
    """True when there is something to inherit then."""
    try:
        owner = os.open(folder / OWNER, os.O_RDONLY | os.O_NONBLOCK)  # does not wait for a test that has ended before
    except FileNotFoundError:
        return False
    os.set_blocking(owner, True)
    os.read(owner, 1)
    return os.path.exists(folder / OWNER)


if __name__ == "__main__":
    left = pathlib.Path(sys.argv[1])
    if wait_for_its_end(left):
        inherit(left, sys.argv[2])
