"""Two servers that differ in one thing, gcl, and PostgreSQL's own pg_regress on either.

    with Cluster(primaries=1) as cluster, PlainServer(like=cluster) as plain:
        expected = regress(plain, folder, outputs)      # {test: output}
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
import harness  # noqa: E402
from data_directory import PG_BIN  # noqa: E402

PG_REGRESS = PG_BIN.parent / "lib/pgxs/src/test/regress/pg_regress"


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
            text=True, capture_output=True, env={**os.environ, "PGOPTIONS": options}, timeout=480)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"pg_regress ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        outputs = {test: (work / "out/results" / f"{test}.out").read_text("utf-8") for test in tests}
        differences = work / "out/regression.diffs"
        return outputs, differences.read_text("utf-8") if done.returncode else ""
