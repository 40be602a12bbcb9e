"""gcl_check(): no false alarm while all primaries change tables, and an alarm where a table was damaged."""
import os
import re
import struct
import subprocess
import unittest

from harness import LONGER, Cluster, Load, together

# Keys come in order, go again, and are changed: splits at the end and in the middle, page deletions, chains, rows that
# move, rollbacks, locks of several transactions, values out of line.
LOAD = """
\\set k random(1, 3000)
\\set run random(1, 1000000000)
\\set many random(50, 400)
BEGIN;
INSERT INTO t (run, name, filler) SELECT :run, 'n' || (i % 7), repeat('x', (:k % 500)::int) FROM generate_series(1, :many) i;
SAVEPOINT s;
UPDATE t SET v = v + 1 WHERE run = :run;
ROLLBACK TO s;
UPDATE t SET v = v + 1 WHERE run = :run AND id % 3 = 0;
UPDATE t SET name = 'm' || (id % 5) WHERE run = :run AND id % 5 = 0;
COMMIT;
BEGIN;
SELECT count(*) FROM (SELECT FROM parent WHERE id = :k % 20 FOR KEY SHARE) s;
INSERT INTO child VALUES (:run, :k % 20);
UPDATE parent SET v = v + 1 WHERE id = :k % 20;
END;
UPDATE hot SET v = v + 1, pad = repeat('y', (:k % 100)::int) WHERE id = :k % 30;
BEGIN;
DELETE FROM t WHERE run = :run AND id % 2 = 0;
ROLLBACK;
UPDATE t SET big = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, :many) i) WHERE run = :run AND id % 50 = 1;
DELETE FROM t WHERE run = :run;
DELETE FROM child WHERE id = :run;
"""
TABLES = """
CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run int, name text, v int NOT NULL DEFAULT 0, filler text, big text)
    USING gcl;
CREATE INDEX t_run ON t (run, id) INCLUDE (name);
CREATE INDEX t_name ON t (name);
CREATE INDEX t_few ON t (id) WHERE name LIKE 'm%';
CREATE INDEX t_upper ON t (upper(name), run DESC NULLS LAST);
CREATE TABLE parent (id int PRIMARY KEY, v int NOT NULL) USING gcl;
INSERT INTO parent SELECT i, 0 FROM generate_series(0, 19) i;
CREATE TABLE child (id int, parent int REFERENCES parent) USING gcl;
CREATE INDEX child_id ON child (id);
CREATE TABLE hot (id int PRIMARY KEY, v int, pad text) USING gcl;
INSERT INTO hot SELECT i, 0, '' FROM generate_series(0, 29) i;
"""
NAMES = ("t", "parent", "child", "hot")
CHECKS_MIN = 12
TYPE_AT, HEAP, LEAF = 28, 5, 8  # of a page's header


