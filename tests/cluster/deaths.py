"""A load under which primaries die, and what their deaths must not change; for repair_test.py, chaos_test.py and others.

    clients = [BankClient(cluster, k, f"name {k}") for k in (1, 2, 3)]     # each with a thread of its own
    for client in clients: client.thread.start()
    ...                                                                    # something dies, and comes back
    stop(clients)                                                          # fails if one had an error, or hung
    assert_bank_kept(test, cluster, clients, "name")
    assert_in_order(test, cluster)
"""
import threading
import time
import zlib

import telling
from harness import Hang, Session, SqlError, eventually

ACCOUNTS, EACH = 60, 1000
BACK_MAX = 60.0  # seconds until the clients of a primary that died work again
# Seconds; a client's statement may wait for one death after the other.  A test finds out before whether a client does
# not go on.
CLIENT_ANSWER_MAX = 120.0
AWAY_PAUSE = 0.3  # seconds; a psql that finds no server costs as much as one that does
# A session hears of its own server's death, or cannot connect yet.
AWAY = ("08006", "08001", "57P01", "57P02", "57P03", "55000")
# Rolled back, and to be tried again.
AGAIN = ("40001", "40P01")
BANK = f"""CREATE TABLE acct (id int PRIMARY KEY, bal int NOT NULL, pad text) USING gcl;
CREATE TABLE hist (who text, n int, PRIMARY KEY (who, n)) USING gcl;
INSERT INTO acct SELECT i, {EACH}, repeat('x', i) FROM generate_series(1, {ACCOUNTS}) i"""


class Client:
    """Commits numbered transactions on primary K until it is stopped.  What it was told is kept here, outside of the cluster.
    `told`: those whose COMMIT was answered, and when; `unknown`: those that were not answered."""

    def __init__(self, cluster, k, name):
        self.cluster, self.k, self.name = cluster, k, name
        self.told, self.unknown, self.times, self.errors = {}, set(), [], []
        self.sent = []  # when it asked for what it was told at `times`
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, name=name)

    def run(self):
        session = None
        try:
            while not self.ended.is_set():
                try:
                    if session is None:
                        session = Session(self.cluster.dsn(self.k))
                        session.answer_max = CLIENT_ANSWER_MAX
                    try:
                        self.transaction(session)
                    except SqlError as error:
                        if error.state not in AGAIN:
                            raise
                        session.run("ROLLBACK")
                except SqlError as error:
                    if error.state not in AWAY:
                        raise
                    session.close()
                    session = None
                    self.ended.wait(AWAY_PAUSE)
        except (SqlError, Hang, AssertionError) as error:
            self.errors.append(f"{self.name}: {telling.told(error)}")
        finally:
            if session:
                session.close()

    def transaction(self, session):
        raise NotImplementedError

    def commit(self, session, n):
        self.unknown.add(n)
        sent = time.monotonic()
        try:
            session.run("COMMIT")
        except SqlError as error:
            if error.state in AGAIN:
                self.unknown.discard(n)
            raise
        self.unknown.discard(n)
        now = time.monotonic()
        self.told[n] = now
        self.sent.append(sent)
        self.times.append(now)

    def works_since(self, moment):
        """It has committed since then; or it has ended, and says why."""
        return (self.times and self.times[-1] > moment) or self.errors

    def longest_pause(self, since, until):
        times = [since, *(t for t in self.times if since <= t <= until), until]
        return max(b - a for a, b in zip(times, times[1:]))


class BankClient(Client):
    """Moves money between two accounts, and numbers that in `hist`."""

    def __init__(self, cluster, k, name):
        super().__init__(cluster, k, name)
        self.n = 0

    def transaction(self, session):
        self.n += 1
        a, b = (1 + zlib.crc32(f"{self.name} {self.n} {which}".encode()) % ACCOUNTS for which in "ab")
        session.run(f"BEGIN; UPDATE acct SET bal = bal - 1 WHERE id = {a}; UPDATE acct SET bal = bal + 1 WHERE id = {b}")
        session.run(f"INSERT INTO hist VALUES ('{self.name}', {self.n})")
        self.commit(session, self.n)


def stop(test, clients):
    for client in clients:
        client.ended.set()
    for client in clients:
        client.thread.join()
    test.assertEqual([], [error for client in clients for error in client.errors])


def assert_all_work(clients, since, seconds=BACK_MAX):
    for client in clients:
        try:
            eventually(lambda client=client: client.works_since(since), seconds)
        except Hang as hang:
            raise Hang(f"{client.name} has not committed for {seconds} s") from hang


def assert_bank_is_there(test, cluster, k, clients):
    """While they work, on one primary: all that they were told by now.  A loss is found when it is young."""
    upto = {client.name: client.n - 1 for client in clients}
    told = {client.name: sum(n <= upto[client.name] for n in list(client.told)) for client in clients}
    wanted = " OR ".join(f"who = '{who}' AND n <= {n}" for who, n in upto.items())
    found = {who: int(count) for who, count in
             (row.split("|") for row in cluster.sql(k, f"SELECT who, count(*) FROM hist WHERE {wanted} GROUP BY who"))}
    for who, count in told.items():
        test.assertGreaterEqual(found.get(who, 0), count, f"{who}: committed, and lost on primary {k}")


def assert_bank_kept(test, cluster, clients, name):
    """On all primaries: nothing lost, nothing that was not committed, and the books balance.  `name`: how the clients' names
    begin."""
    for k in range(1, cluster.primaries + 1):
        there = {}
        for row in cluster.sql(k, f"SELECT who, n FROM hist WHERE who LIKE '{name} %'"):
            who, n = row.split("|")
            there.setdefault(who, set()).add(int(n))
        test.assertEqual(set(), set(there) - {client.name for client in clients}, f"never committed, on primary {k}")
        for client in clients:
            found = there.get(client.name, set())
            test.assertEqual(set(), set(client.told) - found, f"{client.name}: committed, and lost on primary {k}")
            test.assertEqual(set(), found - set(client.told) - client.unknown, f"{client.name}: never committed, on primary {k}")
        test.assertEqual([str(ACCOUNTS * EACH)], cluster.sql(k, "SELECT sum(bal) FROM acct"))


def assert_in_order(test, cluster, *tables):
    """Tables and indexes are whole, DDL works everywhere, catalogs are the same, and no pool is fenced."""
    for k in range(1, cluster.primaries + 1):
        for table in tables:
            test.assertEqual([], cluster.sql(k, f"SELECT * FROM gcl_check('{table}', true)"))
        eventually(lambda k=k: cluster.sql(k, f"CREATE TABLE after_{k} (a int PRIMARY KEY) USING gcl; DROP TABLE after_{k}") == [])
    first, *others = cluster.everywhere("SELECT gcl_ddl_fingerprint()")
    test.assertEqual([first] * len(others), others)
    test.assertEqual(["f"] * cluster.primaries, [rows[0] for rows in cluster.everywhere("SELECT fenced FROM gcl_stat_node")])
