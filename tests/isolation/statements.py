"""Random statements of one session, for differential_test.py: what a seed says, and nothing that depends on the order in
which rows lie in a table.

`TABLES` makes what they work on:
  a    keys and indexes of every form
  b    refers to a, and has triggers that change a third table
  d    deferrable keys
  log  what the triggers of b have seen; without keys
"""

KEYS = 24
TABLES = """
CREATE TABLE a (id int PRIMARY KEY, g int, n int DEFAULT 0, v text, live bool DEFAULT true);
CREATE INDEX a_gn ON a (g, n DESC);
CREATE UNIQUE INDEX a_v ON a (lower(v)) WHERE live;
CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE, o int REFERENCES a ON DELETE SET NULL, v text);
CREATE INDEX ON b (a);
CREATE TABLE d (id int, v int, CONSTRAINT d_id UNIQUE (id) DEFERRABLE INITIALLY DEFERRED, CONSTRAINT d_v UNIQUE (v) DEFERRABLE);
CREATE TABLE log (what text);
CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log VALUES (concat_ws(' ', TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD END, CASE WHEN TG_OP <> 'DELETE' THEN NEW END));
  RETURN NULL;
END $$;
CREATE FUNCTION touches() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.v = 'skip' THEN RETURN NULL; END IF;
  IF NEW.v = 'self' THEN UPDATE b SET v = 'by trigger' WHERE id = NEW.id; END IF;
  NEW.v := NEW.v || length(NEW.v);
  RETURN NEW;
END $$;
CREATE TRIGGER logs AFTER INSERT OR UPDATE OR DELETE ON b FOR EACH ROW EXECUTE FUNCTION logs();
CREATE TRIGGER touches BEFORE UPDATE ON b FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION touches();
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON b DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION logs();
CREATE FUNCTION total() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT sum(n) FROM a';
CREATE FUNCTION total_then() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(n) FROM a';
INSERT INTO a SELECT i, i % 4, i, 'v' || i FROM generate_series(1, 16) i;
INSERT INTO b SELECT i, i, i + 1, 'b' || i FROM generate_series(1, 8) i;
INSERT INTO d SELECT i, i FROM generate_series(1, 8) i;
TRUNCATE log;
"""
DROP = "DROP TABLE a, b, d, log; DROP FUNCTION logs, touches, total, total_then;"
# All there is, in every way to read it.
WAYS = ("RESET enable_seqscan", "SET enable_seqscan = off", "SET enable_indexscan = off; SET enable_indexonlyscan = off")
EVERYTHING = ["SELECT * FROM a WHERE id > 0", "SELECT * FROM a WHERE g >= 0", "SELECT id FROM a WHERE lower(v) > '' AND live",
              "SELECT * FROM b WHERE id > 0", "SELECT id, a FROM b WHERE a > 0", "SELECT * FROM d WHERE id > 0", "SELECT v FROM d WHERE v > 0",
              "SELECT * FROM log"]
SCANS = ("enable_seqscan", "enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin",
         "enable_nestloop", "enable_tidscan", "enable_sort", "enable_material")


