"""What the first failure of a run tells beside its traceback, so that the last hundred lines of its output are enough to find the
cause: the ends of all logs, who waits for what, and what the test did last.  It is printed last, since a log may have lost what is
before it, and of the first failure alone: what fails behind it does so because of it more often than not.

Only harness.py calls this: for each cluster and session that is there, and for each step.  A step is a command, or a statement of
the test's own thread; what a load in other threads does is not told, but for the statements that have no answer.
"""
import collections
import contextlib
import glob
import re
import subprocess
import threading
import time
import traceback
import unittest

# Lines at most: of the whole; and of each primary or memory node.
STEPS, UNANSWERED, FRAMES, SAYS = 12, 6, 4, 6
LOG_LINES, BAD_LINES, WAITS = 7, 3, 5
WIDTH = 240  # characters of a line
ASK_MAX = 5  # seconds: a server that is asked may stand still
BAD = re.compile(r"PANIC|FATAL|terminated by|VERIFY|cpp:\d+|cache lookup failed")
DULL = re.compile(r"LOG:  (checkpoint (starting|complete)|restartpoint|automatic (vacuum|analyze)|registered custom|listening on|"
                  r"starting PostgreSQL)|FATAL:  the database system is (starting up|shutting down)|^\t")
WHO_WAITS = """SELECT concat_ws(' ', pid, CASE backend_type WHEN 'client backend' THEN application_name ELSE backend_type END, state,
    wait_event_type, wait_event, (now() - state_change)::interval(1), left(regexp_replace(query, '\\s+', ' ', 'g'), 90))
    FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (backend_type = 'client backend' OR wait_event_type = 'Lock')
    ORDER BY state = 'active' DESC, state_change LIMIT """ + str(WAITS)

clusters, sessions = {}, {}  # those that are there, by id()
steps = collections.deque(maxlen=STEPS)


def told(error):
    """An error that was kept, in one line."""
    return f"{clock(time.time())} {type(error).__name__} {' '.join((str(error), *getattr(error, '__notes__', ())))}"


def short(text, width=WIDTH):
    text = " ".join(str(text).split())
    return text if len(text) <= width else text[:width - 3] + "..."


def where(dsn):
    """Which server that is."""
    for cluster in list(clusters.values()):
        for k in range(1, len(cluster.ports.sockets) + 1):
            if cluster.first_dsn and dsn.startswith(cluster.dsn(k)):
                return f"primary {k}"
    return short(dsn, 60)


def step(what, began, outcome):
    """It has ended.  The same again, and nothing else meanwhile, is one step."""
    again = 1
    if steps and steps[-1][0] == what:
        began, again = steps[-1][1], steps.pop()[3] + 1
    steps.append((what, began, time.time(), again, outcome))


def answered(session, outcome):
    if threading.current_thread() is threading.main_thread():
        step(f"{where(session.dsn)}: {short(session.sql, 130)}", session.sent, short(outcome, 100))


def lines_of_steps():
    for what, began, ended, again, outcome in list(steps):
        times = f" ({again} times)" if again > 1 else ""
        yield f"{clock(began)} {ended - began:.2f} s{times}: {what}  =>  {outcome}"


def clock(seconds):
    return time.strftime("%H:%M:%S", time.gmtime(seconds)) + f"{seconds % 1:.3f}"[1:]


def unanswered():
    pending = sorted((session for session in list(sessions.values()) if session.has_no_answer()), key=lambda session: session.sent)
    for session in pending[:UNANSWERED]:
        yield f"{where(session.dsn)}, {session.name}, for {time.time() - session.sent:.1f} s: {short(session.sql, 130)}"
    if len(pending) > UNANSWERED:
        yield f"... and {len(pending) - UNANSWERED} more"


def log_of(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as log:
        return log.read().splitlines()
    return []


def bad_lines(cluster, k, count):
    return [line for line in log_of(f"{cluster.dir}/node{k}/log") if BAD.search(line)][-count:]


def end_of_log(path):
    """And the last that are bad, if they are older."""
    lines = [line for line in log_of(path) if not DULL.search(line)]
    older = [line for line in lines[:-LOG_LINES] if BAD.search(line)][-BAD_LINES:]
    return [*older, *lines[-LOG_LINES:]]


def waits(psql, dsn):
    asked = [psql, "-X", "-A", "-t", "-d", f"{dsn} connect_timeout={ASK_MAX}", "-c", WHO_WAITS]
    try:
        done = subprocess.run(asked, text=True, capture_output=True, timeout=ASK_MAX, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return [f"no answer within {ASK_MAX} s"]
    return done.stdout.splitlines() or [short(done.stderr or "nobody")]


def lines_of(cluster, psql):
    for path in sorted(glob.glob(f"{cluster.dir}/memory*/log")):
        yield from under(f"the end of {path.removeprefix(cluster.dir + '/')}", end_of_log(path))
    for k in range(1, cluster.primaries + 1):
        yield from under(f"the end of the log of primary {k}", end_of_log(f"{cluster.dir}/node{k}/log"))
    for k in range(1, cluster.primaries + 1):
        if cluster.first_dsn:
            yield from under(f"sessions of primary {k}, and what they wait for", waits(psql, cluster.dsn(k)))


def under(title, lines):
    for number, line in enumerate(lines):
        if number == 0:
            yield f"--- {title}"
        yield short(line)


def failure(test, kind, error, trace):
    """Where the test was, and what it says: the beginning and the end, where that is long."""
    yield f"--- the first failure: {test}"
    frames = [frame for frame in traceback.extract_tb(trace) if "/tests/" in frame.filename]
    yield from (f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}: {frame.line}" for frame in frames[:FRAMES])
    says = [short(line) for text in traceback.format_exception_only(kind, error) for line in text.splitlines()]
    yield from says if len(says) <= 2 * SAYS else [*says[:SAYS], "...", *says[-SAYS:]]


class Telling(unittest.TextTestResult):
    """Takes what there is when the first test fails: at that moment its cluster is there still."""

    psql = ""
    taken, first = [], []  # lines: of the clusters, and of the failure

    @classmethod
    def take(cls):
        """Nothing that goes wrong here hides the failure itself."""
        cls.taken = [f"failed at {clock(time.time())} UTC"]
        try:
            for cluster in list(clusters.values()):
                cls.taken += lines_of(cluster, cls.psql)
            cls.taken += under("statements without an answer", unanswered())
            cls.taken += under("the last steps", lines_of_steps())
        except Exception as error:  # pylint: disable=broad-except
            cls.taken.append(f"what else there is cannot be told: {error!r}")

    def of_first(self, test, err):
        if self.first:
            return
        if clusters or not self.taken:  # or one was taken away meanwhile, and before that it was told of
            self.take()
        self.first.extend(failure(test, *err))

    def addError(self, test, err):
        self.of_first(test, err)
        super().addError(test, err)

    def addFailure(self, test, err):
        self.of_first(test, err)
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.of_first(subtest, err)
        super().addSubTest(test, subtest, err)

    def printErrors(self):
        super().printErrors()
        if self.first:
            self.stream.writeln("\n".join((self.separator1, *self.taken, *self.first)))
            self.stream.flush()
