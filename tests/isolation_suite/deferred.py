"""Plays a spec whose locks may be stronger than its author thought: a step whose session is busy when its turn has come waits for
the session, and the others go on.

    player = Player(spec, {session: dsn}, dsn to look from)
    played = player.play(permutation)       # Outcome
    player.close()

What blocks a session is asked of gcl_stat_waits, or of pg_locks where there is no gcl.
"""
import collections
import dataclasses
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "isolation"))
from runner import SpecSession  # noqa: E402
from harness import Hang, Session  # noqa: E402, isort: skip

ANSWER_MAX = 30.0  # seconds; longer is a hang
UNLOOKED = 0.01  # seconds without an answer until it is asked whether the session is blocked
BLOCKED = """SELECT EXISTS (SELECT FROM gcl.gcl_stat_waits WHERE {0} IN (pid, works_for_pid) AND blocked_by_pid IS NOT NULL)
    OR pg_safe_snapshot_blocking_pids({0}) <> '{{}}'"""
BEGINS = re.compile(r"\s*(begin|start\s+transaction)\b", re.I)
ENDS = re.compile(r"\s*(commit|end|rollback|abort)\b(?!\s+to\b)", re.I)
AGAIN = {"40001", "40P01"}  # the transaction has to be tried again
TABLES = """SELECT c.oid::regclass, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
        AND coalesce(pg_get_expr(d.adbin, d.adrelid), '') NOT LIKE 'nextval%' GROUP BY c.oid ORDER BY c.oid::regclass::text"""


@dataclasses.dataclass
class Transaction:
    """Of one session: its steps, from BEGIN to COMMIT, or one step outside."""
    session: str
    first: bool  # the session's setup is a part of it
    steps: list = dataclasses.field(default_factory=list)
    answers: list = dataclasses.field(default_factory=list)  # one for each step
    ended: bool = False

    def errors(self):
        return [match[1] for lines in self.answers for line in lines
                if (match := re.match(r"(?:psql:\S*\s)?(?:ERROR|FATAL):  (\w{5}):", line))]

    def again(self):
        return bool(AGAIN & set(self.errors()))

    def key(self):
        return (self.session, self.first, *self.steps)


@dataclasses.dataclass
class Outcome:
    transactions: list  # in the order of their ends
    state: list  # of all tables
    order: list  # steps, as they have answered


def state_of(session):
    """What is in the tables, but for what sequences gave: they count what was rolled back, too."""
    return [(table, session.raw(f"SELECT count(*), sum(hashtextextended(ROW({columns})::text, 0)) FROM ONLY {table}"))
            for table, columns in (row.split("|") for row in session.raw(TABLES))]


class Transactions:
    """Takes the answers of sessions apart into transactions."""

    def __init__(self, spec):
        self.spec, self.open, self.done = spec, {}, []
        for session in spec.sessions:
            opened = any(map(BEGINS.match, session.setup.split(";")))
            self.open[session.name] = Transaction(session.name, True) if opened else None
        self.fresh = {session.name for session in spec.sessions}

    def add(self, step, lines):
        name, text = self.spec.owner[step], self.spec.sql[step].split(";")
        transaction = self.open[name] or Transaction(name, name in self.fresh)
        self.fresh.discard(name)
        transaction.steps.append(step)
        transaction.answers.append(lines)
        inside = self.open[name] is not None
        for statement in text:
            inside = (inside or bool(BEGINS.match(statement))) and not ENDS.match(statement)
        self.open[name] = transaction if inside else None
        if not inside:
            transaction.ended = True
            self.done.append(transaction)


class Player:
    def __init__(self, spec, dsns, look, options, gcl):
        self.spec, self.gcl = spec, gcl
        self.look, self.control = Session(look), self._open(look, options)
        self.sessions = {name: self._open(dsn, options) for name, dsn in dsns.items()}
        for session in self.sessions.values():
            session.backend = session.raw("SELECT pg_backend_pid()")[0]

    @staticmethod
    def _open(dsn, options):
        return SpecSession(f"{dsn} options='{options}'", ("-q", "-P", "null=NULL"))

    def close(self):
        for session in [self.look, self.control, *self.sessions.values()]:
            session.close()

    def blocked(self, name):
        pid = self.sessions[name].backend
        query = BLOCKED.format(pid) if self.gcl else f"SELECT pg_blocking_pids({pid}) <> '{{}}'"
        return self.look.one(query) == "t"

    def roll_back_idle(self):
        """A session that has no more to do, and is waited for: its transaction is one that the spec leaves open."""
        for name, session in self.sessions.items():
            if name not in self.running:
                session.raw("ROLLBACK")

    def settle(self, final=False):
        """Until each session has answered or waits for another; `final`: has answered."""
        began, sent = time.monotonic(), dict.fromkeys(self.sessions, time.monotonic())
        while True:
            moved = False
            for name, session in self.sessions.items():
                if self.running.get(name) and session.ready(0):
                    step = self.running.pop(name)
                    self.transactions.add(step, lines := session.take())
                    self.order.append((step, lines))
                    moved = True
                if not self.running.get(name) and self.backlog[name]:
                    self.running[name] = self.backlog[name].popleft()
                    session.send(self.spec.sql[self.running[name]])
                    sent[name] = time.monotonic()
                    moved = True
            now = time.monotonic()
            if not self.running or not moved and all(now - sent[name] > UNLOOKED and self.blocked(name) for name in self.running):
                if any(self.sessions[name].ready(0) for name in self.running):
                    continue
                if not final or not self.running:
                    return
                self.roll_back_idle()
            if now - began > ANSWER_MAX:
                raise Hang(f"{', '.join(self.running.values())}: neither an answer nor a wait that ends")
            if not moved:
                time.sleep(0.002)

    def play(self, permutation):
        self.running, self.order = {}, []
        self.backlog = {name: collections.deque() for name in self.sessions}
        self.transactions = Transactions(self.spec)
        try:
            self.set_up()
            for step in permutation:
                self.backlog[self.spec.owner[step]].append(step)
                self.settle()
            self.settle(final=True)
            for session in self.sessions.values():
                session.raw("ROLLBACK")
            return Outcome(self.transactions.done, state_of(self.control), self.order)
        finally:
            self.clean_up()

    def set_up(self):
        for block in self.spec.setup:
            self.control.run(block)
        for session in self.spec.sessions:
            if session.setup:
                self.sessions[session.name].run(session.setup)

    def clean_up(self):
        for session in self.sessions.values():
            if session.pending and not session.ready(0):
                self.look.run(f"SELECT pg_cancel_backend({session.backend})")
                session.ready(ANSWER_MAX)
            if session.pending:
                session.take()
        for session in self.spec.sessions:
            self.sessions[session.name].raw("ROLLBACK")
            if session.teardown:
                self.sessions[session.name].raw(session.teardown)
        if self.spec.teardown:
            self.control.run(self.spec.teardown)
