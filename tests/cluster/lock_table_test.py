"""LOCK TABLE on one primary is a lock on all, if its mode conflicts with what a statement elsewhere might do."""
import unittest

from harness import Cluster, SqlError, eventually, together

READ, WRITE = "SELECT count(*) FROM t", "UPDATE t SET v = v + 1 WHERE id = 1"


class LockTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))  # it locks tables, too
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl")
        cls.cluster.sql(1, "CREATE TABLE u (id int PRIMARY KEY, v int) USING gcl")
        cls.cluster.sql(1, "INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i")

    def session(self, k, *statements):
        session = self.cluster.session(k)
        self.addCleanup(session.close)
        for statement in statements:
            session.run(statement)
        return session

    def free(self, table="t"):
        """Whether every primary could lock the table now; asked until the answer is yes."""
        def yes():
            for k in (1, 2, 3):
                try:
                    self.cluster.sql(k, f"BEGIN; LOCK TABLE {table} NOWAIT; COMMIT")
                except SqlError as error:
                    self.assertEqual("55P03", error.state)
                    return False
            return True
        eventually(yes)

    def begins_with(self, session, lock):
        """Begins a transaction with a lock, NOWAIT, that nobody else has any more; how many tries that took.  A worker
        that has yet to give up what the last owner had is waited for, for two seconds (ddl_outbox.cpp): one without a
        processor may take longer."""
        tries = []

        def locks():
            tries.append(lock)
            try:
                session.run(f"BEGIN; {lock}")
                return True
            except SqlError as error:
                self.assertEqual("55P03", error.state)
                session.run("ROLLBACK")
                return False

        eventually(locks)
        return len(tries)

    def refused(self, session, sql, state="55P03"):
        with self.assertRaises(SqlError) as caught:
            session.run(sql)
        self.assertEqual(state, caught.exception.state, caught.exception)

    def test_each_mode_stops_what_it_should(self):
        stops = {"SHARE UPDATE EXCLUSIVE": (), "SHARE": (WRITE,), "SHARE ROW EXCLUSIVE": (WRITE,), "EXCLUSIVE": (WRITE,),
                 "ACCESS EXCLUSIVE": (WRITE, READ), "ROW EXCLUSIVE": ()}
        others = {k: self.session(k) for k in (1, 2, 3)}
        for coordinator, (mode, stopped) in enumerate(stops.items()):
            coordinator = coordinator % 3 + 1
            locker = self.session(coordinator, "BEGIN", f"LOCK TABLE t IN {mode} MODE")
            for other in others.values():
                for statement in (READ, WRITE):
                    if statement in stopped:
                        self.refused(other, f"SET lock_timeout = '100ms'; {statement}")
                    else:
                        other.run(f"SET lock_timeout = '25s'; {statement}")
            locker.run("COMMIT")
            for other in others.values():
                eventually(lambda other=other: self.succeeds(other, WRITE))

    def succeeds(self, session, sql):
        try:
            session.run(sql)
            return True
        except SqlError:
            return False

    def test_a_weak_lock_elsewhere_is_waited_for(self):
        writer = self.session(2, "BEGIN", "LOCK TABLE t IN ROW EXCLUSIVE MODE")
        locker = self.session(1, "BEGIN")
        locker.send("LOCK TABLE t IN SHARE MODE")
        self.assertTrue(locker.blocked())
        writer.run("COMMIT")
        locker.result()
        locker.run("COMMIT")

    def test_share_update_exclusive_excludes_itself_everywhere(self):
        one = self.session(1, "BEGIN", "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        two = self.session(2, "BEGIN")
        two.send("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        self.assertTrue(two.blocked())
        one.run("COMMIT")
        two.result()
        two.run("COMMIT")

    def test_nowait(self):
        writer = self.session(2, "BEGIN", WRITE)
        for k in (1, 2, 3):
            locker = self.session(k, "BEGIN")
            self.refused(locker, "LOCK TABLE t IN SHARE MODE NOWAIT")
            locker.run("ROLLBACK")
        self.session(3).run("SET lock_timeout = '25s'; UPDATE t SET v = v + 1 WHERE id = 2")  # nothing is left
        writer.run("COMMIT")
        self.begins_with(self.session(1), "LOCK TABLE t NOWAIT")  # the others may not have heard of the last rollback
        for k in (1, 2, 3):
            self.refused(self.session(k, "BEGIN"), "LOCK TABLE t IN SHARE MODE NOWAIT")

    def test_nowait_succeeds_as_soon_as_the_last_owner_has_ended(self):
        sessions, at_once = [self.session(k) for k in (1, 2, 3)], 0
        for turn in range(60):
            at_once += self.begins_with(sessions[turn % 3], "LOCK TABLE t IN SHARE MODE NOWAIT") == 1
            sessions[turn % 3].run("ROLLBACK" if turn % 4 else "COMMIT")
        self.assertGreaterEqual(at_once, 50)

    def test_lock_timeout(self):
        self.session(3, "BEGIN", WRITE)
        self.refused(self.session(1, "SET lock_timeout = '300ms'", "BEGIN"), "LOCK TABLE t")

    def test_every_end_releases(self):
        for end in ("COMMIT", "ROLLBACK", "ROLLBACK TO s", None):
            locker = self.session(1, "BEGIN", "SAVEPOINT s", "LOCK TABLE t")
            self.refused(self.session(2, "SET lock_timeout = '100ms'"), READ)
            if end:
                locker.run(end)
            else:
                locker.close()
            self.free()

    def test_a_savepoint_releases_only_what_was_locked_in_it(self):
        locker = self.session(1, "BEGIN", "LOCK TABLE u IN SHARE MODE", "SAVEPOINT s", "LOCK TABLE t", "ROLLBACK TO s")
        for k in (1, 2, 3):
            other = self.session(k, "SET lock_timeout = '25s'")
            other.run(WRITE)
            self.refused(other, "SET lock_timeout = '100ms'; INSERT INTO u VALUES (1, 1)")
        locker.run("LOCK TABLE t")  # again, after it was told
        self.refused(self.session(3, "SET lock_timeout = '100ms'"), READ)
        locker.run("COMMIT")
        self.free()
        self.free("u")

    def test_an_exception_block_releases(self):
        locker = self.session(1, "BEGIN")
        locker.run("DO $$ BEGIN LOCK TABLE t; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END $$")
        self.free()
        self.session(2, "BEGIN", WRITE)
        locker.run("DO $$ BEGIN LOCK TABLE t NOWAIT; EXCEPTION WHEN lock_not_available THEN END $$")
        self.session(3).run("SET lock_timeout = '25s'; UPDATE t SET v = v + 1 WHERE id = 2")
        locker.run("SELECT count(*) FROM t")
        locker.run("COMMIT")

    def test_ddl_goes_on_after_a_savepoint(self):
        coordinator = self.session(1, "BEGIN", "CREATE TABLE kept (a int) USING gcl", "SAVEPOINT s", "LOCK TABLE t",
                              "CREATE TABLE dropped (a int) USING gcl", "ROLLBACK TO s", "LOCK TABLE u IN SHARE MODE",
                              "CREATE TABLE kept_too (a int) USING gcl")
        self.session(2).run("SET lock_timeout = '25s';" + WRITE)
        coordinator.run("COMMIT")
        self.assertEqual([["kept", "kept_too"]] * 3, self.cluster.everywhere(
            "SELECT relname FROM pg_class WHERE relname IN ('kept', 'kept_too', 'dropped') ORDER BY 1"))
        self.assertEqual(1, len({answer[0] for answer in self.cluster.everywhere("SELECT gcl_ddl_fingerprint()")}))

    def test_read_only_transactions_lock_too(self):
        locker = self.session(1, "BEGIN READ ONLY", "LOCK TABLE t IN SHARE MODE")
        self.refused(self.session(2, "SET lock_timeout = '100ms'"), WRITE)
        locker.run("COMMIT")
        self.free()

    def test_a_view_gives_no_rights_on_what_it_reads(self):
        self.cluster.sql(1, "CREATE ROLE mallory; GRANT CREATE ON SCHEMA public TO mallory")
        self.cluster.sql(1, "SET ROLE mallory; CREATE VIEW hers AS SELECT * FROM t")
        self.addCleanup(self.cluster.sql, 1, "DROP OWNED BY mallory; DROP ROLE mallory")
        reader = self.session(1, "BEGIN", READ)
        for k in (1, 2, 3):
            mallory = self.session(k, "SET ROLE mallory", "BEGIN")
            self.refused(mallory, "LOCK TABLE hers", "42501")  # and does not queue for it before
            self.session(k).run(READ)
        reader.run("COMMIT")
        self.cluster.sql(2, "GRANT UPDATE ON t TO mallory")
        locker = self.session(3, "SET ROLE mallory", "BEGIN", "LOCK TABLE hers")
        for k in (1, 2, 3):
            self.refused(self.session(k, "BEGIN"), "LOCK TABLE t IN SHARE MODE NOWAIT")
        locker.run("COMMIT")

    def test_a_view_locks_what_it_reads(self):
        self.cluster.sql(1, "CREATE VIEW inner_v AS SELECT * FROM t WHERE id IN (SELECT id FROM u);"
                            "CREATE VIEW outer_v AS SELECT count(*) FROM inner_v")
        locker = self.session(1, "BEGIN", "LOCK TABLE outer_v IN SHARE MODE")
        other = self.session(2, "SET lock_timeout = '100ms'")
        self.refused(other, WRITE)
        self.refused(other, "INSERT INTO u VALUES (77, 1)")
        locker.run("COMMIT")
        self.free()

    def test_a_role_that_may_not_lock_disturbs_nobody(self):
        self.cluster.sql(1, "CREATE ROLE nobody_special")
        self.session(2, "BEGIN", WRITE)
        stranger = self.session(1, "SET ROLE nobody_special", "BEGIN")
        self.refused(stranger, "LOCK TABLE t", "42501")  # at once, though it would have had to wait

    def test_locks_of_different_tables_are_independent(self):
        self.session(1, "BEGIN", "LOCK TABLE t")
        for k in (1, 2, 3):
            other = self.session(k)
            self.begins_with(other, "LOCK TABLE u IN SHARE MODE NOWAIT")
            self.refused(other, "LOCK TABLE t NOWAIT")
            other.run("ROLLBACK")

    def test_ddl_goes_on_while_another_table_is_locked(self):
        self.session(1, "BEGIN", "LOCK TABLE t IN SHARE MODE")
        for k in (1, 2, 3):
            self.cluster.sql(k, f"SET lock_timeout = '25s'; CREATE TABLE meanwhile_{k} (a int PRIMARY KEY) USING gcl;"
                                f"ALTER TABLE u ADD COLUMN w{k} int; ALTER TABLE u DROP COLUMN w{k}; DROP TABLE meanwhile_{k}")
            self.refused(self.session(k, "SET lock_timeout = '200ms'"), "ALTER TABLE t ADD COLUMN w int")

    def test_a_share_lock_is_shared_on_all_primaries(self):
        sessions = [self.session(k, "SET lock_timeout = '25s'", "BEGIN") for k in (1, 2, 3)]
        for session in sessions:
            session.run("LOCK TABLE t IN SHARE MODE")
        for session in sessions:
            session.run("COMMIT")

    def test_two_that_lock_one_table_meet_and_one_comes_first(self):
        # Neither has it on one primary and waits for the other on another.
        def lock(session, times):
            for _ in range(times):
                session.run("BEGIN; LOCK TABLE t; UPDATE u SET v = v + 1 WHERE id = 50; COMMIT")

        self.cluster.sql(1, "INSERT INTO u VALUES (50, 0)")
        sessions = [self.session(k) for k in (1, 2, 3, 2, 3)]
        self.assertEqual([], together([lambda s=s: lock(s, 20) for s in sessions]))
        self.assertEqual(["100"], self.cluster.sql(2, "SELECT v FROM u WHERE id = 50"))

    def test_a_wait_for_a_locked_table_is_seen(self):
        self.session(1, "BEGIN", "LOCK TABLE t")
        for k in (1, 2, 3):
            waiter = self.session(k, "BEGIN")
            pid = waiter.pid()
            waiter.send("LOCK TABLE t IN SHARE MODE")
            eventually(lambda k=k, pid=pid: self.cluster.sql(k, f"SELECT cardinality(pg_blocking_pids({pid}))") == ["1"])
            self.cluster.sql(k, f"SELECT pg_cancel_backend({pid})")
            with self.assertRaises(SqlError) as caught:
                waiter.result()
            self.assertEqual("57014", caught.exception.state)

    def test_more_than_there_is_room_for_take_turns(self):
        # All but the first wait for the lock; those that find no room for their transaction wait for room.
        first = self.session(1, "BEGIN", "LOCK TABLE t")
        others = [self.session(2, "SET deadlock_timeout = '60s'", "BEGIN") for _ in range(30)]
        for other in others:
            other.send("LOCK TABLE t; UPDATE u SET v = v + 1 WHERE id = 60; COMMIT")
        self.cluster.sql(1, "INSERT INTO u VALUES (60, 0)")
        eventually(lambda: self.cluster.sql(2, "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["30"])
        first.run("COMMIT")
        for other in others:
            other.result(60)
        self.assertEqual(["30"], self.cluster.sql(3, "SELECT v FROM u WHERE id = 60"))

    def test_where_users_have_all_room_an_administrator_finds_some(self):
        self.cluster.sql(1, "CREATE ROLE greedy; GRANT ALL ON t TO greedy")
        take = ("BEGIN", "SET ROLE greedy", "LOCK TABLE t IN SHARE MODE")
        users = [self.session(i % 3 + 1, *take) for i in range(21)]
        self.refused(self.session(2, "SET lock_timeout = '200ms'"), "BEGIN; SET ROLE greedy; LOCK TABLE t IN SHARE MODE")
        self.cluster.sql(3, "CREATE TABLE room (a int) USING gcl; DROP TABLE room")
        for user in users:
            user.run("ROLLBACK")
        self.cluster.sql(1, "REVOKE ALL ON t FROM greedy; DROP ROLE greedy")

    def test_a_ring_of_locks_over_the_primaries_costs_one_of_them(self):
        # PostgreSQL's spec deadlock-hard: eight sessions, eight tables; the one that is in a hurry finds it.
        for k in range(1, 9):
            self.cluster.sql(1, f"CREATE TABLE ring_{k} (a int) USING gcl")
        for places in ((1, 1, 1, 1, 1, 1, 1, 1), (2, 2, 2, 2, 2, 2, 2, 2), (1, 2, 3, 1, 2, 3, 1, 2), (3, 2, 1, 3, 2, 1, 3, 2)):
            sessions = [self.session(k, f"SET deadlock_timeout = '{'100ms' if i == 8 else '100s'}'", "BEGIN")
                        for i, k in enumerate(places, 1)]
            for i, session in enumerate(sessions, 1):
                session.run(f"LOCK TABLE ring_{i}")
            for i, session in enumerate(sessions, 1):
                session.send(f"LOCK TABLE ring_{i % 8 + 1}")
                if i < 8:
                    self.assertTrue(session.blocked(), (places, i))
            with self.assertRaises(SqlError) as caught:
                sessions[7].result()
            self.assertEqual("40P01", caught.exception.state)
            for session in [sessions[7], *reversed(sessions[:7])]:
                if session is not sessions[7]:
                    session.result()
                session.run("ROLLBACK")

    def test_a_writer_between_two_lockers_may_be_part_of_it(self):
        # one -> two (its lock on primary 1) -> a writer on primary 2 -> one (its lock there): none waits for another primary
        hurry = "SET deadlock_timeout = '100ms'"
        one, two, writer = self.session(1, hurry, "BEGIN"), self.session(2, hurry, "BEGIN"), self.session(2, "BEGIN")
        one.run("LOCK TABLE t")
        self.cluster.sql(1, "CREATE TABLE x (id int) USING gcl; CREATE TABLE y (id int) USING gcl")
        two.run("LOCK TABLE x")
        writer.run("INSERT INTO y VALUES (1)")
        two.send("LOCK TABLE y IN SHARE MODE")
        self.assertTrue(two.blocked())
        writer.send("SELECT count(*) FROM t")
        self.assertTrue(writer.blocked())
        one.send("LOCK TABLE x")
        with self.assertRaises(SqlError) as caught:
            one.result()
        self.assertEqual("40P01", caught.exception.state)
        one.run("ROLLBACK")
        writer.result()
        writer.run("ROLLBACK")
        two.result()
        two.run("ROLLBACK")
        self.cluster.sql(1, "DROP TABLE x, y")

    def test_weak_modes_wait_for_no_ddl(self):
        coordinator = self.session(1, "BEGIN", "CREATE INDEX passing ON u (v)")
        for k in (1, 2, 3):
            other = self.session(k, "SET lock_timeout = '25s'", "BEGIN")
            for mode in ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE"):
                other.run(f"LOCK TABLE t IN {mode} MODE")
            other.run("COMMIT")
        self.refused(self.session(2, "SET lock_timeout = '100ms'", "BEGIN"), "LOCK TABLE u IN ROW EXCLUSIVE MODE; INSERT INTO u VALUES (99, 1)")
        coordinator.run("ROLLBACK")

    def test_two_that_lock_crosswise(self):
        one, two = (self.session(k, "SET deadlock_timeout = '100ms'", "BEGIN") for k in (1, 2))
        one.run("LOCK TABLE t")
        two.run("LOCK TABLE u")
        two.send("LOCK TABLE t")
        self.assertTrue(two.blocked())
        one.send("LOCK TABLE u")
        errors = []
        for session in (one, two):  # the victim of the deadlock lets the other go on
            try:
                session.result()
            except SqlError as error:
                errors.append(error.state)
            session.run("ROLLBACK")
        self.assertEqual(["40P01"], errors)


class Joining(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; CREATE TABLE u (id int) USING gcl")

    def stopped_by(self, k, sql):
        session = self.cluster.session(k)
        with self.assertRaises(SqlError) as caught:
            session.run(f"SET lock_timeout = '300ms'; {sql}")
        session.close()
        return caught.exception.state

    def test_a_primary_that_joins_takes_over_what_is_locked(self):
        locker = self.cluster.session(1)
        locker.run("BEGIN; LOCK TABLE u IN SHARE MODE; SAVEPOINT s; LOCK TABLE t; ROLLBACK TO s; SAVEPOINT s; LOCK TABLE t IN EXCLUSIVE MODE")
        self.cluster.stop(3)
        self.cluster.start(3)  # waits until it serves
        self.assertEqual("55P03", self.stopped_by(3, "INSERT INTO t VALUES (1, 1)"))
        self.assertEqual("55P03", self.stopped_by(3, "INSERT INTO u VALUES (1)"))
        self.cluster.sql(3, "SET lock_timeout = '25s'; SELECT count(*) FROM t")
        # It takes part in all that comes.
        locker.run("LOCK TABLE t")
        self.assertEqual("55P03", self.stopped_by(3, "SELECT count(*) FROM t"))
        locker.run("COMMIT")
        self.cluster.sql(3, "SET lock_timeout = '25s'; INSERT INTO t VALUES (1, 1); INSERT INTO u VALUES (1)")

    def test_a_database_that_was_kept_out_takes_over_too(self):
        self.cluster.sql(3, "CREATE TABLE in_the_way (v int)")
        self.cluster.stop(3)
        self.cluster.sql(1, "CREATE TABLE in_the_way (a int) USING gcl")
        self.cluster.ctl("start", self.cluster.dir, "--node", "3", check=False)
        self.assertEqual("55000", self.stopped_by(3, "INSERT INTO t VALUES (1, 1)"))
        locker, waiter = self.cluster.session(1), self.cluster.session(2)
        locker.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE")  # without primary 3
        waiter.send("BEGIN; LOCK TABLE t IN SHARE MODE")
        self.assertTrue(waiter.blocked())
        self.cluster.sql(3, "DROP TABLE in_the_way")
        eventually(lambda: self.cluster.sql(1, "SELECT state FROM gcl_stat_ddl_log WHERE node = 3") == ["serving"], 60)
        self.assertEqual("55P03", self.stopped_by(3, "INSERT INTO t VALUES (1, 1)"))
        self.cluster.sql(3, "SET lock_timeout = '25s'; SELECT count(*) FROM t")
        locker.run("COMMIT")
        waiter.result()
        self.assertEqual("55P03", self.stopped_by(3, "INSERT INTO t VALUES (1, 1)"))
        waiter.run("COMMIT")
        self.cluster.sql(3, "SET lock_timeout = '25s'; INSERT INTO t VALUES (1, 1)")

    def test_a_primary_that_joins_one_that_was_alone_takes_over_too(self):
        self.cluster.stop(2)
        self.cluster.stop(3)
        locker, coordinator = self.cluster.session(1), self.cluster.session(1)
        locker.run("BEGIN; LOCK TABLE t")
        coordinator.run("BEGIN; LOCK TABLE u IN SHARE ROW EXCLUSIVE MODE")
        self.cluster.start(2)
        self.assertEqual("55P03", self.stopped_by(2, "SELECT count(*) FROM t"))
        self.assertEqual("55P03", self.stopped_by(2, "INSERT INTO u VALUES (1)"))
        locker.run("COMMIT")
        self.cluster.sql(2, "SET lock_timeout = '25s'; INSERT INTO t VALUES (1, 1)")
        # A coordinator that had locked before does DDL with a primary that joined meanwhile.
        coordinator.run("ALTER TABLE u ADD COLUMN w int; COMMIT")
        self.cluster.start(3)
        self.assertEqual([["w"]] * 3, self.cluster.everywhere(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'u'::regclass AND attnum = 2"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
