"""What a workload has of a session: transactions at one level, whose ends are noted.

    with client.transaction() as mine:              # BEGIN goes with the first statement, COMMIT follows the last
        rows = mine.run("SELECT v FROM t")
        mine.note.reads.append(...)
        mine.roll_back()                            # ends the block
    client.notes                                    # all Transactions, by history.py

Failures that say "run it again" end the block, and so do those that the workload expects (`expected`); all others are raised.
"""
import time

from harness import SqlError
from history import Transaction

WORKERS = 12  # on three primaries: four each
RETRY = ("40001", "40P01")


class _RolledBack(Exception):
    pass


class Running:
    def __init__(self, client, level, note):
        self.note, self._connection = note, client.connection
        self._begin = f"BEGIN ISOLATION LEVEL {level};"

    def run(self, sql):
        begin, self._begin = self._begin, ""
        return self._connection.run(begin + sql)

    @staticmethod
    def roll_back():
        raise _RolledBack


class Client:
    def __init__(self, connection, number, level, chance):
        self.connection, self.number, self.level, self.random = connection, number, level, chance
        self.notes, self.count = [], 0
        self.kept = {}  # whatever a workload remembers between its turns

    def transaction(self, read_only=False, expected=()):
        self.count += 1
        return _Block(self, read_only, expected)


class _Block:
    def __init__(self, client, read_only, expected):
        self.client, self.expected = client, expected
        self.level = client.level + (" READ ONLY" if read_only else "")

    def __enter__(self):
        self.note = Transaction(name=self.client.number * 10_000_000 + self.client.count, began=time.monotonic())
        return Running(self.client, self.level, self.note)

    def __exit__(self, kind, error, _):
        try:
            self.client.connection.run("ROLLBACK" if error else "COMMIT")
            self.note.committed = error is None
        except SqlError as failed:
            if error is not None or failed.state not in RETRY:
                raise
            self.note.why_not = failed.state
        if isinstance(error, SqlError):
            if error.state not in (*RETRY, *self.expected):
                return False
            self.note.why_not = error.state
        elif error is not None and kind is not _RolledBack:
            return False
        self.note.ended = time.monotonic()
        self.client.notes.append(self.note)
        return True
