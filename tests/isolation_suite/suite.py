"""PostgreSQL's isolation suite, as scripts/fetch_isolation_suite.sh has laid it out, and the program that plays it.

    suite = Suite()
    outputs = play(suite, suite.specs, [conninfo of a database, ...])       # {spec: Played}
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))
from data_directory import PG_BIN  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("GCL_ISOLATION_SUITE", HERE.parents[1] / "build/isolation_suite"))
TESTER = PG_BIN.parent / "lib/pgxs/src/test/isolation/isolationtester"
# ALTER TABLE in a mode that lets readers, or writers, go on: on several primaries it does not.
STRONGER = {"alter-table-1", "alter-table-2", "alter-table-3"}
# What gcl refuses; what is no transaction's.
UNJUDGED = re.compile(r"using (gin|gist|hash)\b|\bnotify\b|setup\s*\{\s*begin;\s*\}", re.I)
STEP_MAX = 60  # seconds; then isolationtester cancels the step, and that is a difference
STEP_IN_VAIN_MAX = 10  # the same in specs of which that is known
SPEC_MAX = 300.0  # seconds; longer is a hang

# What pg_regress gives to its sessions.
SESSIONS = {"PGTZ": "PST8PDT", "PGDATESTYLE": "Postgres, MDY"}
DATABASE = "isolation_regression"
OPTIONS = "-c intervalstyle=postgres_verbose"


def version():
    """Of the suite that is played: what was fetched for the installed server, but where it is said otherwise."""
    if named := os.environ.get("GCL_ISOLATION_SUITE_VERSION"):
        return named
    installed = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", "postgresql-15"], text=True, capture_output=True,
                               check=True).stdout
    link = FOLDER / f"of-{installed}"
    return os.readlink(link) if link.is_symlink() else installed


class Suite:
    def __init__(self):
        self.version = version()
        folder = FOLDER / self.version
        if not folder.exists():
            raise FileNotFoundError(f"{folder} is missing: scripts/fetch_isolation_suite.sh {FOLDER}")
        lines = (folder / "isolation_schedule").read_text("utf-8").splitlines()
        self.specs = [name for line in lines if line.startswith("test:") for name in line.split()[1:]]
        self.text = {spec: (folder / f"specs/{spec}.spec").read_text("utf-8") for spec in self.specs}


    def judged(self, spec):
        """Whether judged_test.py plays it: isolationtester has a session act when its turn has come, and waits for it where it
        cannot; where gcl's locks are stronger, or last longer, that may be for ever."""
        text = re.sub(r"#.*", "", self.text[spec])
        levels = set(re.findall(r"\b(serializable|repeatable\s+read|read\s+committed)\b", text.lower()))
        return spec in STRONGER or levels == {"serializable"} and not UNJUDGED.search(text)


@dataclasses.dataclass
class Played:
    output: str
    seconds: float


def play_one(suite, spec, conninfo, options="", step_max=STEP_MAX):
    """What is printed on the way counts, however it ends."""
    began = time.monotonic()
    environment = {**os.environ, **SESSIONS, "PGISOLATIONTIMEOUT": str(step_max), "PGOPTIONS": f"{OPTIONS} {options}", "PGAPPNAME": f"isolation/{spec}"}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        tester = subprocess.Popen([TESTER, conninfo], stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, env=environment)
        tester.stdin.write(suite.text[spec])
        tester.stdin.close()
        try:
            code = tester.wait(SPEC_MAX)
            ended = "" if code == 0 else f"isolationtester ended with {code}\n"
        except subprocess.TimeoutExpired:
            tester.kill()
            tester.wait()
            ended = f"isolationtester has not ended within {SPEC_MAX:.0f} s\n"
        output.seek(0)
        return Played(output.read() + ended, time.monotonic() - began)


def play(suite, specs, conninfos, options="", before=lambda conninfo: None, in_vain=()):
    """Each of the databases plays one spec at a time; the first has those alone that name it, and those with roles, which databases
    share.  `before` is called with a spec's database.  `in_vain`: the specs in which isolationtester waits until it gives
    up."""
    named = {spec for spec in specs if DATABASE in suite.text[spec] or "CREATE ROLE" in suite.text[spec]}
    waiting = [[spec for spec in specs if spec not in named], [spec for spec in specs if spec in named]]
    played, errors, lock = {}, [], threading.Lock()

    def next_of(conninfo):
        with lock:
            mine = waiting[1] if conninfo == conninfos[0] and waiting[1] else waiting[0]
            return mine.pop(0) if mine and not errors else None

    def work(conninfo):
        while spec := next_of(conninfo):
            try:
                before(conninfo)
                played[spec] = play_one(suite, spec, conninfo, options, STEP_IN_VAIN_MAX if spec in in_vain else STEP_MAX)
            except BaseException as error:  # pylint: disable=broad-except
                errors.append(error)

    workers = [threading.Thread(target=work, args=(conninfo,)) for conninfo in conninfos]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return played
