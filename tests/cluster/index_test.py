"""A btree index on a gcl table answers as PostgreSQL's own: the same questions are asked of a heap table beside it."""
import random
import unittest

from harness import LONGER, SEED, Cluster, SqlError

INDEXES = 5 * LONGER
QUESTIONS = 10  # per index
TYPES = {"a": "int", "b": "text", "c": "bigint"}


class Questions:
    """Random indexes and WHERE clauses over columns a int, b text, c bigint; small domains, many nulls."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, column, cast=True):
        if column == "b":
            return "'%s'" % self.random.choice(["", "a", "b", "bb", "c", "z"])
        number = str(self.random.randint(-1, 9))
        return number + (self.random.choice(["", "::bigint", "::smallint"]) if cast else "")

    def condition(self):
        column, kind = self.random.choice("aabc"), self.random.random()
        if kind < 0.5:
            return f"{column} {self.random.choice(['=', '<', '<=', '>', '>='])} {self.value(column)}"
        if kind < 0.66:
            return f"{column} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind < 0.85:
            values = [self.value(column, cast=False) for _ in range(self.random.randint(1, 4))]
            values += ["NULL"] if self.random.random() < 0.2 else []
            operator = self.random.choice(["=", "=", "=", "<", ">="])
            return f"{column} {operator} ANY (ARRAY[{','.join(values)}]::{TYPES[column]}[])"
        columns = self.random.choice(["ab", "ac", "abc", "bc"])
        row = ", ".join(f"{self.value(c, cast=False)}::{TYPES[c]}" for c in columns)
        return f"({', '.join(columns)}) {self.random.choice(['<', '<=', '>', '>='])} ({row})"

    def where(self):
        conditions = [self.condition() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4]))]
        return " WHERE " + " AND ".join(conditions) if conditions else ""

    def index(self):
        """(columns, their orders, INCLUDE clause)"""
        columns = self.random.sample("abc", self.random.randint(1, 3))
        orders = [(self.random.random() < 0.4, self.random.random() < 0.5) for _ in columns]
        rest = [c for c in "abcd" if c not in columns]
        include = f" INCLUDE ({', '.join(rest)})" if self.random.random() < 0.4 else ""
        return columns, orders, include


def order_by(columns, orders, backward=False):
    """`orders`: (descending, nulls first) of each column."""
    return ", ".join(f"{c} {'DESC' if desc != backward else 'ASC'} NULLS {'FIRST' if first != backward else 'LAST'}"
                     for c, (desc, first) in zip(columns, orders))


class Index(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))

    def setUp(self):
        self.one = self.cluster.session(1)

    def both(self, session, question):
        """Asks the gcl table and the heap table; the answers must be equal."""
        heap, gcl = (session.run(question.format(t=t)) for t in ("h", "g"))
        self.assertEqual(heap, gcl, question)
        return gcl

    def test_agrees_with_heap(self):
        one, ask = self.one, Questions(20 + SEED)
        one.run("CREATE TABLE h (a int, b text, c bigint, d int)")
        one.run("CREATE TABLE g (a int, b text, c bigint, d int) USING gcl")
        one.run("INSERT INTO h SELECT nullif(i * 7 % 10, 9), nullif((ARRAY['', 'a', 'b', 'bb', 'c', 'x'])[1 + i * 5 % 6], 'x'),"
                " nullif(i * 3 % 8, 7), i FROM generate_series(1, 400) i")
        one.run("CREATE TEMP TABLE rows AS SELECT * FROM h")
        rows = one.run("SELECT format('(%L, %L, %L, %s)', a, b, c, d) FROM rows")
        one.run(f"INSERT INTO g SELECT a::int, b, c::bigint, d FROM (VALUES {', '.join(rows)}) v (a, b, c, d)")
        one.run("ANALYZE h")
        one.run("ANALYZE g")
        for n in range(INDEXES):
            columns, orders, include = ask.index()
            for t in "hg":
                one.run(f"CREATE INDEX {t}{n} ON {t} ({order_by(columns, orders)}){include}")
                one.run(f"INSERT INTO {t} SELECT i * 7 % 11 - 1, chr(97 + i % 4), i * 5 % 9, {1000 * n} + i"
                        " FROM generate_series(1, 60) i")
                one.run(f"DELETE FROM {t} WHERE c = {n} AND d % 3 = 1")
                one.run(f"VACUUM {t}")
            for q in range(QUESTIONS):
                self.ask(one, ask.where(), columns, orders, bitmap=q % 4 == 0)
            self.scroll(one, ask.where(), columns, orders)
            for t in "hg":
                one.run(f"DROP INDEX {t}{n}")

    def ask(self, session, where, columns, orders, bitmap):
        plain = "off" if bitmap else "on"
        session.run(f"SET enable_seqscan = off; SET enable_sort = {'on' if bitmap else 'off'};"
                    f"SET enable_bitmapscan = {'on' if bitmap else 'off'}; SET enable_indexscan = {plain};"
                    f"SET enable_indexonlyscan = {plain}")
        self.both(session, "SELECT count(*), sum(d) FROM {t}" + where)
        for backward in (False, True):
            keys = f"SELECT {', '.join(columns)} FROM {{t}}{where} ORDER BY {order_by(columns, orders, backward)}"
            self.both(session, keys)
        self.both(session, keys + " LIMIT 5")
        session.run("SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off")
        same = " AND ".join(f"x.{c} = y.{c}" for c in columns)
        self.both(session, f"SELECT count(*) FROM (SELECT * FROM {{t}}{where} OFFSET 0) x JOIN {{t}} y ON {same}")
        session.run("RESET ALL")

    def scroll(self, session, where, columns, orders):
        """A cursor that turns round."""
        session.run("SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off")
        answers = []
        for t in "hg":
            session.run("BEGIN")
            session.run(f"DECLARE turns SCROLL CURSOR FOR SELECT {', '.join(columns)} FROM {t}{where}"
                        f" ORDER BY {order_by(columns, orders)}")
            answers.append([session.run(f"FETCH {move} FROM turns") for move in
                            ("3", "BACKWARD 1", "20", "BACKWARD 7", "ALL", "BACKWARD 4", "BACKWARD ALL", "2")])
            session.run("COMMIT")
        self.assertEqual(*answers, where)
        session.run("RESET ALL")

    def test_duplicate_is_reported_as_by_heap(self):
        one = self.one
        messages = []
        for am in ("heap", "gcl"):
            one.run(f"CREATE TABLE du (a int, b text, CONSTRAINT same UNIQUE (a, b)) USING {am}")
            one.run("INSERT INTO du VALUES (1, 'x'), (1, NULL), (1, NULL)")  # nulls are distinct
            with self.assertRaises(SqlError) as error:
                one.run("INSERT INTO du VALUES (1, 'x')")
            messages.append(str(error.exception))
            with self.assertRaises(SqlError) as error:
                one.run("CREATE UNIQUE INDEX narrow ON du (a)")
            messages.append(str(error.exception))
            one.run("DROP TABLE du")
        self.assertEqual(messages[:2], messages[2:])
        self.assertTrue(messages[0].startswith("23505"), messages)

    def test_key_is_accepted_once_in_the_cluster(self):
        self.one.run("CREATE TABLE once (k int PRIMARY KEY, node int) USING gcl")
        sessions = [self.cluster.session(k) for k in (1, 2, 3)]
        for k, session in enumerate(sessions):
            # Every primary tries every key, in an order of its own, each in a transaction of its own.
            keys = list(range(200))
            random.Random(k).shuffle(keys)
            session.send("\n".join(f"INSERT INTO once VALUES ({key}, {k});" for key in keys))
        for session in sessions:
            try:
                session.result()
            except SqlError as error:  # the first of the keys that another primary had
                self.assertEqual("23505", error.state)
        for session in sessions:
            self.assertEqual("200|200", session.one("SELECT count(*), count(DISTINCT k) FROM once"))
            session.run("SET enable_seqscan = off")
            self.assertEqual("200", session.one("SELECT count(*) FROM (SELECT k FROM once ORDER BY k) s"))

    def test_insert_waits_for_the_other_primarys_duplicate(self):
        self.one.run("CREATE TABLE waited (k int PRIMARY KEY) USING gcl")
        two = self.cluster.session(2)
        for end, accepted in (("ROLLBACK", True), ("COMMIT", False)):
            self.one.run("BEGIN")
            self.one.run(f"INSERT INTO waited VALUES ({int(accepted)})")
            two.send(f"INSERT INTO waited VALUES ({int(accepted)}) RETURNING k")
            self.assertTrue(two.blocked())
            self.one.run(end)
            if accepted:
                self.assertEqual(["1"], two.result(5))
            else:
                with self.assertRaises(SqlError) as error:
                    two.result(5)
                self.assertEqual("23505", error.exception.state)

    def test_rolled_back_rebuilds_leave_the_old_tree(self):
        one = self.one
        one.run("CREATE TABLE rebuilt (k int PRIMARY KEY) USING gcl")
        one.run("INSERT INTO rebuilt SELECT generate_series(1, 500)")
        one.run("BEGIN")
        one.run("TRUNCATE rebuilt")
        one.run("INSERT INTO rebuilt VALUES (1)")
        one.run("ROLLBACK")
        one.run("SET enable_seqscan = off")
        self.assertEqual("500|125250", one.one("SELECT count(*), sum(k) FROM rebuilt WHERE k > 0"))
        self.assertEqual([["500"]] * 3, self.cluster.everywhere("SELECT count(*) FROM rebuilt"))

    def test_a_million_rows_with_one_key(self):
        self.one.run("CREATE TABLE many (k int, who int) USING gcl; CREATE INDEX many_k ON many (k);"
                     "INSERT INTO many VALUES (6, 0), (8, 0)")
        all_of_it = "SET enable_seqscan = off; SELECT k, who, count(*) FROM many WHERE k BETWEEN 6 AND 8 GROUP BY 1, 2 ORDER BY 1, 2"
        writers = [self.cluster.session(k) for k in (1, 2, 3)]
        for who, writer in enumerate(writers):
            writer.send(f"INSERT INTO many SELECT 7, {who} FROM generate_series(1, 340000)")
        for writer in writers:
            writer.result(200)
        every = ["6|0|1", "7|0|340000", "7|1|340000", "7|2|340000", "8|0|1"]
        self.assertEqual([every] * 3, [writer.run(all_of_it, 200) for writer in writers])
        pages = int(self.one.one("SELECT pg_relation_size('many_k') / 8192"))
        self.one.run("CREATE INDEX many_built ON many (k)", 200)
        self.assertLess(pages, 1.6 * int(self.one.one("SELECT pg_relation_size('many_built') / 8192")))
        self.one.run("DROP INDEX many_built")
        # Two of three rows go, wherever they are among the others.  The second VACUUM gives back the pages that the first emptied.
        self.one.run("DELETE FROM many WHERE who <> 1; VACUUM many; VACUUM many", 200)
        left = ["7|1|340000"]
        self.assertEqual([left] * 3, [writer.run(all_of_it, 200) for writer in writers])
        self.one.run("INSERT INTO many SELECT 7, 9 FROM generate_series(1, 600000)", 200)
        self.assertEqual([left + ["7|9|600000"]] * 3, [writer.run(all_of_it, 200) for writer in writers])
        self.assertLessEqual(int(self.one.one("SELECT pg_relation_size('many_k') / 8192")), pages * 1.1)


if __name__ == "__main__":
    unittest.main()
