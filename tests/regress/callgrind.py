"""Primary 1 of a cluster under valgrind's callgrind: instructions of its processes, in user space.

    with callgrind(cluster) as counted:
        ...                                    # sessions, by psql or by pgbench
        counted.instructions(pid)              # of a whole session, after its end
        counted.by_function(pid)               # {name: instructions in itself}
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

from servers import PG_BIN, Primary
from data_directory import account  # isort: skip
from harness import eventually, new_dir  # isort: skip

PHASE_MAX = 60.0  # seconds to start or to stop
END_MAX = 60.0  # seconds until a session that was told to end has written its counts


class Counted:
    """A folder of counts, a file PID per process that has ended."""

    def __init__(self, folder):
        self.folder = folder

    def ended(self):
        """The processes that have written their counts, whole."""
        return {int(file.name) for file in self.folder.iterdir() if file.name.isdigit() and self._total(file)}

    @staticmethod
    def _total(file):
        with open(file, encoding="utf-8", errors="replace") as text:
            text.seek(max(0, file.stat().st_size - 200))
            return re.search(r"^totals: (\d+)", text.read(), re.M)

    def instructions(self, pid):
        total = None

        def there():
            nonlocal total
            with contextlib.suppress(FileNotFoundError):
                total = self._total(self.folder / str(pid))
            return total

        eventually(there, END_MAX)
        return int(total.group(1))

    def by_function(self, pid):
        """{name: instructions in itself}; a function without a symbol is named after its library."""
        names, libraries, costs = {}, {}, {}
        current = library = ""
        of_call = False

        def named(table, text):
            number, _, name = text.partition(" ")
            return table.setdefault(number, name) if name else table[number]

        with open(self.folder / str(pid), encoding="utf-8", errors="replace") as text:
            for line in text:
                line = line.rstrip("\n")
                if line.startswith("ob="):
                    library = named(libraries, line[3:])
                elif line.startswith("fn="):
                    current = named(names, line[3:])
                    if re.match(r"0x[0-9a-f]+$|\?\?\?", current):
                        current = f"({os.path.basename(library)})"
                elif line.startswith("cfn="):
                    named(names, line[4:])
                elif line.startswith("cob="):
                    named(libraries, line[4:])
                elif line.startswith("calls="):
                    of_call = True  # the next line is what the call took altogether
                elif line and (line[0].isdigit() or line[0] in "+-*"):
                    if not of_call:
                        costs[current] = costs.get(current, 0) + int(line.split()[1])
                    of_call = False
        return costs


@contextlib.contextmanager
def callgrind(cluster, *options):
    """Runs primary 1, which must be stopped, under callgrind."""
    server = Primary(cluster)
    folder = pathlib.Path(new_dir())
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    postgres = next(pathlib.Path(cluster.dir, "prefix").glob("**/bin/postgres"))
    with open(folder / "log", "w", encoding="utf-8") as log:
        postmaster = subprocess.Popen(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/%p", postgres,
                                       "-D", f"{cluster.dir}/node1/data", *options],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **account())
    try:
        ready = [PG_BIN / "pg_isready", "-q", "-h", server.socket_dir, "-p", str(server.port)]
        eventually(lambda: postmaster.poll() is not None or subprocess.run(ready, check=False).returncode == 0, PHASE_MAX)
        if postmaster.poll() is not None:
            raise RuntimeError((folder / "log").read_text("utf-8"))
        yield Counted(folder)
    finally:
        try:
            for how in (signal.SIGTERM, signal.SIGINT):  # smart, because no session should be connected; then fast
                if postmaster.poll() is None:
                    postmaster.send_signal(how)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        postmaster.wait(PHASE_MAX)
            postmaster.wait(0)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
