"""LOCK TABLE on one primary is a lock on all, if its mode conflicts with what a statement elsewhere might do."""
import unittest

from harness import Cluster, SqlError, eventually

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

    def refused(self, session, sql, state="55P03", within=15):
        with self.assertRaises(SqlError) as caught:
            session.run(sql, within)
        self.assertEqual(state, caught.exception.state, caught.exception)

    def test_each_mode_stops_what_it_should(self):
        stops = {"SHARE UPDATE EXCLUSIVE": (), "SHARE": (WRITE,), "SHARE ROW EXCLUSIVE": (WRITE,), "EXCLUSIVE": (WRITE,),
                 "ACCESS EXCLUSIVE": (WRITE, READ), "ROW EXCLUSIVE": ()}
        others = {k: self.session(k, "SET lock_timeout = '100ms'") for k in (1, 2, 3)}
        for author, (mode, stopped) in enumerate(stops.items()):
            author = author % 3 + 1
            locker = self.session(author, "BEGIN", f"LOCK TABLE t IN {mode} MODE")
            for other in others.values():
                for statement in (READ, WRITE):
                    if statement in stopped:
                        self.refused(other, statement)
                    else:
                        other.run(statement, 3)
            locker.run("COMMIT")
            for other in others.values():
                eventually(lambda other=other: self.succeeds(other, WRITE))

    def succeeds(self, session, sql):
        try:
            session.run(sql, 5)
            return True
        except SqlError:
            return False

    def test_a_weak_lock_elsewhere_is_waited_for(self):
        writer = self.session(2, "BEGIN", "LOCK TABLE t IN ROW EXCLUSIVE MODE")
        locker = self.session(1, "BEGIN")
        locker.send("LOCK TABLE t IN SHARE MODE")
        self.assertTrue(locker.blocked())
        writer.run("COMMIT")
        locker.result(5)
        locker.run("COMMIT")

    def test_share_update_exclusive_excludes_itself_everywhere(self):
        one = self.session(1, "BEGIN", "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        two = self.session(2, "BEGIN")
        two.send("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        self.assertTrue(two.blocked())
        one.run("COMMIT")
        two.result(5)
        two.run("COMMIT")

    def test_nowait(self):
        writer = self.session(2, "BEGIN", WRITE)
        for k in (1, 2, 3):
            locker = self.session(k, "BEGIN")
            self.refused(locker, "LOCK TABLE t IN SHARE MODE NOWAIT")
            locker.run("ROLLBACK")
        self.session(3).run("SET lock_timeout = '2s'; UPDATE t SET v = v + 1 WHERE id = 2", 3)  # nothing is left
        writer.run("COMMIT")
        self.session(1, "BEGIN", "LOCK TABLE t NOWAIT")  # the others may not have heard of the last rollback
        for k in (1, 2, 3):
            self.refused(self.session(k, "BEGIN"), "LOCK TABLE t IN SHARE MODE NOWAIT")

    def test_nowait_succeeds_as_soon_as_the_last_owner_has_ended(self):
        sessions = [self.session(k) for k in (1, 2, 3)]
        for turn in range(60):
            sessions[turn % 3].run(f"BEGIN; LOCK TABLE t IN SHARE MODE NOWAIT; {'ROLLBACK' if turn % 4 else 'COMMIT'}")

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
            other = self.session(k, "SET lock_timeout = '2s'")
            other.run(WRITE, 4)
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
        self.session(3).run("SET lock_timeout = '2s'; UPDATE t SET v = v + 1 WHERE id = 2", 4)
        locker.run("SELECT count(*) FROM t")
        locker.run("COMMIT")

    def test_ddl_goes_on_after_a_savepoint(self):
        author = self.session(1, "BEGIN", "CREATE TABLE kept (a int) USING gcl", "SAVEPOINT s", "LOCK TABLE t",
                              "CREATE TABLE dropped (a int) USING gcl", "ROLLBACK TO s", "LOCK TABLE u IN SHARE MODE",
                              "CREATE TABLE kept_too (a int) USING gcl")
        self.session(2).run("SET lock_timeout = '2s';" + WRITE, 4)
        author.run("COMMIT")
        self.assertEqual([["kept", "kept_too"]] * 3, self.cluster.everywhere(
            "SELECT relname FROM pg_class WHERE relname IN ('kept', 'kept_too', 'dropped') ORDER BY 1"))
        self.assertEqual(1, len({answer[0] for answer in self.cluster.everywhere("SELECT gcl_ddl_fingerprint()")}))

    def test_read_only_transactions_lock_too(self):
        locker = self.session(1, "BEGIN READ ONLY", "LOCK TABLE t IN SHARE MODE")
        self.refused(self.session(2, "SET lock_timeout = '100ms'"), WRITE)
        locker.run("COMMIT")
        self.free()

    def test_a_view_locks_what_it_reads(self):
        self.cluster.sql(1, "CREATE VIEW inner_v AS SELECT * FROM t WHERE id IN (SELECT id FROM u);"
                            "CREATE VIEW outer_v AS SELECT count(*) FROM inner_v")
        locker = self.session(1, "BEGIN", "LOCK TABLE outer_v IN SHARE MODE")
        other = self.session(2, "SET lock_timeout = '100ms'")
        self.refused(other, WRITE)
        self.refused(other, "INSERT INTO u VALUES (77, 1)")
        locker.run("COMMIT")
        self.free()

    def test_who_may_not_lock_disturbs_nobody(self):
        self.cluster.sql(1, "CREATE ROLE nobody_special")
        self.session(2, "BEGIN", WRITE)
        stranger = self.session(1, "SET ROLE nobody_special", "BEGIN")
        self.refused(stranger, "LOCK TABLE t", "42501")  # at once, though it would have had to wait

    def test_a_deadlock_through_the_ddl_lock_costs_one_of_them(self):
        one = self.session(1, "SET deadlock_timeout = '100ms'", "BEGIN", "LOCK TABLE u IN SHARE MODE")
        two = self.session(2, "SET deadlock_timeout = '100ms'", "BEGIN", WRITE)
        two.send("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE")
        self.assertTrue(two.blocked())
        one.send("LOCK TABLE t IN SHARE MODE")
        states = []
        for session in (one, two):
            try:
                session.result(20)
            except SqlError as error:
                states.append(error.state)
            session.run("ROLLBACK")
        self.assertEqual(["40P01"], states)
        self.free()
        self.free("u")

    def test_weak_modes_wait_for_no_ddl(self):
        author = self.session(1, "BEGIN", "CREATE INDEX passing ON u (v)")
        for k in (1, 2, 3):
            other = self.session(k, "SET lock_timeout = '2s'", "BEGIN")
            for mode in ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE"):
                other.run(f"LOCK TABLE t IN {mode} MODE", 3)
            other.run("COMMIT")
        self.refused(self.session(2, "SET lock_timeout = '100ms'", "BEGIN"), "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        author.run("ROLLBACK")

    def test_two_that_lock_crosswise(self):
        one, two = self.session(1, "BEGIN", "LOCK TABLE t"), self.session(2, "BEGIN")
        two.send("LOCK TABLE u")
        one.run("LOCK TABLE u", 5)
        one.run("COMMIT")
        two.result(5)
        two.run("LOCK TABLE t", 5)
        two.run("COMMIT")


if __name__ == "__main__":
    unittest.main(verbosity=2)
