"""Random steps of several sessions that meet each other's locks, for schedules_test.py: what a seed says, and what the
answers so far allow.

Few keys, so that sessions meet; every scan is by an index (SETTINGS), so that it is said in which order rows are locked.

  p    parents: a second unique key, a column in an index, one in none
  c    children: cascades, and a key that is checked at the end; a trigger counts them in their parent, another one writes to log
  d    deferrable keys
  log  what a trigger has seen
"""

KEYS = 5
SETTINGS = ("-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_material=off"
            " -c enable_sort=on")
TABLES = """
CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE, g int, n int NOT NULL DEFAULT 0);
CREATE INDEX p_g ON p (g, id);
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE,
                q int REFERENCES p (u) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED, n int DEFAULT 0);
CREATE INDEX c_p ON c (p, id);
CREATE INDEX c_q ON c (q, id);
CREATE TABLE d (id int, v int, n int, CONSTRAINT d_id UNIQUE (id) DEFERRABLE INITIALLY DEFERRED, CONSTRAINT d_v UNIQUE (v) DEFERRABLE);
CREATE TABLE log (what text);
CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND pg_trigger_depth() = 1 THEN UPDATE p SET n = n - 1 WHERE id = OLD.p; END IF;
  IF TG_OP <> 'DELETE' THEN UPDATE p SET n = n + 1 WHERE id = NEW.p; END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log VALUES (concat_ws(' ', TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD END, CASE WHEN TG_OP <> 'DELETE' THEN NEW END));
  RETURN NULL;
END $$;
CREATE FUNCTION alters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n = 13 THEN RETURN NULL; END IF;
  NEW.n := NEW.n + 1;
  RETURN NEW;
END $$;
CREATE TRIGGER counts AFTER INSERT OR UPDATE OF p OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION counts();
CREATE TRIGGER logs AFTER INSERT OR UPDATE OR DELETE ON d FOR EACH ROW EXECUTE FUNCTION logs();
CREATE TRIGGER alters BEFORE UPDATE ON d FOR EACH ROW EXECUTE FUNCTION alters();
"""
ROWS = """DELETE FROM c; DELETE FROM p; DELETE FROM d; DELETE FROM log;
INSERT INTO p SELECT i, i, i % 2, 0 FROM generate_series(1, 4) i;
INSERT INTO c SELECT i, i, i, 0 FROM generate_series(1, 3) i;
INSERT INTO d SELECT i, i, 0 FROM generate_series(1, 3) i;
DELETE FROM log"""
# All there is, by every index.
EVERYTHING = ("SELECT * FROM p ORDER BY id", "SELECT u FROM p ORDER BY u", "SELECT g, id FROM p ORDER BY g, id", "SELECT * FROM c ORDER BY id",
              "SELECT p, id FROM c ORDER BY p, id", "SELECT q, id FROM c ORDER BY q, id", "SELECT * FROM d ORDER BY id",
              "SELECT v FROM d ORDER BY v", "SELECT * FROM log ORDER BY what")


