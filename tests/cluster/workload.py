"""Random transactions of one session, for random_test.py: what a seed and a name say, whatever the others do.

The tables, made by `TABLES`:
  acct  money: every transaction keeps the sum of `bal`, so every snapshot shows it
  uniq  keys that all sessions want
  hist  what each session has committed, numbered: a session that was told of n finds n, on any primary, at once
  side  a table without keys that is emptied now and then
"""
import random
import time

from harness import Hang, SqlError

ACCOUNTS, EACH = 120, 1000
TOTAL = ACCOUNTS * EACH
TABLES = f"""
CREATE TABLE acct (id int PRIMARY KEY, part int NOT NULL, bal bigint NOT NULL, ver int NOT NULL, pad text) USING gcl;
CREATE INDEX acct_part ON acct (part, bal);
CREATE TABLE uniq (k int PRIMARY KEY, c text UNIQUE, n int NOT NULL) USING gcl;
CREATE TABLE hist (who text, n int, PRIMARY KEY (who, n)) USING gcl;
CREATE TABLE side (who text, n int, pad text) USING gcl;
INSERT INTO acct SELECT i, i % 7, {EACH}, 0, repeat('x', i) FROM generate_series(1, {ACCOUNTS}) i;
"""
# Ends of a statement that others may cause: conflicts, timeouts, cancel and terminate, tables and indexes that come and go.
EXPECTED = {"40001", "40P01", "55P03", "23505", "57014", "57P01", "08006", "42P07", "42704", "42P01", "25P02"}


class Away(Exception):
    """The transaction was rolled back: what it wanted is not there."""


