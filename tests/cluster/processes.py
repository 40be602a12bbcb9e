"""The processes of a primary, by kind, as signals find them.

    of_kinds(cluster, 2)             # {"gcl message worker": [pid], "client backend": [...], "postmaster": [pid], ...}
"""
import re
import subprocess

from harness import has_memory

CLIENT, POSTMASTER, STARTUP, VACUUM, ARCHIVER = "client backend", "postmaster", "startup", "autovacuum worker", "archiver"
# PostgreSQL's own, as ps shows them; the archiver where there is an archive.
AUXILIARY = ("checkpointer", "background writer", "walwriter", "autovacuum launcher", "logical replication launcher", ARCHIVER)


def kind_of(title):
    """Of "postgres: gcl1: gcl message worker " and the like; None: one that comes and goes."""
    name = title.split(": ", 2)[-1].strip()
    for kind in (STARTUP, VACUUM, ARCHIVER, "gcl ddl apply"):  # behind it stands what it is at
        if name.startswith(kind):
            return kind
    if name.startswith("gcl ") or name in AUXILIARY:
        return name
    return CLIENT if re.search(r" \[local\] ", name + " ") else None


def runs(cluster, k):
    """The process id of its postmaster; None where the server is down."""
    try:
        postmaster = cluster.postmaster(k)
    except (OSError, ValueError):
        return None
    return postmaster if has_memory(postmaster) else None


def of_kinds(cluster, k):
    """{kind: pids}; nothing where the server is down."""
    postmaster = runs(cluster, k)
    if postmaster is None:
        return {}
    found = {POSTMASTER: [postmaster]}
    children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(postmaster)], text=True, capture_output=True).stdout
    for line in children.splitlines():
        pid, title = line.split(None, 1)
        if kind := kind_of(title):
            found.setdefault(kind, []).append(int(pid))
    return found
