"""All that read gcl tables for one statement read at one time; and a transaction that reads nothing holds nothing back."""
import pathlib
import re
import subprocess
import tempfile
import unittest

from harness import GO_ON, LOAD_MAX, STAND_STILL, STAND_STILL_AGAIN, Cluster, Session, SqlError, eventually, holds_back

PARALLEL = """SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off"""


class Snapshots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, settings=("autovacuum=off",)))
        cls.cluster.sql(1, STAND_STILL)
        cls.cluster.sql(1, "CREATE TABLE g (v int) USING gcl")
        cls.cluster.sql(1, """CREATE FUNCTION of_statement() RETURNS bigint STABLE PARALLEL SAFE LANGUAGE plpgsql AS
            $$BEGIN PERFORM stand_still(); RETURN (SELECT count(*) FROM g); END$$""")
        cls.cluster.sql(1, """CREATE FUNCTION of_transaction() RETURNS bigint VOLATILE PARALLEL SAFE LANGUAGE plpgsql AS
            $$BEGIN PERFORM stand_still(); RETURN (SELECT count(*) FROM g); END$$""")
        cls.cluster.sql(1, "CREATE TABLE local (v int) USING heap; INSERT INTO local VALUES (1)")

    def setUp(self):
        self.one, self.two, self.gate = self.cluster.session(1), self.cluster.session(2), self.cluster.session(1)
        self.pid = self.one.pid()
        for session in (self.gate, self.two, self.one):  # `one` first
            self.addCleanup(session.close)
        self.two.run("TRUNCATE g")

    def sleeping_workers(self):
        return self.cluster.sql(1, """SELECT count(*) FROM pg_stat_activity
                                      WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep'""")

    def counted_in_worker(self, function):
        """What a parallel worker counts while a row is committed after the statement began."""
        self.one.run(PARALLEL)
        self.assertTrue(any("Parallel" in row for row in self.one.run(f"EXPLAIN SELECT {function}() FROM local")))
        self.one.send(f"SELECT {function}() FROM local")
        eventually(lambda: self.sleeping_workers() == ["1"])
        self.two.run("INSERT INTO g VALUES (1)")
        return self.with_open_gate(self.one.result)

    def with_open_gate(self, what):
        self.gate.run(GO_ON)
        try:
            return what()
        finally:
            self.gate.run(STAND_STILL_AGAIN)

    def test_a_function_in_a_worker_sees_the_time_of_the_leader_s_statement(self):
        self.assertEqual(["0"], self.counted_in_worker("of_statement"))
        self.assertEqual(["1"], self.with_open_gate(lambda: self.one.run("SELECT of_statement()")))

    def test_a_volatile_function_in_a_worker_sees_its_own_statement_s_time(self):
        self.assertEqual(["1"], self.counted_in_worker("of_transaction"))

    def test_workers_of_repeatable_read_see_the_transaction_s_time(self):
        self.one.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.assertEqual("0", self.one.one("SELECT count(*) FROM g"))
        self.two.run("INSERT INTO g VALUES (1)")
        self.assertEqual(["0"], self.counted_in_worker("of_transaction"))
        self.assertEqual(["0"], self.counted_in_worker("of_statement"))
        self.one.run("COMMIT")
        self.assertEqual("3", self.one.one("SELECT count(*) FROM g"))

    def vacuumed(self):
        """Row versions that a VACUUM on primary 2 removes."""
        said = " ".join(self.two.run("VACUUM VERBOSE g"))
        return int(re.search(r"(\d+) removed", said).group(1))

    def make_garbage(self):
        self.two.run("INSERT INTO g SELECT 7 FROM generate_series(1, 50)")
        self.two.run("DELETE FROM g WHERE v = 7")

    def assert_garbage_goes(self):
        self.make_garbage()
        eventually(lambda: self.vacuumed() == 50)

    def assert_garbage_stays(self):
        self.make_garbage()
        holds_back(self.two, 1, self.pid)
        self.assertEqual(0, self.vacuumed())

    def test_an_idle_transaction_of_read_committed_holds_nothing_back(self):
        self.one.run("BEGIN")
        self.one.run("SELECT count(*) FROM g")
        self.assert_garbage_goes()
        self.one.run("INSERT INTO g VALUES (1)")
        self.assert_garbage_goes()
        self.one.run("SAVEPOINT s")
        self.one.run("DELETE FROM g")
        self.one.run("ROLLBACK TO s")
        self.assert_garbage_goes()
        self.assertEqual("1", self.one.one("SELECT count(*) FROM g"))
        self.one.run("COMMIT")

    def test_copy_counts_though_it_runs_no_query(self):
        self.one.run("CREATE TABLE IF NOT EXISTS copied (id int PRIMARY KEY) USING gcl")
        gate = f"{self.cluster.dir}/copy_goes_on"
        self.addCleanup(pathlib.Path(gate).touch)
        self.one.send(f"COPY copied FROM PROGRAM 'seq 1 60000; while ! test -e {gate}; do sleep 0.1; done'")
        eventually(lambda: int(self.cluster.sql(1, "SELECT coalesce(max(tuples_processed), 0) FROM pg_stat_progress_copy")[0])
                   > 2000)
        self.assert_garbage_stays()
        pathlib.Path(gate).touch()
        self.one.result()
        eventually(lambda: self.vacuumed() == 50)

    def test_analyze_counts_though_it_scans_without_a_snapshot(self):
        self.one.run("CREATE TABLE sampled (v int) USING gcl; INSERT INTO sampled SELECT generate_series(1, 100);"
                     "CREATE FUNCTION slow(v int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM public.stand_still(); RETURN v; END'")
        self.with_open_gate(lambda: self.one.run("CREATE INDEX ON sampled (slow(v))"))
        self.one.send("ANALYZE sampled")
        eventually(lambda: self.cluster.sql(1, "SELECT phase FROM pg_stat_progress_analyze") == ["computing statistics"])
        self.assert_garbage_stays()
        self.with_open_gate(self.one.result)
        eventually(lambda: self.vacuumed() == 50)

    def test_a_stable_function_of_a_cursor_sees_its_time(self):
        self.one.run("DELETE FROM g; CREATE FUNCTION counted() RETURNS bigint STABLE LANGUAGE plpgsql AS"
                     " 'BEGIN RETURN (SELECT count(*) FROM g); END'")
        self.one.run("BEGIN; DECLARE c CURSOR FOR SELECT counted()")
        self.two.run("INSERT INTO g VALUES (1)")
        self.assertEqual("0", self.one.one("FETCH c"))
        self.assertEqual("1", self.one.one("SELECT counted()"))
        self.one.run("COMMIT; DROP FUNCTION counted()")

    def test_an_open_cursor_and_repeatable_read_hold_back_what_they_may_read(self):
        self.two.run("INSERT INTO g SELECT i FROM generate_series(1, 5) i")
        for begin, read in (("BEGIN", "DECLARE c CURSOR FOR SELECT * FROM g"),
                            ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM g")):
            self.one.run(begin)
            self.one.run(read)
            self.one.run("SELECT 1")
            self.assert_garbage_stays()
            self.one.run("COMMIT")
            eventually(lambda: self.vacuumed() == 50)


class Exported(unittest.TestCase):
    """pg_export_snapshot() and SET TRANSACTION SNAPSHOT."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, settings=("autovacuum=off", "wal_level=logical")))
        cls.cluster.sql(1, "CREATE TABLE g (v int) USING gcl; CREATE TABLE h (v int) USING heap")

    def setUp(self):
        self.one, self.two, self.other = self.cluster.session(1), self.cluster.session(2), self.cluster.session(1)
        for session in (self.other, self.two, self.one):
            self.addCleanup(session.close)
        self.one.run("TRUNCATE g; TRUNCATE h; INSERT INTO g VALUES (1); INSERT INTO h VALUES (1)")

    def exported(self, session, level="REPEATABLE READ"):
        session.run(f"BEGIN ISOLATION LEVEL {level}")
        return session.one("SELECT pg_export_snapshot()")

    def imported(self, session, name, level="REPEATABLE READ"):
        session.run(f"BEGIN ISOLATION LEVEL {level}; SET TRANSACTION SNAPSHOT '{name}'")

    def refused(self, state, pattern, session, sql):
        with self.assertRaises(SqlError) as caught:
            session.run(sql)
        self.assertEqual(state, caught.exception.state)
        said = "\n".join(session.collected)
        self.assertRegex(said, pattern)
        session.run("ROLLBACK")

    def test_the_importer_sees_what_the_exporter_sees(self):
        for level in ("REPEATABLE READ", "READ COMMITTED"):
            with self.subTest(level):
                name = self.exported(self.one, level)
                self.two.run("INSERT INTO g VALUES (2); DELETE FROM g WHERE v = 1")
                self.cluster.sql(1, "INSERT INTO h VALUES (2); DELETE FROM h WHERE v = 1")
                self.imported(self.other, name)
                self.assertEqual(["g|1", "h|1"], self.other.run("SELECT 'g', v FROM g UNION ALL SELECT 'h', v FROM h"))
                self.assertEqual(["1"], self.other.run("COPY g TO STDOUT"))
                # What it saw can be handed on.
                third = self.cluster.session(1)
                self.addCleanup(third.close)
                self.imported(third, self.other.one("SELECT pg_export_snapshot()"))
                self.one.run("COMMIT")
                self.other.run("COMMIT")
                self.assertEqual("1", third.one("SELECT v FROM g"))
                third.run("COMMIT")
                self.assertEqual("2", self.other.one("SELECT v FROM g"))
                self.one.run("TRUNCATE g; TRUNCATE h; INSERT INTO g VALUES (1); INSERT INTO h VALUES (1)")

    def test_each_that_a_transaction_exports_has_its_own_time(self):
        first = self.exported(self.one, "READ COMMITTED")
        self.two.run("INSERT INTO g VALUES (2)")
        second = self.one.one("SELECT pg_export_snapshot()")
        self.two.run("INSERT INTO g VALUES (3)")
        for name, rows in ((first, "1"), (second, "2")):
            self.imported(self.other, name)
            self.assertEqual(rows, self.other.one("SELECT count(*) FROM g"))
            self.other.run("COMMIT")
        self.one.run("COMMIT")

    def test_what_the_exporter_itself_has_changed_is_not_seen(self):
        self.one.run("BEGIN; INSERT INTO g VALUES (2); INSERT INTO h VALUES (2)")
        name = self.one.one("SELECT pg_export_snapshot()")
        self.imported(self.other, name)
        self.one.run("COMMIT")
        self.assertEqual("1|1", self.other.one("SELECT (SELECT count(*) FROM g), (SELECT count(*) FROM h)"))

    def test_the_importer_alone_keeps_what_it_sees(self):
        self.one.run("INSERT INTO g SELECT 7 FROM generate_series(1, 50)")
        importer = self.other.pid()
        self.imported(self.other, self.exported(self.one))
        self.one.run("COMMIT")
        self.two.run("DELETE FROM g WHERE v = 7")
        self.two.run("INSERT INTO g VALUES (8)")
        removed = lambda: int(re.search(r"(\d+) removed", " ".join(self.two.run("VACUUM VERBOSE g"))).group(1))
        holds_back(self.two, 1, importer)
        self.assertEqual(0, removed())
        self.assertEqual("51", self.other.one("SELECT count(*) FROM g"))
        self.other.run("COMMIT")
        eventually(lambda: removed() == 50)

    def test_an_exporter_that_has_ended_and_what_was_never_exported_are_the_server_s_errors(self):
        name = self.exported(self.one)
        self.one.run("COMMIT")
        for unknown in (name, "00000003-0000001B-1", "../pg_snapshots/x", "1-2-3-"):
            self.other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self.refused("22023", "invalid snapshot identifier", self.other, f"SET TRANSACTION SNAPSHOT '{unknown}'")
        name = self.exported(self.one)
        self.other.run("BEGIN")
        self.refused("0A000", "must have isolation level", self.other, f"SET TRANSACTION SNAPSHOT '{name}'")
        self.other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        self.refused("25001", "before any query", self.other, f"SET TRANSACTION SNAPSHOT '{name}'")
        self.one.run("SAVEPOINT s")
        self.refused("25001", "subtransaction", self.one, "SELECT pg_export_snapshot()")

    def test_another_primary_s_is_refused(self):
        name = self.exported(self.one)
        self.two.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.refused("22023", r"is another primary's[\s\S]*exported by primary 1; this is primary 2[\s\S]*in a session of primary 1",
                     self.two, f"SET TRANSACTION SNAPSHOT '{name}'")

    def test_one_without_a_time_reads_no_gcl_table(self):
        name = self.exported(self.one, "SERIALIZABLE")
        self.imported(self.other, name)
        self.assertEqual("1", self.other.one("SELECT count(*) FROM h"))
        self.refused("55000", "snapshot that this transaction has imported", self.other, "SELECT * FROM g")
        self.imported(self.other, name, "SERIALIZABLE")
        self.assertEqual("1", self.other.one("SELECT count(*) FROM h"))
        self.other.run("COMMIT")
        slot = Session(self.cluster.dsn(1) + " replication=database")
        self.addCleanup(slot.close)
        name = slot.one("CREATE_REPLICATION_SLOT of_test TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT").split("|")[2]
        self.imported(self.other, name)
        self.assertEqual("1", self.other.one("SELECT count(*) FROM h"))
        self.refused("55000", "snapshot that this transaction has imported", self.other, "SELECT * FROM g")

    def test_where_there_is_nothing_of_gcl(self):
        self.one.run("CREATE DATABASE without; CREATE DATABASE of_c LOCALE 'C' TEMPLATE template0")
        self.addCleanup(lambda: self.cluster.sql(1, "DROP DATABASE without"))
        self.addCleanup(lambda: self.cluster.sql(1, "DROP DATABASE of_c"))
        for database in ("without", "of_c"):
            with self.subTest(database):
                for session in (self.one, self.other):
                    session.run(f"\\c {database}")
                self.one.run("CREATE TABLE h (v int); INSERT INTO h VALUES (1)")
                name = self.exported(self.one)
                self.imported(self.other, name)
                self.one.run("INSERT INTO h VALUES (2); COMMIT")
                self.assertEqual("1", self.other.one("SELECT count(*) FROM h"))
                self.other.run("COMMIT")
        for session in (self.one, self.other):
            session.run("\\c postgres")


TABLES = ("alpha", "beta", "gamma", "local")
MOVE = """CREATE PROCEDURE move(mine int) LANGUAGE plpgsql AS $$BEGIN
  WHILE EXISTS (SELECT FROM going) LOOP
    {}
    COMMIT;
  END LOOP; END$$"""


class Dumped(unittest.TestCase):
    def test_pg_dump_of_several_jobs_is_one_snapshot(self):
        """Rows of tables of both kinds are changed together; a dump that several sessions made of them has them together."""
        with Cluster(primaries=2) as cluster:
            one = cluster.session(1)
            for table in TABLES:
                one.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v int) USING {'heap' if table == 'local' else 'gcl'};"
                        f"INSERT INTO {table} SELECT i, 0 FROM generate_series(1, 8) i")
            one.run("CREATE TABLE going () USING gcl; INSERT INTO going DEFAULT VALUES")
            # The heap table is changed by primary 1 alone, and the first half of the rows is its own.
            changes = [f"UPDATE {table} SET v = v + 1 WHERE id = mine;" for table in TABLES]
            one.run(MOVE.format(" ".join(changes[:3] + ["IF mine <= 4 THEN", changes[3], "END IF;"])))
            movers = [cluster.session(1 + i // 4) for i in range(8)]
            for i, mover in enumerate(movers, 1):
                mover.send(f"CALL move({i})")
            try:
                for _ in range(3):
                    with tempfile.TemporaryDirectory() as directory:
                        self.assert_one_snapshot(cluster, f"{directory}/dump")
            finally:
                one.run("DELETE FROM going")
                for mover in movers:
                    mover.result()
            self.assertGreater(int(one.one("SELECT min(v) FROM alpha")), 3)

    def assert_one_snapshot(self, cluster, directory):
        subprocess.run(["pg_dump", "-j", "4", "-Fd", "-f", directory, "-d", cluster.dsn(1)], check=True, timeout=120)
        text = subprocess.run(["pg_restore", "-f", "-", directory], check=True, timeout=60, capture_output=True, text=True).stdout
        rows = {table: dict(line.split("\t") for line in re.search(rf"COPY public.{table} .*?\n([\s\S]*?)\n\\\.", text).group(1).splitlines())
                for table in TABLES}
        self.assertEqual(8, len(rows["alpha"]))
        self.assertEqual(rows["alpha"], rows["beta"])
        self.assertEqual(rows["alpha"], rows["gamma"])
        self.assertEqual([rows["alpha"][str(i)] for i in range(1, 5)], [rows["local"][str(i)] for i in range(1, 5)])


# What transactions change together, or one after the other (row 4), is not so: each is a query, or several of one snapshot.
TORN = "{} - {} NOT IN (0, CASE id WHEN 4 THEN 1 ELSE 0 END)"
BOTH_AT_ONCE = f"SELECT 'torn', id, h.v AS heap, g.v AS gcl FROM h JOIN g USING (id) WHERE {TORN.format('h.v', 'g.v')}"
HEAP_FIRST = f"SELECT 'torn', id, v, g_now(id) FROM h WHERE {TORN.format('v', 'g_now(id)')}"
GCL_FIRST = f"SELECT 'torn', id, v, h_now(id) FROM g WHERE {TORN.format('h_now(id)', 'v')}"
CREATED = f"CREATE TEMP TABLE seen AS {BOTH_AT_ONCE}; TABLE seen; DROP TABLE seen"
COPIED = f"COPY ({BOTH_AT_ONCE}) TO STDOUT"
PREPARED = f"PREPARE p AS {BOTH_AT_ONCE}; EXECUTE p; EXECUTE p; DEALLOCATE p"
HELD_OPEN = f"BEGIN; DECLARE c CURSOR FOR {BOTH_AT_ONCE}; SELECT 1 FROM g WHERE false; FETCH ALL c; COMMIT"
IN_WORKERS = f"BEGIN; {PARALLEL.replace('SET ', 'SET LOCAL ')}; {BOTH_AT_ONCE}; COMMIT"
TWO_READS = """BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT sum(v) AS seen FROM {} WHERE id < 4 \\gset
SELECT 'torn', :seen, sum(v) FROM {} WHERE id < 4 HAVING sum(v) <> :seen; COMMIT"""


class BothKinds(unittest.TestCase):
    """What transactions change of heap and gcl tables is seen at one time."""

    @classmethod
    def setUpClass(cls):
        # Without VACUUM every version that the writers leave makes the readers slower.
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, settings=("autovacuum_naptime=1s", "autovacuum_vacuum_cost_delay=0")))
        cls.one = cls.cluster.session(1)
        cls.one.run("CREATE TABLE logged (id int PRIMARY KEY, v int) USING heap; CREATE UNLOGGED TABLE unlogged (LIKE logged)")
        cls.one.run("CREATE TABLE g (id int PRIMARY KEY, v int) USING gcl; INSERT INTO g SELECT i, 0 FROM generate_series(1, 4) i")
        cls.one.run("INSERT INTO logged SELECT * FROM g WHERE id <> 3; INSERT INTO unlogged VALUES (3, 0)")
        cls.one.run("CREATE VIEW h AS TABLE logged UNION ALL TABLE unlogged; CREATE TABLE going () USING heap")
        for table in "hg":
            cls.one.run(f"CREATE FUNCTION {table}_now(wanted int) RETURNS int STABLE LANGUAGE plpgsql AS"
                        f" 'BEGIN RETURN (SELECT v FROM {table} WHERE id = wanted); END'")
        for name, change in (("write", "UPDATE {0} SET v = v + 1 WHERE id = {1}; UPDATE g SET v = v + 1 WHERE id = {1}"),
                             ("write_in_order", "UPDATE {0} SET v = v + 1 WHERE id = {1}; COMMIT; UPDATE g SET v = v + 1 WHERE id = {1}")):
            for row, table in enumerate(("logged", "logged", "unlogged", "logged"), 1):
                cls.one.run(f"CREATE PROCEDURE {name}_{row}() LANGUAGE plpgsql AS $$BEGIN WHILE EXISTS (SELECT FROM going)"
                            f" LOOP {change.format(table, row)}; COMMIT; END LOOP; END$$")

    def setUp(self):
        self.one.run("INSERT INTO going DEFAULT VALUES")
        before = int(self.one.one("SELECT sum(v) FROM g"))
        writers = [self.cluster.session(1) for _ in range(4)]
        for writer, work in zip(writers, ("write_1", "write_2", "write_3", "write_in_order_4")):
            writer.send(f"CALL {work}()")

        def end():
            try:
                eventually(lambda: int(self.one.one("SELECT sum(v) FROM g")) - before > 500, LOAD_MAX)
            finally:
                self.one.run("DELETE FROM going")
                for writer in writers:
                    writer.result()
                    writer.close()
        self.addCleanup(end)

    def assert_whole(self, script, times):
        reader = self.cluster.session(1)
        self.addCleanup(reader.close)
        with self.subTest(script):
            self.assertEqual([], reader.run(f"{script};\n" * times, 120)[:5])

    def test_by_queries_of_read_committed(self):
        for query in (BOTH_AT_ONCE, HEAP_FIRST, GCL_FIRST, CREATED, COPIED, PREPARED, HELD_OPEN):
            self.assert_whole(query, 100)
        self.assert_whole(IN_WORKERS, 10)  # each starts processes

    def test_by_transactions_of_repeatable_read(self):
        for first, second in ("hg", "gh"):
            self.assert_whole(TWO_READS.format(first, second), 200)

    def test_by_the_first_query_of_a_session(self):
        for _ in range(20):
            self.assert_whole(HEAP_FIRST, 1)


class OneKind(unittest.TestCase):
    def test_transactions_of_one_kind_share_nothing(self):
        """Once some changed both, a session that calls a function takes a timestamp, and so has a session in the pool."""
        with Cluster(primaries=2, settings=("autovacuum=off",)) as cluster:
            # On primary 2: a session that creates a table changes both, for the catalogs are the server's own.
            cluster.sql(1, "CREATE TABLE g (v int) USING gcl; CREATE FUNCTION reads_nothing() RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'")
            one, look, stranger = (cluster.session(2) for _ in range(3))
            one.run("CREATE TABLE h (v int) USING heap; INSERT INTO g VALUES (0)")
            sessions = "SELECT held FROM gcl_stat_held WHERE what = 'sessions of backends'"
            before = int(look.one(sessions))
            for i in range(20):
                one.run(f"BEGIN; INSERT INTO g VALUES ({i}); SAVEPOINT s; UPDATE g SET v = v + 1; COMMIT")
                one.run(f"BEGIN; INSERT INTO h VALUES ({i}); SAVEPOINT s; UPDATE h SET v = v + 1; COMMIT")
            stranger.run("SELECT reads_nothing()")
            self.assertEqual(before, int(look.one(sessions)))
            one.run("BEGIN; INSERT INTO h VALUES (1); INSERT INTO g VALUES (1); COMMIT")
            stranger.run("SELECT reads_nothing()")
            self.assertEqual(before + 1, int(look.one(sessions)))


class OldSnapshot(unittest.TestCase):
    def test_does_not_stop_writers_when_the_status_log_went_round(self):
        # The smallest pool: its status log has 65536 words per primary.
        with Cluster(primaries=2, pool="64MB", cache="8MB", settings=("autovacuum=off",)) as cluster:
            one, two = cluster.session(1), cluster.session(2)
            one.run("CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t SELECT i, 0 FROM generate_series(1, 9) i")
            one.run("CREATE TABLE s (v int) USING gcl")
            one.run("""CREATE PROCEDURE burn(ids int) LANGUAGE plpgsql AS $$BEGIN
                FOR i IN 1..ids / 100 LOOP
                  UPDATE t SET v = i WHERE id = 1 + i % 9;
                  FOR j IN 1..99 LOOP  -- an id for each savepoint
                    BEGIN INSERT INTO s VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END;
                  END LOOP;
                  IF i % 10 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
                END LOOP; END$$""")
            two.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self.assertEqual("0", two.one("SELECT sum(v) FROM t"))
            one.run("CALL burn(80000)", 120)
            self.assertEqual("9|0", two.one("SELECT count(*), sum(v) FROM t"))
            self.assertEqual("0", two.one("SELECT count(*) FROM s"))
            two.run("COMMIT")
            self.assertEqual(str(720 * 99), two.one("SELECT count(*) FROM s"))
            now = one.one("SELECT sum(v) FROM t")
            self.assertEqual(now, two.one("SELECT sum(v) FROM t"))
            one.run("CALL burn(2000)", 120)
            one.run("VACUUM t")
            self.assertEqual("9", two.one("SELECT count(*) FROM t"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
