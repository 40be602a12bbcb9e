"""Two servers that differ in one thing, gcl, and PostgreSQL's own pg_regress on either.

    with Cluster(primaries=1) as cluster, PlainServer(like=cluster) as plain:
        expected = regress(plain, folder, outputs)      # {test: output}

PlainServer runs the system's PostgreSQL with the settings of the cluster's primary 1, without those that name gcl.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402

PG_BIN = pathlib.Path(os.environ.get("GCL_PG_BINDIR", "/usr/lib/postgresql/15/bin"))
PG_REGRESS = PG_BIN.parent / "lib/pgxs/src/test/regress/pg_regress"


class PlainServer:
    """A PostgreSQL without gcl."""

    def __init__(self, like):
        self.dir = pathlib.Path(harness.new_dir())
        self.reserved = harness.ports.Reservation(1)
        self.port = self.reserved.base
        self.socket_dir = str(self.dir)
        self.settings = [line for line in (pathlib.Path(like.dir) / "node1/data/gcl.conf").read_text("utf-8").splitlines()
                         if not re.match(r"shared_preload_libraries|gcl\.|port|unix_socket_directories|#", line)]

    def run(self, program, *arguments):
        done = subprocess.run([PG_BIN / program, *map(str, arguments)], text=True, capture_output=True, cwd="/",
                              **data_directory.account())
        if done.returncode != 0:
            raise RuntimeError(f"{program} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    def __enter__(self):
        data = self.dir / "data"
        try:
            if os.geteuid() == 0:
                shutil.chown(self.dir, "postgres", "postgres")
            data_directory.initdb(PG_BIN, data)
            with open(data / "postgresql.conf", "a", encoding="utf-8") as conf:
                conf.write("\n".join([*self.settings, f"port = {self.port}", f"unix_socket_directories = '{self.socket_dir}'", ""]))
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.run("pg_ctl", "-D", self.dir / "data", "-w", "-s", "-l", self.dir / "log", "start")

    def stop(self):
        if (self.dir / "data/postmaster.pid").exists():
            self.run("pg_ctl", "-D", self.dir / "data", "-w", "-s", "-m", "fast", "stop")

    def __exit__(self, *_):
        self.stop()
        self.reserved.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Primary:
    """Primary 1 of a cluster, as regress() wants it."""

    def __init__(self, cluster):
        pairs = dict(re.findall(r"(\w+)=(\S+)", cluster.dsn(1)))
        self.port, self.socket_dir = pairs["port"], pairs["host"]


def regress(server, suite, expected, options="", database="postgres"):
    """Runs suite/sql/*.sql; returns ({test: output}, the differences from `expected`, a folder or a dict like the result)."""
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(harness.new_dir())
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        (work / "in/expected").mkdir(parents=True)
        (work / "in/sql").symlink_to(suite / "sql")
        tests = sorted(path.stem for path in (suite / "sql").glob("*.sql"))
        for test in tests:
            if isinstance(expected, dict):
                text = expected.get(test, "")
            else:
                file = expected / f"{test}.out"
                text = file.read_text("utf-8") if file.exists() else ""
            (work / "in/expected" / f"{test}.out").write_text(text, "utf-8")
        done = subprocess.run(
            [PG_REGRESS, f"--inputdir={work}/in", f"--outputdir={work}/out", f"--bindir={PG_BIN}", "--use-existing", "--user=postgres",
             f"--host={server.socket_dir}", f"--port={server.port}", f"--dbname={database}", *tests],
            text=True, capture_output=True, env={**os.environ, "PGOPTIONS": options}, timeout=240)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"pg_regress ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        outputs = {test: (work / "out/results" / f"{test}.out").read_text("utf-8") for test in tests}
        differences = work / "out/regression.diffs"
        return outputs, differences.read_text("utf-8") if done.returncode else ""
