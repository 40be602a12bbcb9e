"""A client that makes and drops tables while primaries die, and what of these must be there afterwards.

    client = DdlClient(cluster, 1, "ddl 1")                # as those in deaths.py
    assert_tables_kept(test, cluster, clients)
"""
import time

from deaths import Client

KEPT = 3  # tables that a client has at a time
PAUSE = 0.1  # seconds between two statements: DDL stops the others


class DdlClient(Client):
    """`made`, `dropped`: numbers of its tables; those of which it does not know are in `unknown`."""

    def __init__(self, cluster, k, name):
        super().__init__(cluster, k, name)
        self.n, self.made, self.dropped = 0, set(), set()

    def table(self, n):
        return f"{self.name.replace(' ', '_').replace('.', '_')}_{n}"

    def does(self, session, n, sql, done):
        self.unknown.add(n)
        session.run(sql)
        self.unknown.discard(n)
        done.add(n)
        self.times.append(time.monotonic())

    def transaction(self, session):
        self.n += 1
        name = self.table(self.n)
        if self.n % 2:
            self.does(session, self.n, f"CREATE TABLE {name} (a int PRIMARY KEY) USING gcl", self.made)
        else:
            session.run(f"BEGIN; CREATE TABLE {name} (a int) USING gcl; CREATE INDEX ON {name} (a); INSERT INTO {name} VALUES (1)")
            self.does(session, self.n, "COMMIT", self.made)
        for old in sorted(self.made - self.dropped - self.unknown)[:-KEPT]:
            self.does(session, old, f"DROP TABLE {self.table(old)}", self.dropped)
        self.ended.wait(PAUSE)


def assert_tables_kept(test, cluster, clients):
    for k in range(1, cluster.primaries + 1):
        there = set(cluster.sql(k, "SELECT relname FROM pg_class WHERE relkind = 'r'"))
        for client in clients:
            found = {n for n in range(1, client.n + 1) if client.table(n) in there}
            known = client.made - client.dropped - client.unknown
            test.assertEqual(set(), known - found, f"{client.name}: made, and lost on primary {k}")
            test.assertEqual(set(), found - known - client.unknown, f"{client.name}: dropped, or never made, on primary {k}")
