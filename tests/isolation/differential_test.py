"""Random statements of several sessions: one stock PostgreSQL server with heap tables, and three primaries with gcl tables,
are told the same, and must answer the same: rows, command tags, errors.

The sessions take turns; one that meets another's lock gives up, on either side (lock_timeout), so that the answer is
decided by what was said before and by nothing else.  When no transaction is open all tables are compared, on a primary by turns.

    GCL_SEED=N SECONDS=N python3 differential_test.py       seeds from N on; the statements of a seed are always the same
"""
import os
import random
import re
import time
import unittest

from side_by_side import SideBySide
from statements import DROP, EVERYTHING, TABLES, WAYS, Player

SEED = int(os.environ.get("GCL_SEED", 1))
SEEDS = 5  # at least; and as many as SECONDS have time for
SECONDS = float(os.environ.get("SECONDS", 0))
STATEMENTS = 250  # of a seed
SESSIONS = ("one", "two", "three")
OPTIONS = "-c lock_timeout=2s -c deadlock_timeout=30s"
AT_EASE = "SET lock_timeout = 0; {}; RESET lock_timeout"
SHOWN = 40


def told(lines):
    """What of an answer must be the same: not the order of rows, nor in which order several bad rows were met."""
    errors = [line[:13] for line in lines if line.startswith("ERROR:")]
    rest = [line for line in lines if not line.startswith(("ERROR:", "DETAIL:", "CONTEXT:", "HINT:", "SCHEMA NAME:", "TABLE NAME:",
                                                            "COLUMN NAME:", "CONSTRAINT NAME:"))]
    rest = [line for line in rest if not line.startswith("SQL ") and not line.startswith("PL/pgSQL")]
    return errors or sorted(rest)


# What a row may be refused for.  A statement with several bad rows says which it met first.
REFUSED = re.compile("ERROR:  (55P03|23505|23503|40001|21000|27000)")


def met_first(answers):
    return all(lines and REFUSED.match(lines[0]) for lines in answers)


def ordered(sql):
    """Whether it is said in which order the statement comes to its rows."""
    return re.match(r"INSERT INTO \w VALUES|DO |FETCH|COMMIT|UPDATE \w SET [^(]* WHERE (id = \d+|CURRENT OF)|SELECT .* ORDER BY", sql)


class OneGaveUp(AssertionError):
    """One side has an answer where the other waited too long for a lock: that is a bug, or there was no processor."""


class Differential(SideBySide):
    options = OPTIONS

    def play(self, seed):
        chance = random.Random(seed)
        pairs = {name: (self.one.session(name, 1), self.several.session(name, k)) for k, name in enumerate(SESSIONS, 1)}
        players = {name: Player(random.Random(f"{seed}/{name}")) for name in SESSIONS}
        history, blocked = [], 0
        for server in (0, 1):
            pairs["one"][server].run(AT_EASE.format(TABLES))
        try:
            for _ in range(STATEMENTS):
                name = chance.choice(SESSIONS)
                player, in_block = players[name], players[name].open
                sql = player.next()
                answer = self.both(pairs[name], name, sql, history)
                blocked += "55P03" in str(answer)
                if any(line.startswith("ERROR:") for line in answer):
                    # Outside a transaction nothing is left of it; inside one, everything else has to wait.
                    if in_block and player.open:
                        self.both(pairs[name], name, player.failed(), history)
                    elif not in_block:
                        player.over()
                if not any(p.open for p in players.values()) and chance.random() < 0.4:
                    self.compare_all(pairs[chance.choice(SESSIONS)], history, chance)
            for name in SESSIONS:
                self.both(pairs[name], name, "ROLLBACK", history)
            self.compare_all(pairs["two"], history, chance)
        finally:
            for name in SESSIONS:
                for session in pairs[name]:
                    session.raw("ROLLBACK")
            for server in (0, 1):
                pairs["one"][server].run(AT_EASE.format(DROP))
            for name in SESSIONS:
                for session in pairs[name]:
                    session.raw("DISCARD ALL")
        return len(history), blocked

    def both(self, pair, name, sql, history):
        for session in pair:
            session.send(sql)
        answers = [self.answer(session, sql) for session in pair]
        history.append(f"{name}: {sql}")
        if answers[0] != answers[1] and not (met_first(answers) and not ordered(sql)):
            kind = OneGaveUp if any("55P03" in line for lines in answers for line in lines) else self.failureException
            raise kind("\n".join([f"seed {self.seed}: on one server and on several:", *history[-SHOWN:], "--- one server", *answers[0],
                                  "--- several", *answers[1]]))
        return answers[0]

    def answer(self, session, sql):
        if not session.ready(60):
            self.fail(f"seed {self.seed}: no answer: {sql}")
        return told(session.take())

    def compare_all(self, pair, history, chance):
        name = "everything"
        if chance.random() < 0.2:
            self.both(pair, name, chance.choice(("VACUUM a, b, d, log", "VACUUM ANALYZE a", "ANALYZE")), history)
        for way in WAYS:
            self.both(pair, name, way, history)
            for query in EVERYTHING:
                self.both(pair, name, query, history)
            self.both(pair, name, "RESET ALL", history)
            del history[-len(EVERYTHING) - 2:]

    def test_random_statements_answer_as_on_one_server(self):
        began, seeds, statements, blocked = time.monotonic(), 0, 0, 0
        while seeds < SEEDS or time.monotonic() - began < SECONDS:
            self.seed = SEED + seeds
            try:
                done, held = self.play(self.seed)
            except OneGaveUp as difference:  # a bug gives the same answers once more
                print(difference, flush=True)
                done, held = self.play(self.seed)
            seeds, statements, blocked = seeds + 1, statements + done, blocked + held
        print(f"seeds {SEED} to {SEED + seeds - 1}: {statements} statements, {blocked} met a lock")
        self.assertGreater(blocked, 0, "no statement met another's lock")


if __name__ == "__main__":
    print(f"GCL_SEED={SEED} SECONDS={SECONDS:.0f}", flush=True)
    unittest.main(verbosity=2)
