"""Runs a spec: session k on server k, a step at a time, and notes what each step answers and when.

What happened in a permutation is a list of events for each of its places: (step, "answers", lines), (step, "waits"), and
(step, "goes on", lines) of a step that waited.  On one server the lists are found out; on several they are checked
against those, which tell what is worth waiting for: a lock's end travels between primaries, and an answer may be a
moment late.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
from harness import Hang, Session  # noqa: E402

ANSWER_MAX = 20.0  # seconds; longer is a hang
UNSEEN = 0.7  # no answer for so long is a wait, where a spec says that it cannot be seen otherwise
STILL = 0.03  # a session that has to wait on is watched for so long


class InvalidPermutation(Exception):
    """The next step's session waits for a session that will not move."""


class SpecSession(Session):
    """A session whose errors are answers like others."""

    def ready(self, seconds):
        """True when the statement sent has its answer."""
        return bool(self.collected and self.collected[-1] is None) or not self.waits(seconds)

    def take(self):
        """The lines of the answer that is ready."""
        lines, self.collected, self.pending = self.collected[:-1], [], False
        return [line for line in lines if line and not line.startswith("LOCATION: ")]

    def raw(self, sql):
        self.send(sql)
        if not self.ready(ANSWER_MAX):
            raise Hang(f"no answer: {sql}")
        return self.take()


class Servers:
    """Sessions, kept from spec to spec, on one or several servers with these connection strings."""

    def __init__(self, dsns, options=""):
        self.dsns, self.options = dsns, options
        self.kept = {}
        self.looks = [Session(dsn) for dsn in dsns]

    def open(self, dsn):
        return SpecSession(f"{dsn} options='{self.options}'", ("-P", "null=NULL"))

    def session(self, name, primary):
        """The session NAME of the spec that runs, on a primary."""
        at = (primary - 1) % len(self.dsns)
        session = self.kept.get((name, at))
        if session is None or session.process.poll() is not None:
            session = self.kept[name, at] = self.open(self.dsns[at])
            session.look = self.looks[at]
            session.backend = session.raw("SELECT pg_backend_pid()")[0]
        return session

    def close(self):
        for session in [*self.kept.values(), *self.looks]:
            session.close()


def blocked(session):
    return session.look.one(f"SELECT pg_blocking_pids({session.backend}) <> '{{}}'") == "t"


class Permutation:
    def __init__(self, spec, servers):
        self.spec, self.servers = spec, servers
        self.sessions = {}
        for k, session in enumerate(spec.sessions, 1):
            self.sessions[session.name] = servers.session(session.name, spec.on.get(session.name, k))
        self.waiting = []  # steps, in the order of their start
        self.places = [[]]  # the first: before the first step

    def session_of(self, step):
        return self.sessions[self.spec.owner[step]]

    def note(self, step, what, *lines):
        self.places[-1].append((step, what, *lines))

    def lines(self, step):
        return self.session_of(step).take()

    # --- one server: finding out

    def completes(self, step):
        """True when the step has answered, False when it waits for a lock."""
        deadline = time.monotonic() + ANSWER_MAX
        while time.monotonic() < deadline:
            if self.session_of(step).ready(0.01):
                return True
            if blocked(self.session_of(step)) and not self.session_of(step).ready(0):
                return False
        raise Hang(f"{step}: neither an answer nor a wait for a lock")

    def let_go_on(self, but=None):
        """Those of the waiting that go on now."""
        gone, again = [], True
        while again:
            again = False
            for step in [s for s in self.waiting if s != but]:
                if self.completes(step):
                    self.waiting.remove(step)
                    gone.append(step)
                    again = True
        return gone

    def find_out(self, step):
        if self.completes(step):
            self.note(step, "answers", self.lines(step))
        else:
            self.waiting.append(step)
            self.note(step, "waits")
        self.note_gone(self.let_go_on(but=step if step in self.waiting else None))

    def note_gone(self, gone):
        order = list(self.spec.sql)
        for step in sorted(gone, key=order.index):
            self.note(step, "goes on", self.lines(step))

    def find_free(self, step):
        """The session of the next step must be free."""
        for waits in [w for w in self.waiting if self.session_of(w) is self.session_of(step)]:
            if not self.spec.explicit:
                raise InvalidPermutation(step)
            if not self.session_of(waits).ready(ANSWER_MAX):  # a deadlock, a timeout
                raise Hang(f"{waits} goes on waiting, so {step} cannot start")
            self.waiting.remove(waits)
            self.note_gone([waits])
            self.note_gone(self.let_go_on())  # its end lets others go on

    # --- several servers: checking

    def check(self, expected):
        """`expected`: the events of this place on one server."""
        for step, what, *lines in expected:
            session = self.session_of(step)
            if what == "waits":
                self.check_waits(step)
            elif session.ready(ANSWER_MAX):
                if step in self.waiting:
                    self.waiting.remove(step)
                self.note(step, what, self.lines(step))
            else:
                raise Hang(f"{step} has no answer; on one server it {what}: {lines[0]}")
        for step in list(self.waiting):
            if self.session_of(step).ready(STILL):
                self.waiting.remove(step)
                self.note_gone([step])

    def check_waits(self, step):
        session = self.session_of(step)
        deadline = time.monotonic() + ANSWER_MAX
        seen = False
        while not seen:
            if session.ready(UNSEEN if step in self.spec.unseen else 0.01):
                self.note(step, "answers", self.lines(step))
                return
            seen = step in self.spec.unseen or blocked(session)
            if time.monotonic() > deadline:
                raise Hang(f"{step} has no answer and is blocked by nobody; on one server it waits for a lock")
        self.waiting.append(step)
        self.note(step, "waits")

    # --- both

    def run(self, permutation, expected=None):
        spec = self.spec
        for block in spec.setup:
            self.quietly(spec.sessions[0].name, block)
        for session in spec.sessions:
            self.quietly(session.name, session.setup)
        try:
            for place, step in enumerate(permutation, 1):
                if expected is None:
                    self.find_free(step)
                self.places.append([])
                self.session_of(step).send(spec.sql[step])
                if expected is None:
                    self.find_out(step)
                else:
                    self.check(expected[place])
            if self.waiting:
                if not spec.explicit:
                    raise InvalidPermutation()
                raise Hang(f"{', '.join(self.waiting)} still waits at the end")
        finally:
            self.clean_up()
        return self.places

    def clean_up(self):
        for session in self.sessions.values():
            if session.pending and not session.ready(0):
                session.look.run(f"SELECT pg_cancel_backend({session.backend})")
                session.ready(ANSWER_MAX)
            if session.pending:
                session.take()
        for session in self.spec.sessions:
            self.sessions[session.name].raw("ROLLBACK")
            self.quietly(session.name, session.teardown)
        self.quietly(self.spec.sessions[0].name, self.spec.teardown)
        for session in self.sessions.values():
            session.raw("DISCARD ALL")

    def quietly(self, name, sql):
        if sql:
            self.sessions[name].run(sql)