class Worker:
    def __init__(self, name, session, seed, until):
        self.name, self.open, self.until = name, session, until
        self.random = random.Random(f"{seed}/{name}")
        self.session = None
        self.committed = 0  # number of its last hist row that was committed for sure
        self.tried = 0
        self.counts = {}

    def connect(self):
        self.session = self.open()
        self.session.run("SET lock_timeout = '1500ms'; SET deadlock_timeout = '200ms'; SET statement_timeout = '20s'")

    def run(self):
        """Transactions until the time is over or, after a death, until the session hears of it."""
        while time.monotonic() < self.until:
            what = "committed"
            try:
                if self.session is None:
                    self.connect()
                self.transaction()
            except Away:
                what = "away"
            except SqlError as error:
                what = error.state
                if self.is_the_end(error):
                    break
                if what not in EXPECTED:
                    raise SqlError(what, f"{self.name}: {error}") from None
                self.rollback()
            self.counts[what] = self.counts.get(what, 0) + 1
        if self.session:
            self.session.close()

    def is_the_end(self, error):  # pylint: disable=unused-argument,no-self-use
        return False

    def rollback(self):
        try:
            self.session.run("ROLLBACK")
        except SqlError:
            self.session.close()
            self.session = None

    def sql(self, text):
        try:
            return self.session.run(text)
        except Hang as hang:
            raise Hang(f"{self.name}: {hang}: {text[:300]}") from None

    # --- one transaction

    def transaction(self):
        if self.random.random() < 0.06:
            return self.random.choice(self.ALONE)(self)
        self.level = self.random.choice(["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ"])
        self.sql(f"BEGIN ISOLATION LEVEL {self.level}")
        for _ in range(self.random.randint(1, 4)):
            self.action()
            if self.random.random() < 0.1:
                time.sleep(self.random.random() * 0.02)
        if self.random.random() < 0.12:
            return self.sql("ROLLBACK")
        number = None
        if self.random.random() < 0.6:
            number = self.tried = self.tried + 1
            self.sql(f"INSERT INTO hist VALUES ('{self.name}', {number})")
        self.sql("COMMIT")
        self.committed = number or self.committed
        return None

    def action(self, depth=0):
        if depth < 2 and self.random.random() < 0.2:
            self.sql(f"SAVEPOINT s{depth}")
            try:
                for _ in range(self.random.randint(1, 2)):
                    self.action(depth + 1)
                self.sql(f"{self.random.choice(['RELEASE', 'ROLLBACK TO'])} s{depth}")
            except SqlError as error:
                if error.state not in ("23505", "55P03"):
                    raise
                self.sql(f"ROLLBACK TO s{depth}")
            return
        self.random.choices(self.ACTIONS, self.WEIGHTS)[0](self)

    def away(self):
        self.sql("ROLLBACK")
        raise Away()

    def some(self, count=1):
        return sorted(self.random.sample(range(1, ACCOUNTS + 20), count))

    def key(self):
        return self.random.randint(1, ACCOUNTS + 20)

    def one_row(self, text):
        rows = self.sql(text)
        if not rows:
            self.away()
        assert len(rows) == 1, f"{self.name}: {text}: {rows}"
        return rows[0]

    def transfer(self):
        a, b = self.some(2)
        amount = self.random.randint(-50, 50)
        self.one_row(f"UPDATE acct SET bal = bal - {amount}, ver = ver + 1 WHERE id = {a} RETURNING id")
        self.one_row(f"UPDATE acct SET bal = bal + {amount}, ver = ver + 1 WHERE id = {b} RETURNING id")

    def split(self):
        new, old = self.key(), self.key()
        self.one_row(f"UPDATE acct SET bal = bal - 7, ver = ver + 1 WHERE id = {old} RETURNING id")
        self.sql(f"INSERT INTO acct VALUES ({new}, {new % 7}, 7, 0, repeat('n', {self.random.randint(0, 900)}))")

    def merge(self):
        old, to = self.random.sample(range(1, ACCOUNTS + 20), 2)
        balance = self.one_row(f"DELETE FROM acct WHERE id = {old} RETURNING bal")
        self.one_row(f"UPDATE acct SET bal = bal + {balance}, ver = ver + 1 WHERE id = {to} RETURNING id")

    def rename(self):
        self.one_row(f"UPDATE acct SET id = {self.key()} WHERE id = {self.key()} RETURNING id")

    def repart(self):
        self.one_row(f"UPDATE acct SET part = {self.random.randint(0, 6)} WHERE id = {self.key()} RETURNING id")

    def widen(self):
        self.one_row(f"UPDATE acct SET pad = repeat('w', {self.random.randint(0, 2500)}) WHERE id = {self.key()} RETURNING id")

    def lock(self):
        rows = self.sql(f"SELECT id, bal FROM acct WHERE id IN ({', '.join(map(str, self.some(3)))}) ORDER BY id FOR UPDATE"
                        + self.random.choice(["", "", " SKIP LOCKED", " NOWAIT"]))
        if len(rows) >= 2:
            # What is locked does not change: the values read may be written back, moved by one.
            (a, x), (b, y) = (map(int, row.split("|")) for row in rows[:2])
            self.sql(f"UPDATE acct SET bal = {x - 1}, ver = ver + 1 WHERE id = {a}")
            self.sql(f"UPDATE acct SET bal = {y + 1}, ver = ver + 1 WHERE id = {b}")

    def upsert(self):
        k = self.random.randint(1, 40)
        self.sql(self.random.choice([
            f"INSERT INTO uniq VALUES ({k}, 'c{k}', 1) ON CONFLICT (k) DO UPDATE SET n = uniq.n + 1",
            f"INSERT INTO uniq VALUES ({k}, 'c{k}', 1) ON CONFLICT DO NOTHING",
            f"INSERT INTO uniq SELECT i, 'c' || i, 1 FROM generate_series({k}, {k + 3}) i ON CONFLICT (c) DO UPDATE SET n = 0",
            f"DELETE FROM uniq WHERE k = {k}",
            f"UPDATE uniq SET k = {k} + 100, c = 'c' || {k} + 100 WHERE k = {k}",
            f"UPDATE uniq SET k = {k}, c = 'c' || {k} WHERE k = {k} + 100",
            f"INSERT INTO uniq VALUES ({k}, 'c{k}', 1)"]))

    def copy_in(self):
        rows = "".join(f"{self.name}\t{self.random.randint(1, 99)}\t{'p' * self.random.randint(0, 500)}\n"
                       for _ in range(self.random.randint(1, 60)))
        # psql stops at an empty statement behind the data: something follows it.
        self.sql(f"COPY side FROM stdin;\n{rows}\\.\nSELECT WHERE false")

    def prune(self):
        self.sql(f"DELETE FROM side WHERE n % 5 = {self.random.randint(0, 4)}")

    def read(self):
        """In REPEATABLE READ a row of ours may have the key of a row that the snapshot still sees and another session has deleted:
        a key is taken once among what is ours, and once among the rest."""
        groups = "()" if self.level == "READ COMMITTED" else "xmin = pg_current_xact_id_if_assigned()::xid"
        total = self.sql(f"SELECT sum(sum), sum(twice) FROM (SELECT sum(bal), count(*) - count(DISTINCT id) AS twice FROM acct"
                         f" GROUP BY {groups}) x")[0]
        assert total == f"{TOTAL}|0", f"{self.name}, {self.level}: within a transaction that keeps the sum: {total}"

    def vacuum(self):
        table = self.random.choice(["acct", "uniq", "side", "hist"])
        self.sql(f"VACUUM {self.random.choice(['', '(ANALYZE) '])}{table}")

    def truncate(self):
        self.sql("TRUNCATE side")

    def index(self):
        name = f"tmp_{self.random.randint(1, 2)}"
        self.sql(self.random.choice([f"CREATE INDEX {name} ON acct (bal, id)", f"CREATE INDEX {name} ON acct (ver) WHERE part < 4",
                                     f"DROP INDEX {name}", "CREATE UNIQUE INDEX tmp_3 ON acct (id) INCLUDE (bal)",
                                     "DROP INDEX tmp_3"]))

    def scratch(self):
        table = f"own_{self.name}"
        self.sql(f"DROP TABLE IF EXISTS {table}")
        self.sql(f"BEGIN; CREATE TABLE {table} (id int PRIMARY KEY, v text) USING gcl")
        self.sql(f"INSERT INTO {table} SELECT i, repeat('v', i) FROM generate_series(1, 300) i")
        if self.random.random() < 0.5:
            self.sql("COMMIT")
            self.sql(f"DELETE FROM {table} WHERE id % 3 = 0; VACUUM {table}")
            assert self.sql(f"SELECT count(*) FROM {table}") == ["200"]
            self.sql(f"DROP TABLE {table}")
        else:
            self.sql("ROLLBACK")

    ACTIONS = [transfer, split, merge, rename, repart, widen, lock, upsert, copy_in, prune, read]
    WEIGHTS = [10, 2, 2, 2, 3, 3, 4, 5, 2, 1, 1]
    ALONE = [vacuum, vacuum, truncate, index, index, scratch]


