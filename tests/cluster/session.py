"""A session of a test, through psql: statements that are sent and answers that are waited for."""
import itertools
import os
import queue
import re
import shutil
import subprocess
import threading
import time

import data_directory
import telling

SLOWNESS = float(os.environ.get("GCL_SLOWNESS", 1))  # so many times as slow as a machine: one that is emulated
ANSWER_MAX = 30.0 * SLOWNESS  # seconds; longer is a hang, and a hang is a failure
BLOCKED = 0.5  # seconds; a session without an answer for so long waits


class SqlError(Exception):
    """An ERROR or FATAL of the server; `state` is its SQLSTATE."""

    def __init__(self, state, text):
        super().__init__(f"{state}: {text}")
        self.state = state


class Hang(Exception):
    """No answer in time."""


# Debian's psql is a script that looks for the real one, at a price.
PSQL = shutil.which("psql", path=f"{data_directory.PG_BIN}:{os.environ['PATH']}")

# Waiting for a lock here, or for other primaries that wait for it.
LOCKED_OUT = """SELECT 1 FROM pg_stat_activity a WHERE application_name = '{}' AND (pg_blocking_pids(pid) <> '{{}}' OR
                wait_event LIKE 'GclDdl%' AND EXISTS (SELECT FROM gcl_stat_waits w WHERE w.pid = a.pid))"""


class Session:
    """One connection, through an interactive psql."""

    made = itertools.count(1)
    answer_max = ANSWER_MAX  # seconds, where a statement says nothing else

    def __init__(self, dsn, options=("-q",)):
        self.dsn, self.name = dsn, f"test {os.getpid()} session {next(self.made)}"
        self.process = subprocess.Popen(
            [PSQL, "-X", "-A", "-t", "-d", dsn, "-v", "VERBOSITY=verbose", *options], env={**os.environ, "PGAPPNAME": self.name},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.lines = queue.Queue()
        self.count = 0
        self.pending = False
        self.sql, self.sent = "", 0.0
        telling.sessions[id(self)] = self
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def send(self, sql):
        """Starts `sql`; result() waits for it."""
        assert not self.pending, "the last statement was not waited for"
        self.count += 1
        self.pending = True
        self.sql, self.sent = sql, time.time()
        self.collected = []
        try:
            self.process.stdin.write(f"{sql}\n;\n\\echo <<{self.count}>>\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # result() says so

    def _poll(self, seconds):
        """True when the answer is complete."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return False
            if line is None:
                self.lines.put(None)
                self.collected.append("FATAL:  08006: psql ended")
                return True
            if line == f"<<{self.count}>>":
                return True
            self.collected.append(line)

    def has_no_answer(self):
        """Also for another thread than the one that uses the session."""
        return self.pending and not (self.collected and self.collected[-1] is None) and f"<<{self.count}>>" not in list(self.lines.queue)

    def waits(self, seconds=BLOCKED):
        """True when the statement sent has no answer within `seconds`."""
        if self.collected and self.collected[-1] is None:
            return False
        if self._poll(seconds):
            self.collected.append(None)  # result() must not wait again
            return False
        return True

    def blocked(self, still=BLOCKED):
        """True when the statement sent waits for a lock, and still does `still` seconds later.  False when it has an answer."""
        look = Session(self.dsn)
        try:
            deadline = time.monotonic() + ANSWER_MAX
            while "1" not in look.run(LOCKED_OUT.format(self.name)):  # a server that warns of something says more
                if not self.waits(0.02):
                    return False
                if time.monotonic() > deadline:
                    raise Hang(f"neither an answer nor a wait for a lock within {ANSWER_MAX} s")
        finally:
            look.close()
        return self.waits(still)

    def waits_for(self, event):
        """Waits until the statement sent is at that wait event of pg_stat_activity."""
        at = f"SELECT wait_event FROM pg_stat_activity WHERE application_name = '{self.name}'"
        look = Session(self.dsn)
        try:
            eventually(lambda: event in look.run(at))
        finally:
            look.close()

    def result(self, seconds=None):
        """The rows, one string each, columns separated by |."""
        try:
            rows = self._rows(seconds or self.answer_max)
        except (SqlError, Hang) as error:
            error.add_note(f"in answer to: {telling.short(self.sql)}")
            telling.answered(self, error)
            raise
        telling.answered(self, " ".join(rows))
        return rows

    def _rows(self, seconds):
        if self.collected and self.collected[-1] is None:
            self.collected.pop()
        elif not self._poll(seconds):
            raise Hang(f"no answer within {seconds} s")
        self.pending = False
        for line in self.collected:
            error = re.match(r"(?:psql:.*?)?(ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}): (.*)", line)
            if error:
                # Where in the server, for what no test expects.
                where = next((" (" + at + ")" for at in self.collected if at.startswith("LOCATION:")), "")
                raise SqlError(error.group(2), error.group(3) + (where if error.group(2) == "XX000" else ""))
            leaving = re.match(r"WARNING:  (57P0[12]):", line)  # on its way out, beside the answer
            if leaving:
                raise SqlError(leaving.group(1), line)
            if "server closed the connection" in line or "connection to server was lost" in line:
                raise SqlError("08006", line)
        return [line for line in self.collected if line]

    def run(self, sql, seconds=None):
        self.send(sql)
        return self.result(seconds)

    def one(self, sql, seconds=None):
        rows = self.run(sql, seconds)
        assert len(rows) == 1, f"{sql}: {rows}"
        return rows[0]

    def pid(self):
        return int(self.one("SELECT pg_backend_pid()"))

    def close(self):
        telling.sessions.pop(id(self), None)
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it ended with a statement unread
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()


def eventually(what, seconds=30.0):
    """Calls `what` until it is true; returns how long that took.  Fails after `seconds`."""
    began = time.monotonic()
    while not what():
        if time.monotonic() - began > seconds * SLOWNESS:
            raise Hang(f"not true within {seconds} s")
        time.sleep(0.05)
    return time.monotonic() - began