class NoFalseAlarm(unittest.TestCase):
    PRIMARIES = 3

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=cls.PRIMARIES, cache="16MB"))
        cls.cluster.sql(1, TABLES)

    def check(self, session, name, all_indexed):
        self.assertEqual(session.run(f"SELECT * FROM gcl_check('{name}', {all_indexed})", 120), [], name)

    def test_whatever_the_primaries_do_meanwhile(self):
        script = os.path.join(self.cluster.dir, "load.sql")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LOAD)
        done = {"checks": 0, "vacuums": 0}
        load = Load(20 * LONGER, lambda: min(done["checks"], done["vacuums"]) >= CHECKS_MIN)
        writers = [subprocess.Popen(["pgbench", "-n", "-c", "2", "-T", "3600", "-f", script, "--max-tries=20", self.cluster.dsn(k)],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for k in range(1, self.PRIMARIES + 1)]
        checkers = [self.cluster.session(k) for k in (1, 2)]
        vacuum = self.cluster.session(3)

        def look(session, all_indexed):
            while load.goes_on():
                for name in NAMES:
                    self.check(session, name, all_indexed)
                    done["checks"] += 1

        def clean():
            while load.goes_on():
                for name in NAMES:
                    vacuum.run(f"VACUUM {name}", 120)
                done["vacuums"] += 1

        try:
            errors = together([lambda: look(checkers[0], True), lambda: look(checkers[1], False), clean], load)
            self.assertEqual([writer.poll() for writer in writers], [None] * len(writers), "the load went on to the end")
        finally:
            for writer in writers:
                writer.terminate()
            for writer in writers:
                writer.communicate()
        self.assertEqual(errors, [])
        self.assertGreaterEqual(min(done.values()), CHECKS_MIN, done)
        for name in NAMES:
            for session in checkers:
                self.check(session, name, True)
        print(done)


class Damage(unittest.TestCase):
    """Bytes of the pool are changed while no primary runs."""

    ROWS = 1200

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))
        self.cluster.sql(1, f"""CREATE TABLE d (id int, v text COLLATE "C") USING gcl; CREATE INDEX d_v ON d (v);
            INSERT INTO d SELECT i, 'damage' || to_char(i, 'FM0000') FROM generate_series(1, {self.ROWS}) i""")
        self.assertEqual(self.cluster.sql(2, "SELECT * FROM gcl_check('d', true)"), [])

    @staticmethod
    def value(i):
        text = f"damage{i:04}".encode()
        return bytes([(len(text) + 1) << 1 | 1]) + text  # a short varlena

    def row(self, i):
        return struct.pack("<i", i) + self.value(i)

    def change(self, changes):
        """Each of `changes`: the type of the page, what is there once, and the bytes that it gets, at an offset from there."""
        with open(os.path.join(self.cluster.pool_dir(), "pool"), "r+b") as pool:
            content = pool.read()
            for page_type, pattern, offset, new in changes:
                found = [at.start() for at in re.finditer(pattern, content, re.S)]
                found = [at for at in found if content[at // 8192 * 8192 + TYPE_AT] == page_type]
                self.assertEqual(len(found), 1, (pattern, found))
                pool.seek(found[0] + offset)
                pool.write(new)

    def test_what_was_changed_is_told(self):
        word = struct.Struct("<Q").pack
        rows = [(20, -24, word(4 << 60)),          # a creator word without a meaning
                (30, -24, word(1 << 60 | 10**9)),  # a transaction that never was
                (40, -16, word(9 << 60 | 10**9)),  # the same that updated the row
                (10, 4, b"\xff"),                  # a value longer than its row
                (350, 5, b"D")]                    # another value than its index entry has
        self.cluster.stop()
        self.change([(HEAP, re.escape(self.row(i)), offset, new) for i, offset, new in rows]
                    + [(LEAF, re.escape(self.value(i)), offset, new) for i, offset, new in ((120, 1, b"z"), (1100, 0, b"\xfd"))])
        self.cluster.start()
        told = self.cluster.sql(1, "SELECT relation, sqlstate, block, item, message FROM gcl_check('d', true)")
        self.assertEqual(told[:4], [
            "d|XX001|0|20|creator word 0x4000000000000000 has no meaning",
            "d|XX001|0|30|creating transaction 1000000000 of node 0 has never been assigned",
            "d|XX001|0|40|deleting transaction 1000000000 of node 0 has never been assigned",
            "d|XX001|0|10|attribute 2 at offset 4 with length 127 ends beyond the 15 bytes there are"])
        for expected in (r"d_v\|XX002\|\|\d+\|high key invariant violated: entry is not below its page's high key",
                         r"d_v\|XX002\|\|\d+\|index entry is malformed: attribute 1 at offset 0 with length 126 .*",
                         r"d\|XX001\|0\|\|page, or one that it leads to, cannot be read \(corrupt\)",
                         r"d_v\|XX002\|\|\d+\|index entry has another key than its row \(\d+,\d+\)",
                         r'd_v\|XX002\|\|\|row \(\d+,\d+\) of table "d" lacks its index entry, .*'):
            self.assertTrue([row for row in told if re.fullmatch(expected, row)], (expected, told))
        self.assertEqual(self.cluster.sql(2, "SELECT count(DISTINCT relation) FROM gcl_check('d')"), ["2"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