class Player:
    """A session's next step, by what it has come to."""

    def __init__(self, chance, hot):
        self.random, self.hot = chance, hot
        self.count = 0
        self.over()

    def over(self):
        self.open, self.failed, self.savepoints, self.cursors = False, False, [], {}

    def told(self, sql, lines):
        """What the step has come to."""
        error = any(line.startswith("ERROR:") for line in lines)
        if sql in ("COMMIT", "ROLLBACK"):
            self.over()
        elif error:
            self.failed = self.open
        elif sql.startswith("ROLLBACK TO"):
            self.failed = False

    def pick(self, *of):
        return self.random.choice(of)

    def next(self):
        r = self.random.random()
        if self.failed:
            if self.savepoints and r < 0.7:
                return self.rollback_to()
            return "ROLLBACK"
        if not self.open:
            if r < 0.8:
                self.open = True
                return f"BEGIN ISOLATION LEVEL {self.pick('READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ')}"
            if r < 0.83:
                return f"VACUUM {self.pick('p', 'c', 'd')}"
            return self.statement()
        if r < 0.09:
            return self.pick("COMMIT", "COMMIT", "ROLLBACK")
        if r < 0.16 and len(self.savepoints) < 3:
            self.savepoints.append(f"s{len(self.savepoints)}")
            return f"SAVEPOINT {self.savepoints[-1]}"
        if r < 0.24 and self.savepoints:
            if self.random.random() < 0.3:
                at = self.random.randrange(len(self.savepoints))
                name = self.savepoints[at]
                self.savepoints = self.savepoints[:at]
                return f"RELEASE {name}"
            return self.rollback_to()
        if r < 0.31:
            return self.cursor()
        if r < 0.33:
            return f"SET CONSTRAINTS ALL {self.pick('IMMEDIATE', 'DEFERRED')}"
        return self.statement()

    def rollback_to(self):
        at = self.random.randrange(len(self.savepoints))
        self.savepoints = self.savepoints[:at + 1]
        self.cursors = {}
        return f"ROLLBACK TO {self.savepoints[at]}"

    def key(self):
        return self.hot if self.random.random() < 0.5 else self.random.randint(1, KEYS)

    def condition(self):
        a, b = self.key(), self.key()
        return self.pick(f"id = {a}", f"id = {a}", f"id = {a}", f"id IN ({min(a, b)}, {max(a, b)})", f"id BETWEEN {min(a, b)} AND {max(a, b)}",
                         f"id = {a} AND n < {self.random.randint(0, 3)}", "id > 0 AND n % 2 = 0")

    def parents(self):
        return self.pick(self.condition(), self.condition(), f"u = {self.key()}", f"g = {self.random.randint(0, 1)}",
                         f"id IN (SELECT p FROM c WHERE id = {self.key()})", f"id = {self.key()} AND EXISTS (SELECT FROM c WHERE c.p = p.id)")

    # --- statements

    def statement(self):
        return self.random.choices(self.KINDS, self.WEIGHTS)[0](self)

    def mode(self):
        return "FOR " + self.pick("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE")

    def how(self):
        return self.pick("", "", "", " NOWAIT", " SKIP LOCKED")

    def lock(self):
        table = self.pick("p", "p", "c", "d")
        if self.random.random() < 0.15:
            return f"SELECT p.id, p.n, c.id, c.n FROM p JOIN c ON c.p = p.id WHERE p.id = {self.key()} ORDER BY c.id {self.mode()}" \
                   f"{self.pick('', ' OF p', ' OF c')}{self.how()}"
        if self.random.random() < 0.1:
            return f"SELECT id, n FROM {table} WHERE id > {self.key() - 2} ORDER BY id LIMIT {self.pick(1, 2)} {self.mode()}{self.how()}"
        where = self.parents() if table == "p" else self.condition()
        return f"SELECT id, n FROM {table} WHERE {where} ORDER BY id {self.mode()}{self.how()}"

    def select(self):
        return self.pick("SELECT * FROM p ORDER BY id", "SELECT * FROM c ORDER BY id", "SELECT * FROM d ORDER BY id", "SELECT count(*), sum(n) FROM p",
                         f"SELECT * FROM p WHERE {self.parents()} ORDER BY id", f"SELECT * FROM p WHERE u = {self.key()}",
                         "SELECT p.id, c.id, c.n FROM p LEFT JOIN c ON c.p = p.id ORDER BY 1, 2", "SELECT what FROM log ORDER BY what")

    def insert_parent(self):
        key = self.key()
        conflict = self.pick("", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING", " ON CONFLICT (u) DO NOTHING",
                             " ON CONFLICT (id) DO UPDATE SET n = p.n + 10", " ON CONFLICT (u) DO UPDATE SET n = p.n + 100, g = excluded.g",
                             f" ON CONFLICT (id) DO UPDATE SET u = excluded.u WHERE p.n < {self.random.randint(0, 2)}",
                             " ON CONFLICT (id) DO UPDATE SET id = p.id + 1")
        rows = f"({key}, {self.pick(key, key, self.key(), 'NULL')}, {self.random.randint(0, 1)}, {self.random.randint(0, 3)})"
        if self.random.random() < 0.2:
            rows += f", ({key % KEYS + 1}, {self.pick(key % KEYS + 1, self.key())}, 0, 0)"
        return f"INSERT INTO p VALUES {rows}{conflict} RETURNING *"

    def insert_copy(self):
        return f"INSERT INTO p SELECT id + {self.pick(1, 2)}, u + {self.pick(1, 2)}, g, n FROM p WHERE {self.condition()} ORDER BY id" \
               f"{self.pick('', ' ON CONFLICT DO NOTHING', ' ON CONFLICT (id) DO UPDATE SET n = p.n + excluded.n')} RETURNING id, n"

    def update_parent(self):
        change = self.pick("n = n + 1", "n = n + 1", "n = n * 2", "g = 1 - g", f"u = {self.key()}", "u = u + 1", f"id = {self.key()}",
                           "n = (SELECT count(*) FROM c WHERE c.p = p.id)", "n = (SELECT sum(n) FROM p)", "u = u", "id = id")
        return f"UPDATE p SET {change} WHERE {self.parents()} RETURNING *"

    def update_join(self):
        return self.pick(f"UPDATE p SET n = p.n + c.n + 1 FROM c WHERE c.p = p.id AND c.id = {self.key()} RETURNING p.id, p.n, c.n",
                         f"UPDATE c SET n = c.n + p.n FROM p WHERE c.p = p.id AND p.id = {self.key()} RETURNING c.id, c.n, p.n",
                         f"DELETE FROM c USING p WHERE c.p = p.id AND p.n < {self.pick(1, 2)} AND p.id = {self.key()} RETURNING c.id, p.n",
                         f"WITH x AS (SELECT id, n FROM p WHERE {self.condition()} ORDER BY id {self.mode()}) UPDATE p SET n = x.n + 1 FROM x WHERE p.id = x.id"
                         " RETURNING p.id, p.n",
                         f"WITH x AS (UPDATE p SET n = n + 1 WHERE id = {self.key()} RETURNING id) UPDATE c SET n = c.n + 1 FROM x WHERE c.p = x.id RETURNING c.id",
                         f"WITH x AS (DELETE FROM c WHERE id = {self.key()} RETURNING p) UPDATE p SET n = -1 FROM x WHERE x.p = p.id RETURNING p.id")

    def delete_parent(self):
        return f"DELETE FROM p WHERE {self.parents()} RETURNING id, n"

    def insert_child(self):
        conflict = self.pick("", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO UPDATE SET n = c.n + 1",
                             " ON CONFLICT (id) DO UPDATE SET p = excluded.p, q = excluded.q")
        return f"INSERT INTO c VALUES ({self.key()}, {self.pick(self.key(), self.key(), 'NULL')}, {self.pick(self.key(), 'NULL')}, 0){conflict} RETURNING *"

    def change_child(self):
        return self.pick(f"UPDATE c SET n = n + 1 WHERE {self.condition()} RETURNING *", f"UPDATE c SET p = {self.pick('NULL', self.key())} WHERE id = {self.key()}"
                         " RETURNING *", f"UPDATE c SET q = {self.pick('NULL', self.key())} WHERE id = {self.key()} RETURNING *",
                         f"DELETE FROM c WHERE {self.condition()} RETURNING *", f"UPDATE c SET id = {self.key()} WHERE id = {self.key()} RETURNING *",
                         f"DELETE FROM c WHERE p = {self.key()} RETURNING id")

    def deferrable(self):
        return self.pick(f"INSERT INTO d VALUES ({self.key()}, {self.key()}, 0) RETURNING *", f"UPDATE d SET id = id + 1 WHERE {self.condition()} RETURNING *",
                         f"UPDATE d SET v = v + 1 WHERE {self.condition()} RETURNING *", f"UPDATE d SET id = {self.key()} WHERE id = {self.key()} RETURNING *",
                         f"DELETE FROM d WHERE {self.condition()} RETURNING *", f"UPDATE d SET n = n + 1 WHERE {self.condition()} RETURNING *",
                         f"UPDATE d SET v = {self.key()} WHERE id = {self.key()} RETURNING *")

    def merge(self):
        keys = sorted({self.key(), self.key()})
        rows = ", ".join(f"({key}, {self.random.randint(0, 3)})" for key in keys)
        return (f"MERGE INTO p USING (VALUES {rows}) s (id, n) ON s.id = p.id WHEN MATCHED AND p.n < {self.random.randint(-1, 2)} THEN DELETE"
                " WHEN MATCHED THEN UPDATE SET n = p.n + s.n WHEN NOT MATCHED AND s.n > 0 THEN INSERT VALUES (s.id, s.id, 0, s.n)"
                " WHEN NOT MATCHED THEN DO NOTHING")

    def block(self):
        fails = self.pick("", " PERFORM 1 / 0;")
        return (f"DO $$ DECLARE k int; BEGIN {self.simple()}; BEGIN {self.simple()}; {self.simple()};{fails} EXCEPTION WHEN unique_violation OR"
                " division_by_zero OR foreign_key_violation OR lock_not_available OR serialization_failure THEN"
                f" RAISE NOTICE '%', SQLSTATE; {self.simple()}; END; {self.simple()}; END $$")

    def simple(self):
        key = self.key()
        return self.pick(f"UPDATE p SET n = n + 1 WHERE id = {key}", f"INSERT INTO p VALUES ({key}, {self.pick(key, self.key())}, 0, 0)",
                         f"DELETE FROM c WHERE id = {key}", f"PERFORM 1 FROM p WHERE id = {key} {self.mode()}{self.pick('', ' NOWAIT')}",
                         f"UPDATE c SET n = n + 1 WHERE id = {key}", f"INSERT INTO d VALUES ({key}, {self.key()}, 0)",
                         f"INSERT INTO p VALUES ({key}, {key}, 0, 0) ON CONFLICT (id) DO UPDATE SET n = p.n + 1",
                         f"SELECT n INTO k FROM p WHERE id = {key}; RAISE NOTICE 'n is %', k", f"UPDATE p SET u = {self.key()} WHERE id = {key}")

    def cursor(self):
        if not self.cursors or (len(self.cursors) < 2 and self.random.random() < 0.3):
            self.count += 1
            name = f"c{self.count}"
            kind = self.pick("ordered", "one", "locked")
            self.cursors[name] = kind
            query = {"ordered": f"SELECT id, n FROM p WHERE id > {self.key() - 3} ORDER BY id", "one": f"SELECT * FROM p WHERE id = {self.key()}",
                     "locked": f"SELECT id, n FROM p WHERE {self.condition()} ORDER BY id {self.mode()}"}[kind]
            return f"DECLARE {name} CURSOR FOR {query}"
        name = self.random.choice(sorted(self.cursors))
        if self.random.random() < 0.1:
            del self.cursors[name]
            return f"CLOSE {name}"
        if self.cursors[name] != "ordered" and self.random.random() < 0.5:
            return self.pick(f"UPDATE p SET n = n + 1 WHERE CURRENT OF {name} RETURNING *", f"DELETE FROM p WHERE CURRENT OF {name} RETURNING *",
                             f"UPDATE p SET u = u + 1 WHERE CURRENT OF {name} RETURNING *")
        return f"FETCH {self.pick('1', '1', '2', 'ALL')} FROM {name}"

    KINDS = [lock, select, insert_parent, insert_copy, update_parent, update_join, delete_parent, insert_child, change_child, deferrable, merge, block]
    WEIGHTS = [16, 8, 10, 2, 16, 5, 6, 9, 8, 7, 3, 6]