class Player:
    """A session's next statement, by what it has come to."""

    def __init__(self, random):
        self.random = random
        self.over()

    def over(self):
        """No transaction is open."""
        self.open, self.savepoints, self.cursors = False, [], {}

    def failed(self):
        """What may follow an error in a transaction."""
        if self.savepoints and self.random.random() < 0.7:
            at = self.random.randrange(len(self.savepoints))
            self.savepoints = self.savepoints[:at + 1]
            self.cursors = {}  # those of before are open; their names are not used again
            return f"ROLLBACK TO {self.savepoints[at]}"
        self.over()
        return "ROLLBACK"

    def next(self):
        r = self.random.random()
        if not self.open:
            if r < 0.45:
                self.open = True
                return f"BEGIN ISOLATION LEVEL {self.pick('READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ')}"
            return self.statement()
        if r < 0.10:
            self.over()
            return self.pick("COMMIT", "COMMIT", "ROLLBACK")
        if r < 0.16 and len(self.savepoints) < 3:
            self.savepoints.append(f"s{len(self.savepoints)}")
            return f"SAVEPOINT {self.savepoints[-1]}"
        if r < 0.22 and self.savepoints:
            at = self.random.randrange(len(self.savepoints))
            name = self.savepoints[at]
            if self.random.random() < 0.5:
                self.savepoints = self.savepoints[:at]
                return f"RELEASE {name}"
            self.savepoints = self.savepoints[:at + 1]
            self.cursors = {}
            return f"ROLLBACK TO {name}"
        if r < 0.34:
            return self.cursor()
        if r < 0.37:
            return f"SET CONSTRAINTS ALL {self.pick('IMMEDIATE', 'DEFERRED')}"
        return self.statement()

    def pick(self, *of):
        return self.random.choice(of)

    def key(self):
        return self.random.randint(1, KEYS)

    def keys(self, most=4):
        return ", ".join(str(k) for k in sorted(self.random.sample(range(1, KEYS + 1), self.random.randint(1, most))))

    def number(self):
        return self.random.randint(-3, 40)

    def text(self):
        return f"'{self.pick('v', 'V', 'w')}{self.key()}'"

    def condition(self, table="a"):
        if table == "b":
            return self.pick(f"id = {self.key()}", f"a = {self.key()}", f"id IN ({self.keys()})", f"o = {self.key()}", "a IS NULL")
        if table == "d":
            return self.pick(f"id = {self.key()}", f"v = {self.key()}", f"id BETWEEN {self.key()} AND {self.key()}")
        return self.pick(f"id = {self.key()}", f"id = {self.key()}", f"id IN ({self.keys()})", f"g = {self.random.randint(0, 4)}",
                         f"id BETWEEN {self.key()} AND {self.key()}", f"n > {self.number()}", f"lower(v) = lower({self.text()}) AND live",
                         f"g = {self.random.randint(0, 3)} AND n < {self.number()}", f"id = ANY ('{{{self.keys()}}}')", "NOT live",
                         f"(g, n) > ({self.random.randint(0, 3)}, {self.number()})", f"v LIKE '{self.pick('v', 'w')}1%'",
                         f"ctid = (SELECT ctid FROM a i WHERE i.id = {self.key()})", "id IN (SELECT a FROM b)")

    # --- statements

    def statement(self):
        return self.random.choices(self.KINDS, self.WEIGHTS)[0](self)

    def settings(self):
        return f"SET {self.pick(*SCANS)} = {self.pick('on', 'off')}"

    def insert(self):
        rows = ", ".join(f"({self.key()}, {self.random.randint(0, 4)}, {self.number()}, {self.text()}, {self.pick('true', 'true', 'false')})"
                         for _ in range(self.pick(1, 1, 2, 3)))
        return f"INSERT INTO a VALUES {rows}{self.pick('', '', self.conflict())} RETURNING *, xmax = 0{self.mine()}"

    def mine(self):
        # A savepoint's rows show its own id on one server.
        return "" if self.savepoints else ", xmin = pg_current_xact_id()::xid"

    def conflict(self):
        return self.pick(" ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING",
                         " ON CONFLICT (id) DO UPDATE SET n = a.n + excluded.n, v = excluded.v",
                         " ON CONFLICT (id) DO UPDATE SET n = a.n + 1",
                         f" ON CONFLICT (id) DO UPDATE SET g = excluded.g WHERE a.n < {self.number()}",
                         " ON CONFLICT (lower(v)) WHERE live DO UPDATE SET n = -1", " ON CONFLICT (lower(v)) WHERE live DO NOTHING",
                         f" ON CONFLICT ON CONSTRAINT a_pkey DO UPDATE SET live = NOT a.live, v = {self.text()}")

    def copy_rows(self):
        return (f"INSERT INTO a SELECT id + {self.pick(0, 1, 8)}, g, n, v || 'c{self.key()}', live FROM a WHERE {self.condition()}"
                f" ORDER BY id ON CONFLICT {self.pick('DO NOTHING', '(id) DO UPDATE SET n = a.n + excluded.n, g = excluded.g')} RETURNING id, n")

    def update(self):
        if self.random.random() < 0.15:
            # A volatile function sees what the statement has done so far: of one row, that is no matter of order.
            return (f"UPDATE a SET n = {self.pick('total()', 'total_then()', 'n + total()')} WHERE id = {self.key()}"
                    " RETURNING id, n, total(), total_then()")
        change = self.pick("n = n + 1", "n = n + 1", "g = (g + 1) % 5", "live = NOT live", "n = n * 2, g = 3 - g", "v = v || ''", "v = v || id",
                           "n = total_then()", "v = rpad(v, 1500, 'x')", "v = left(v, 4)", "n = (SELECT max(n) FROM a)")
        returning = self.pick("", " RETURNING *", " RETURNING id, total_then()", f" RETURNING id, n{self.mine()}")
        return f"UPDATE a SET {change} WHERE {self.condition()}{returning}"

    def rekey(self):
        return f"UPDATE a SET id = {self.key()} WHERE id = {self.key()} RETURNING *"

    def join_update(self):
        return self.pick(f"UPDATE a SET n = a.n + 1 FROM b WHERE b.a = a.id AND b.{self.condition('b')} RETURNING a.id, a.n",
                         f"UPDATE a SET n = x.n FROM (VALUES ({self.key()}, 7), ({self.key()}, 7)) x (id, n) WHERE x.id = a.id RETURNING a.id",
                         f"DELETE FROM a USING b WHERE b.o = a.id AND b.id = {self.key()} RETURNING a.id, b.id")

    def delete(self):
        return f"DELETE FROM a WHERE {self.condition()} AND id % 3 = {self.random.randint(0, 2)}{self.pick('', ' RETURNING *')}"

    def on_b(self):
        return self.pick(f"INSERT INTO b VALUES ({self.key()}, {self.key()}, {self.key()}, 'new') RETURNING *",
                         f"INSERT INTO b VALUES ({self.key()}, {self.key()}, NULL, 'up') ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING *",
                         f"UPDATE b SET v = '{self.pick('one', 'skip', 'self', 'two')}' WHERE {self.condition('b')} RETURNING *",
                         f"UPDATE b SET a = {self.pick('NULL', self.key())} WHERE id = {self.key()} RETURNING *",
                         f"DELETE FROM b WHERE {self.condition('b')} RETURNING *")

    def on_d(self):
        return self.pick(f"INSERT INTO d VALUES ({self.key()}, {self.key()}) RETURNING *", f"UPDATE d SET id = id + 1 WHERE {self.condition('d')}",
                         f"UPDATE d SET v = v + 1 WHERE {self.condition('d')}", f"DELETE FROM d WHERE {self.condition('d')} RETURNING *",
                         f"UPDATE d SET id = {self.key()} WHERE {self.condition('d')} RETURNING *", "UPDATE d SET id = 25 - id")

    def select(self):
        return self.pick(f"SELECT * FROM a WHERE {self.condition()}", f"SELECT * FROM a WHERE {self.condition()} OR {self.condition()}",
                         f"SELECT g, count(*), sum(n), max(v) FROM a WHERE {self.condition()} GROUP BY g",
                         f"SELECT a.id, b.id, b.v FROM a LEFT JOIN b ON b.a = a.id WHERE a.{self.condition()}".replace("a.(g", "(g").replace(
                             "a.NOT live", "NOT live").replace("a.lower", "lower").replace("lower(v)", "lower(a.v)"),
                         "SELECT id, (SELECT string_agg(id::text, ',' ORDER BY id) FROM b WHERE b.a = a.id) FROM a",
                         "SELECT x.id, y.id FROM a x, LATERAL (SELECT id FROM a y WHERE y.g = x.g AND y.id < x.id ORDER BY id DESC LIMIT 1) y",
                         f"SELECT id FROM a ORDER BY g, n DESC, id LIMIT {self.random.randint(1, 9)}",
                         "SELECT count(*), sum(n), sum(id) FROM a TABLESAMPLE BERNOULLI (100)", "SELECT min(id), max(id), min(n), max(g) FROM a",
                         "SELECT x.id FROM a x JOIN a y ON x.ctid = y.ctid", f"SELECT * FROM d WHERE {self.condition('d')}")

    def lock(self):
        mode = self.pick("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE", "UPDATE", "KEY SHARE")
        how = self.pick("", "", " NOWAIT", " SKIP LOCKED")
        rest = self.pick(f"WHERE {self.condition()}", f"ORDER BY id LIMIT {self.random.randint(1, 3)}", f"WHERE id > {self.key()} ORDER BY id LIMIT 2")
        if self.random.random() < 0.15:
            return f"SELECT a.id, b.id, b.v FROM a JOIN b ON b.a = a.id WHERE a.id IN ({self.keys()}) ORDER BY b.id FOR {mode}{self.pick('', ' OF a', ' OF b')}{how}"
        if self.random.random() < 0.2:
            return f"UPDATE a SET n = n + 1 WHERE id IN (SELECT id FROM a {rest} FOR {mode}{how}) RETURNING id, n"
        return f"SELECT id, n FROM a {rest} FOR {mode}{how}"

    def merge(self):
        rows = ", ".join(f"({key}, {self.number()})" for key in self.keys(3).split(", "))
        if self.random.random() < 0.1:
            rows += f", {rows}"
        return (f"MERGE INTO a USING (VALUES {rows}) s (id, n) ON s.id = a.id WHEN MATCHED AND a.n < {self.number()} THEN DELETE"
                f" WHEN MATCHED THEN UPDATE SET n = a.n + s.n{self.pick('', ', v = v || s.n')}"
                " WHEN NOT MATCHED AND s.n > 0 THEN INSERT VALUES (s.id, 0, s.n) WHEN NOT MATCHED THEN DO NOTHING")

    def with_changes(self):
        return self.pick(
            f"WITH x AS (UPDATE a SET n = n + 1 WHERE {self.condition()} RETURNING *) SELECT x.id, x.n, a.n FROM x JOIN a USING (id)",
            f"WITH x AS (DELETE FROM a WHERE id = {self.key()} RETURNING *) INSERT INTO a SELECT id + 1, g, n, v, false FROM x RETURNING *",
            f"WITH x AS (INSERT INTO a VALUES ({self.key()}, 1, 1) ON CONFLICT DO NOTHING RETURNING id) SELECT count(*), (SELECT count(*) FROM a) FROM x",
            f"WITH x AS (DELETE FROM b WHERE {self.condition('b')} RETURNING a) UPDATE a SET n = 0 FROM x WHERE x.a = id RETURNING id",
            f"WITH x AS (SELECT id FROM a WHERE {self.condition()} FOR UPDATE) UPDATE a SET n = n + 2 FROM x WHERE a.id = x.id RETURNING a.id, a.n",
            f"WITH x AS (UPDATE a SET n = 1 WHERE id = {self.key()} RETURNING id) DELETE FROM a WHERE id = {self.key()} RETURNING id")

    def block(self):
        inner = "; ".join(self.simple() for _ in range(self.random.randint(1, 3)))
        fails = self.pick("", " RAISE EXCEPTION 'on purpose';", " PERFORM 1 / 0;")
        return (f"DO $$ BEGIN {self.simple()}; BEGIN {inner};{fails} EXCEPTION WHEN unique_violation OR raise_exception OR division_by_zero OR"
                f" foreign_key_violation OR lock_not_available THEN RAISE NOTICE '%', SQLSTATE; {self.simple()}; END; {self.simple()}; END $$")

    def simple(self):
        return self.pick(f"UPDATE a SET n = n + 1 WHERE id = {self.key()}", f"INSERT INTO a VALUES ({self.key()}, 1, 5, {self.text()})",
                         f"DELETE FROM a WHERE id = {self.key()}", f"PERFORM 1 FROM a WHERE id = {self.key()} FOR UPDATE",
                         f"UPDATE b SET v = 'self' WHERE id = {self.key()}", f"INSERT INTO d VALUES ({self.key()}, {self.key()})",
                         f"INSERT INTO a VALUES ({self.key()}, 2, 2) ON CONFLICT (id) DO UPDATE SET n = -a.n",
                         f"PERFORM 1 FROM a WHERE id = {self.key()} FOR KEY SHARE", f"UPDATE a SET v = {self.text()} WHERE id = {self.key()}")

    # --- cursors: of an ordered query, or for WHERE CURRENT OF a row that is found by its key

    def cursor(self):
        if not self.cursors or (len(self.cursors) < 2 and self.random.random() < 0.3):
            self.count = getattr(self, "count", 0) + 1
            name = f"c{self.count}"
            kind = self.pick("ordered", "ordered", "one", "locked")
            self.cursors[name] = kind
            query = {"ordered": f"{self.pick('SCROLL', '')} CURSOR FOR SELECT id, n, v FROM a WHERE id > {self.key() - 8} ORDER BY id",
                     "one": f"CURSOR FOR SELECT * FROM a WHERE id = {self.key()}",
                     "locked": f"CURSOR FOR SELECT id, n FROM a WHERE id IN ({self.keys()}) ORDER BY id FOR UPDATE"}[kind]
            return f"DECLARE {name} {query}"
        name = self.random.choice(sorted(self.cursors))
        if self.random.random() < 0.15:
            del self.cursors[name]
            return f"CLOSE {name}"
        if self.cursors[name] != "ordered" and self.random.random() < 0.5:
            return self.pick(f"UPDATE a SET n = n + 1 WHERE CURRENT OF {name} RETURNING *", f"DELETE FROM a WHERE CURRENT OF {name} RETURNING *")
        return f"FETCH {self.pick('1', '3', 'ALL', '1', '-2' if self.cursors[name] == 'ordered' else '1')} FROM {name}"

    KINDS = [settings, insert, copy_rows, update, rekey, join_update, delete, on_b, on_d, select, lock, merge, with_changes, block]
    WEIGHTS = [4, 10, 3, 14, 4, 4, 5, 9, 6, 14, 14, 4, 6, 6]
