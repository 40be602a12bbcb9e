"""Rows that ON CONFLICT may still take back: waiting for one is like any other wait, and many upserts at once, on
tables with two unique indexes, lose nothing and raise nothing that heap would not raise."""
import os
import signal
import unittest

from harness import Cluster, Load, SqlError, eventually, together

GATE = """
    CREATE FUNCTION gate(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
      IF n <> 0 THEN PERFORM pg_advisory_xact_lock_shared(n); END IF; RETURN n; END$$;
    CREATE TABLE t (k int UNIQUE, slow int, m int) USING gcl;
    CREATE INDEX t_slow ON t (gate(slow));
    CREATE UNIQUE INDEX t_m ON t (m);"""


def shut_in(cluster):
    """(gate, maker): the maker, on primary 1, stands between the entries of its row k = 1, m = 5."""
    gate, maker = cluster.session(1), cluster.session(1)
    gate.run("SELECT pg_advisory_lock(7)")
    maker.run("BEGIN")
    maker.send("INSERT INTO t VALUES (1, 7, 5) ON CONFLICT DO NOTHING")
    assert maker.blocked()
    return gate, maker


def open_gate(gate):
    gate.run("SELECT pg_advisory_unlock_all()")


class Waits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.cluster.sql(1, GATE)

    def setUp(self):
        self.gate, self.maker = shut_in(self.cluster)
        self.waiter, self.look = self.cluster.session(2), self.cluster.session(2)
        self.pid = self.waiter.pid()
        self.addCleanup(self.clean_up)

    def clean_up(self):
        open_gate(self.gate)
        try:
            if self.maker.pending:
                self.maker.result()
            self.maker.run("ROLLBACK")
        except SqlError as error:
            if error.state != "08006":  # a test has ended its server process
                raise
        for session in (self.gate, self.maker, self.waiter, self.look):
            session.close()
        self.cluster.sql(1, "DELETE FROM t")

    def send(self):
        self.waiter.send("INSERT INTO t VALUES (1, 0, 6) ON CONFLICT DO NOTHING RETURNING m")
        eventually(lambda: self.look.one(f"SELECT pg_blocking_pids({self.pid}) <> '{{}}'") == "t")

    def nothing_is_left(self):
        held = "SELECT held FROM gcl_stat_held WHERE what = 'transactions waited for'"
        eventually(lambda: self.look.one(held) == "0")

    def test_waiting_is_seen(self):
        self.send()
        self.assertEqual("1", self.look.one(f"SELECT count(*) FROM pg_locks WHERE pid = {self.pid} AND NOT granted"))
        self.assertEqual("Lock", self.look.one(f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {self.pid}"))
        maker = self.gate.one("SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE 'INSERT%'")
        waits = f"SELECT waits_for, blocked_by_pid FROM gcl_stat_waits WHERE pid = {self.pid}"
        eventually(lambda: self.look.run(waits) == [f"ShareLock on a speculative token of primary 1|{maker}"])
        open_gate(self.gate)
        self.maker.result()
        self.assertTrue(self.waiter.waits(0.1))
        eventually(lambda: self.look.one(waits).startswith("ShareLock on transaction"))
        self.maker.run("COMMIT")
        self.assertEqual([], self.waiter.result())
        self.nothing_is_left()

    def test_lock_timeout_and_cancel(self):
        self.waiter.run("SET lock_timeout = '300ms'")
        with self.assertRaises(SqlError) as caught:
            self.waiter.run("INSERT INTO t VALUES (1, 0, 6) ON CONFLICT DO NOTHING")
        self.assertEqual("55P03", caught.exception.state)
        self.waiter.run("RESET lock_timeout")
        self.send()
        self.assertEqual("t", self.look.one(f"SELECT pg_cancel_backend({self.pid})"))
        with self.assertRaises(SqlError) as caught:
            self.waiter.result()
        self.assertEqual("57014", caught.exception.state)
        self.send()
        self.assertEqual("t", self.look.one(f"SELECT pg_terminate_backend({self.pid})"))
        with self.assertRaises(SqlError):
            self.waiter.result()
        self.nothing_is_left()

    def test_a_maker_that_is_cancelled_or_ended_lets_them_go_on(self):
        for how in ("cancel", "terminate"):
            self.send()
            self.gate.run(f"SELECT pg_{how}_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'")
            self.assertEqual(["6"], self.waiter.result())
            with self.assertRaises(SqlError):
                self.maker.result()
            self.nothing_is_left()
            if how == "cancel":
                self.maker.run("ROLLBACK")
                self.waiter.run("DELETE FROM t")
                self.gate.close()
                self.gate, self.maker = shut_in(self.cluster)

    def test_a_deadlock_through_it_is_found(self):
        """The maker waits, in an index that is not the arbiter, for a session that waits for the maker's row."""
        open_gate(self.gate)
        self.maker.result()
        self.maker.run("ROLLBACK; SET deadlock_timeout = '60s'; BEGIN")
        self.waiter.run("SET deadlock_timeout = '50ms'; BEGIN; INSERT INTO t VALUES (2, 0, 5)")
        self.gate.run("SELECT pg_advisory_lock(7)")
        self.maker.send("INSERT INTO t VALUES (1, 7, 5) ON CONFLICT (k) DO NOTHING")
        self.assertTrue(self.maker.blocked())
        # Its entry in t_m cannot be made before the gate opens; then it waits for session `waiter`.
        self.waiter.run("SAVEPOINT s")
        open_gate(self.gate)
        with self.assertRaises(SqlError) as caught:
            self.waiter.run("INSERT INTO t VALUES (1, 0, 6) ON CONFLICT DO NOTHING")  # the maker looks for it later
        self.assertEqual("40P01", caught.exception.state)
        self.assertTrue(self.maker.blocked())
        self.waiter.run("ROLLBACK")
        self.maker.result()
        self.nothing_is_left()


class Death(unittest.TestCase):
    def test_of_the_maker_fences_the_waiters(self):
        with Cluster(primaries=3, fences=True) as cluster:
            cluster.sql(1, GATE)
            gate, _ = shut_in(cluster)
            waiters = [cluster.session(k) for k in (1, 2, 3)]
            for waiter in waiters:
                waiter.send("INSERT INTO t VALUES (1, 0, 6) ON CONFLICT DO NOTHING")
            for waiter in waiters:
                self.assertTrue(waiter.blocked())
            pid = gate.one("SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'")
            os.kill(int(pid), signal.SIGKILL)
            for waiter in waiters:
                with self.assertRaises(SqlError) as caught:
                    waiter.result()
                self.assertIn(caught.exception.state, ("57P02", "08006") if waiter is waiters[0] else ("57P02",))


# Every turn is a transaction; `delta` is what they have added.  Keys are few, so that many turns meet others.  From
# `base` on there are a hundred keys that no other session has.
PROCEDURES = """
    CREATE TABLE {name}_pairs (a int UNIQUE, b int) USING {am};
    CREATE UNIQUE INDEX {name}_pairs_b ON {name}_pairs (b);
    CREATE TABLE {name}_sums (a int UNIQUE, b int UNIQUE, n int NOT NULL) USING {am};
    CREATE TABLE {name}_twins (a int UNIQUE, b int UNIQUE, n int NOT NULL) USING {am};

    -- Both indexes are arbiters.  A session that keeps a row and wants another one has the first for its b, and wants
    -- the second for its a, so that none wait in a circle.
    CREATE PROCEDURE {name}_pairs_turns(base int, turns int, INOUT delta int, INOUT errors int) LANGUAGE plpgsql AS $$
    DECLARE own int; done int; dice float;
    BEGIN
      delta := 0; errors := 0;
      FOR turn IN 1..turns LOOP
        own := base + turn * 2;
        dice := random();
        IF dice < 0.4 THEN
          INSERT INTO {name}_pairs VALUES ((random() * {keys})::int, (random() * {keys})::int) ON CONFLICT DO NOTHING;
          GET DIAGNOSTICS done = ROW_COUNT; delta := delta + done;
        ELSIF dice < 0.65 THEN
          INSERT INTO {name}_pairs VALUES (own, (random() * {keys})::int) ON CONFLICT DO NOTHING;
          GET DIAGNOSTICS done = ROW_COUNT; delta := delta + done;
          INSERT INTO {name}_pairs VALUES ((random() * {keys})::int, own + 1) ON CONFLICT DO NOTHING;
          GET DIAGNOSTICS done = ROW_COUNT; delta := delta + done;
        ELSIF dice < 0.8 THEN
          DELETE FROM {name}_pairs WHERE a = (SELECT (random() * {keys})::int);
          GET DIAGNOSTICS done = ROW_COUNT; delta := delta - done;
        ELSE
          DELETE FROM {name}_pairs WHERE b = (SELECT (random() * {keys})::int);
          GET DIAGNOSTICS done = ROW_COUNT; delta := delta - done;
        END IF;
        COMMIT;
      END LOOP;
    END$$;

    -- One index is the arbiter; in the other one nothing conflicts.
    CREATE PROCEDURE {name}_sums_turns(base int, turns int, INOUT delta int, INOUT errors int) LANGUAGE plpgsql AS $$
    DECLARE gone int; key int;
    BEGIN
      delta := 0; errors := 0;
      FOR turn IN 1..turns LOOP
        key := (random() * {keys})::int;
        IF random() < 0.7 THEN
          INSERT INTO {name}_sums VALUES (key, base + turn, 1)
            ON CONFLICT (a) DO UPDATE SET n = {name}_sums.n + 1;
          delta := delta + 1;
        ELSE
          DELETE FROM {name}_sums WHERE a = key RETURNING n INTO gone;
          delta := delta - coalesce(gone, 0);
        END IF;
        COMMIT;
      END LOOP;
    END$$;

    -- One index is the arbiter, and a row that conflicts in it conflicts in the other one, too: now and then 23505
    -- or 40P01, as in heap: the other index is asked while the row is in doubt.
    CREATE PROCEDURE {name}_twins_turns(base int, turns int, INOUT delta int, INOUT errors int) LANGUAGE plpgsql AS $$
    DECLARE gone int; key int;
    BEGIN
      delta := 0; errors := 0;
      FOR turn IN 1..turns LOOP
        key := (random() * {keys})::int;
        BEGIN
          IF random() < 0.7 THEN
            INSERT INTO {name}_twins VALUES (key, -key, 1) ON CONFLICT (a) DO UPDATE SET n = {name}_twins.n + 1;
            delta := delta + 1;
          ELSE
            DELETE FROM {name}_twins WHERE a = key RETURNING n INTO gone;
            delta := delta - coalesce(gone, 0);
          END IF;
        EXCEPTION WHEN unique_violation OR deadlock_detected THEN errors := errors + 1;
        END;
        COMMIT;
      END LOOP;
    END$$;"""

PARTIES, TURNS, SECONDS = 9, 25, 5


class Upserts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("deadlock_timeout=200ms",)))
        for am in ("gcl", "heap"):
            cls.cluster.sql(1, PROCEDURES.format(name=am, am=am, keys=8))

    def race(self, am, what, total):
        """All parties at once: gcl on all primaries, heap on one.  What they say they have added is in the table, and
        in each of its indexes."""
        deltas, caught, rounds = [], [], []
        load = Load(SECONDS, lambda: sum(rounds) > 1000)

        def work(party):
            session = self.cluster.session(1 + party % 3 if am == "gcl" else 1)
            try:
                call = 0
                while load.goes_on():
                    delta, errors = session.one(
                        f"CALL {am}_{what}_turns({party * 100_000_000 + call * 100}, {TURNS}, 0, 0)", 60).split("|")
                    deltas.append(int(delta))
                    caught.append(int(errors))
                    rounds.append(TURNS)
                    call += 1
            finally:
                session.close()

        self.assertEqual([], together([lambda party=party: work(party) for party in range(1, PARTIES + 1)], load), f"{am} {what}")
        for k in (1, 2, 3) if am == "gcl" else (1,):
            self.assertEqual(str(sum(deltas)), self.cluster.sql(k, f"SELECT {total} FROM {am}_{what}")[0])
            for column in ("a", "b"):
                self.assertEqual(
                    [f"{sum(deltas)}|t"], self.cluster.sql(k, f"""SET enable_seqscan = off; SET enable_bitmapscan = off;
                    SELECT {total}, count(*) = count(DISTINCT {column}) FROM {am}_{what} WHERE {column} > -100000"""))
        print(f"{am} {what}: {sum(rounds)} turns, {sum(deltas)} left, {sum(caught)} errors", flush=True)
        self.assertGreater(sum(rounds), 1000)

    def test_two_arbiters(self):
        for am in ("heap", "gcl"):
            self.race(am, "pairs", "count(*)")

    def test_one_arbiter(self):
        for am in ("heap", "gcl"):
            self.race(am, "sums", "coalesce(sum(n), 0)")

    def test_one_arbiter_and_a_twin(self):
        for am in ("heap", "gcl"):
            self.race(am, "twins", "coalesce(sum(n), 0)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