class Reader(Worker):
    """Snapshots, read in every way there is; one answer to all."""

    WAYS = {"seq": "enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off",
            "index": "enable_seqscan = off; SET LOCAL enable_bitmapscan = off",
            "bitmap": "enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off"}
    ROWS = ("SELECT count(*), count(DISTINCT id), sum(bal), md5(string_agg(id || ':' || part || ':' || bal || ':' || ver, ','"
            " ORDER BY id)) FROM acct WHERE {}")

    def __init__(self, name, session, seed, until, workers):
        super().__init__(name, session, seed, until)
        self.workers = workers

    def transaction(self):
        told = {worker.name: worker.committed for worker in self.workers}
        self.sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        rows = dict(row.split("|") for row in self.sql("SELECT who, max(n) FROM hist GROUP BY who"))
        for who, n in told.items():
            assert int(rows.get(who, 0)) >= n, f"{self.name}: {who} was told that {n} is committed; seen: {rows.get(who)}"
        first = None
        for turn in range(self.random.randint(1, 3)):
            for way, settings in self.WAYS.items():
                self.sql(f"SET LOCAL {settings}")
                for where in ("id > 0", "part >= 0"):
                    answer = self.sql(self.ROWS.format(where))[0]
                    first = first or answer
                    assert answer == first, f"{self.name}: {way} scan, {where}, turn {turn}: {answer}, at first {first}"
                self.sql("RESET ALL")
                keys = self.sql("SELECT count(*) - count(DISTINCT k), count(*) - count(DISTINCT c) FROM uniq")
                assert keys == ["0|0"], f"{self.name}: {way} scan: keys twice: {keys}"
        count, distinct, total, _ = first.split("|")
        assert count == distinct and int(total) == TOTAL, f"{self.name}: {first}"
        self.sql("COMMIT")
