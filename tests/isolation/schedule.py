"""Plays a schedule: steps of several sessions, one at a time, on one server to find out what happens, on several to check that
the same does.

What happened is a list of events for each step: (session, "answers", answer), (session, "waits"), and (session, "goes on",
answer) of each that waited before.  A step of a session that waits is left out.  A deadlock ends the schedule: its
victim may be any of them.
"""
import re
import time

from runner import ANSWER_MAX, blocked

from harness import Hang  # isort: skip

STILL = 0.02  # seconds; a session that has to wait on is watched for so long
REFUSED = 2.0  # a session that has to go on and is seen to wait for so long does not
DEADLOCK = "40P01"
CANCEL = "CANCEL"  # a step: a waiting session gives up


class Differs(Exception):
    """Several servers do not do what one does."""


class Deadlock(Exception):
    """The sessions wait for each other; one was told so."""


def told(lines):
    """What of an answer must be the same: rows are a set, and of an error its code and the message's first line."""
    errors = [re.sub(r"\(\d+,\d+\)", "(tid)", line) for line in lines if line.startswith("ERROR:")]
    rest = [line for line in lines if not line.startswith(("ERROR:", "DETAIL:", "CONTEXT:", "HINT:", "SCHEMA NAME:", "TABLE NAME:", "COLUMN NAME:",
                                                            "CONSTRAINT NAME:", "SQL ", "PL/pgSQL", "LINE ", "  "))]
    return errors or sorted(rest)


class Play:
    """One run of a schedule.  `sessions`: name -> SpecSession."""

    def __init__(self, sessions, pace=0.0):
        self.sessions = sessions
        self.pace = pace
        self.waiting = {}  # name -> its step
        self.steps = []  # (name, sql) of what was played
        self.places = []

    def note(self, name, what, *answer):
        self.places[-1].append((name, what, *answer))

    def free(self):
        return [name for name in self.sessions if name not in self.waiting]

    # --- one server: finding out

    def completes(self, name):
        """True when the session has answered, False when it waits for a lock."""
        deadline = time.monotonic() + ANSWER_MAX
        while time.monotonic() < deadline:
            if self.sessions[name].ready(0.004):
                return True
            if blocked(self.sessions[name]) and not self.sessions[name].ready(0):
                return False
        raise Hang(f"{name}: neither an answer nor a wait for a lock: {self.waiting.get(name)}")

    def goes_on(self, name):
        answer = told(self.sessions[name].take())
        del self.waiting[name]
        if DEADLOCK in str(answer):
            self.deadlock()
        self.note(name, "goes on", answer)
        return answer

    def deadlock(self):
        self.places[-1] = [("", "deadlock")]
        raise Deadlock

    def start(self, name, sql):
        self.steps.append((name, sql))
        self.places.append([])
        session = self.sessions[name]
        if sql == CANCEL:
            session.look.run(f"SELECT pg_cancel_backend({session.backend})")
            if not session.ready(ANSWER_MAX):
                raise Hang(f"{name} cannot be cancelled: {self.waiting[name]}")
        else:
            session.send(sql)
            self.waiting[name] = sql

    def find_out(self, name, sql):
        """Returns {session: (step, answer)} of all that answered."""
        self.start(name, sql)
        gone = {}
        if self.completes(name):
            answer = told(self.sessions[name].take())
            if DEADLOCK in str(answer):
                self.deadlock()
            self.note(name, "answers", answer)
            gone[name] = self.waiting.pop(name), answer
        else:
            self.note(name, "waits")
            self.find_deadlock()
        again = True
        while again:
            again = False
            for other in [w for w in self.waiting if w != name]:
                if self.completes(other):
                    gone[other] = self.waiting[other], self.goes_on(other)
                    again = True
        self.find_deadlock()
        self.places[-1][1:] = sorted(self.places[-1][1:])
        return gone

    def find_deadlock(self):
        """Waits for the end of a circle of waiters, should there be one."""
        pids = {self.sessions[name].backend: name for name in self.waiting}
        edges = {}
        for name in self.waiting:
            rows = self.sessions[name].look.run(f"SELECT unnest(pg_blocking_pids({self.sessions[name].backend}))")
            edges[name] = [pids[row] for row in rows if row in pids]
        seen, ways = set(), [(name, name) for name in edges]
        while ways:
            start, at = ways.pop()
            for to in edges[at]:
                if to == start:
                    deadline = time.monotonic() + ANSWER_MAX
                    while not any(self.sessions[name].ready(0.01) for name in self.waiting):
                        if time.monotonic() > deadline:
                            raise Hang("a deadlock that nobody finds")
                    if not any(DEADLOCK in str(self.sessions[name].collected) for name in self.waiting):
                        self.steps.pop(), self.places.pop()  # the lock manager has put them into another order
                        raise Deadlock
                    self.deadlock()
                if (start, to) not in seen:
                    seen.add((start, to))
                    ways.append((start, to))

    def queues(self, name):
        """Whether the session waits for a row behind another one, or for a session that another one waits for, too."""
        backend = self.sessions[name].backend
        others = [self.sessions[other].backend for other in self.waiting if other != name]
        if not others:
            return False
        return self.sessions[name].look.one(
            f"SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {backend} AND NOT granted AND locktype = 'tuple') OR"
            f" pg_blocking_pids({backend}) && ARRAY(SELECT unnest(pg_blocking_pids(pid)) FROM unnest(ARRAY[{', '.join(others)}]) pid)") == "t"

    # --- several servers: checking

    def check(self, name, sql, expected):
        self.start(name, sql)
        for who, what, *answer in expected:
            if what == "deadlock":
                self.check_deadlock()
            elif what == "waits":
                self.note(who, "waits")
                self.check_waits(who)
            else:
                self.check_answers(who, what, answer[0])
        if len(expected) > 1 or re.match("COMMIT|ROLLBACK|CANCEL", sql):
            for who in self.waiting:
                self.check_waits(who)
        for who in list(self.waiting):
            if self.sessions[who].ready(max(STILL, self.pace)):
                self.note(who, "goes on", told(self.sessions[who].take()))
                raise Differs(f"{who} goes on")

    def check_waits(self, who):
        deadline = time.monotonic() + ANSWER_MAX
        while not self.sessions[who].ready(0.004):
            if blocked(self.sessions[who]):
                return
            if time.monotonic() > deadline:
                raise Hang(f"{who} has no answer and is blocked by nobody; on one server it waits for a lock: {self.waiting[who]}")
        self.note(who, "answers", told(self.sessions[who].take()))
        raise Differs(f"{who} does not wait")

    def check_answers(self, who, what, answer):
        session = self.sessions[who]
        began, waits = time.monotonic(), 0.0
        while not session.ready(0.02):
            took = time.monotonic() - began
            waits = took if blocked(session) else 0.0
            if took > REFUSED and waits:
                self.note(who, "waits")
                raise Differs(f"{who} waits")
            if took > ANSWER_MAX:
                raise Hang(f"{who} has no answer and is blocked by nobody: {self.waiting[who]}")
        del self.waiting[who]
        seen = told(session.take())
        self.note(who, what, seen)
        if seen != answer:
            raise Differs(f"{who} answers otherwise")

    def check_deadlock(self):
        deadline = time.monotonic() + ANSWER_MAX
        answers = {}  # when the victim is told, others go on
        while time.monotonic() < deadline:
            for name in [w for w in self.waiting if w not in answers]:
                if self.sessions[name].ready(0.01):
                    answers[name] = told(self.sessions[name].take())
                    if DEADLOCK in str(answers[name]):
                        self.deadlock()
            if len(answers) == len(self.waiting):
                break
        if answers:
            for name, answer in answers.items():
                self.note(name, "goes on", answer)
            raise Differs("no deadlock")
        raise Hang("a deadlock that nobody finds")

    # --- both

    def clean_up(self):
        """No session is in a transaction."""
        for name, session in self.sessions.items():
            if session.pending and not session.ready(0):
                session.look.run(f"SELECT pg_cancel_backend({session.backend})")
                if not session.ready(ANSWER_MAX):
                    raise Hang(f"{name} cannot be cancelled: {self.waiting.get(name)}")
            if session.pending:
                session.take()
        for session in self.sessions.values():
            session.raw("ROLLBACK")


def replay(sessions, steps, pace=0.0):
    """Plays `steps` on one server, then ends what is open.  Returns the Play, with its places, and whether it got to its end."""
    play = Play(sessions, pace)
    try:
        for name, sql in steps:
            if (name in play.waiting) == (sql == CANCEL):
                play.find_out(name, sql)
        finish(play, lambda _: "COMMIT")
    except Deadlock:
        return play, False
    finally:
        play.clean_up()
    return play, True


def finish(play, how):
    """Ends all transactions; `how` of a session says by what."""
    ended = set()
    while True:
        free = [name for name in play.free() if name not in ended]
        if not free:
            break
        name = free[0]
        ended.add(name)
        ended -= set(play.find_out(name, how(name))) - {name}
    if play.waiting:
        raise Hang(f"at the end still wait: {play.waiting}")


def check(sessions, play, pace=0.0):
    """Plays what `play` did once more, and checks every answer and wait.  Raises Differs with .place set."""
    again = Play(sessions, pace)
    try:
        for (name, sql), expected in zip(play.steps, play.places):
            again.check(name, sql, expected)
    except Deadlock:
        return
    except (Differs, Hang) as differs:
        differs.play, differs.expected = again, expected
        raise
    finally:
        again.clean_up()


def shown(event):
    name, what, *answer = event
    return f"{name} {what}" + "".join(f"\n        {line}" for line in (answer[0] if answer else []))
