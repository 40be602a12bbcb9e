"""A clean stop writes the pool to a file; start finds everything again, also when tmpfs was emptied."""
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import data_directory
from harness import LONGER, Cluster, Hang, Load, SqlError, eventually, give, together
from processes import runs


class Restart(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl")
        self.cluster.sql(2, "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 5000) i")
        self.cluster.sql(3, "UPDATE t SET v = 'changed' WHERE id % 10 = 0")

    def assert_all_there(self):
        for answer in self.cluster.everywhere(
                "SET enable_seqscan = off; SELECT count(*), count(*) FILTER (WHERE v = 'changed'), sum(id) FROM t WHERE id > 0"):
            self.assertEqual(["5000|500|12502500"], answer)
        for answer in self.cluster.everywhere("SELECT v FROM t WHERE id IN (7, 10) ORDER BY id"):
            self.assertEqual(["row 7", "changed"], answer)

    def test_stop_and_start(self):
        self.assertIn("saved", self.cluster.stop().stdout)
        self.cluster.start()
        self.assert_all_there()
        self.cluster.sql(1, "INSERT INTO t VALUES (5001, 'after')")
        self.assertEqual([["5001"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_start_after_tmpfs_was_emptied(self):
        self.cluster.stop()
        for entry in glob.glob(self.cluster.pool_dir() + "/*"):
            os.remove(entry)
        shutil.rmtree(self.cluster.pool_dir())
        self.cluster.start()
        self.assert_all_there()
        self.cluster.stop()
        self.cluster.start()
        self.assert_all_there()

    def test_a_saved_pool_that_is_damaged(self):
        """No primary starts, each way of asking names the page; repaired, all is there (pool.copy-checksummed)."""
        self.cluster.stop()
        saved = self.cluster.dir + "/pool.saved"
        self.assertIn(" 0 bad", self.cluster.ctl("verify", self.cluster.dir).stdout)
        shutil.rmtree(self.cluster.pool_dir())
        with open(saved, "r+b") as f:
            at = f.read().index(b"row 777")
            f.seek(at)
            f.write(b"R")
        done = self.cluster.ctl("start", self.cluster.dir, check=False)
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, r"page verification failed, calculated checksum \d+ but expected \d+: page \d+ of memory node 0")
        self.assertIn(f"bad is block 0:{at // 8192} ", done.stderr)
        self.assertIn("gclctl verify", done.stderr)
        self.assertFalse(os.path.exists(self.cluster.pool_dir() + "/pool"), "nothing half made")
        done = self.cluster.ctl("verify", self.cluster.dir, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn(f"bad block {at // 8192} of memory node 0 (page ", done.stdout)
        with open(saved, "r+b") as f:
            f.seek(at)
            f.write(b"r")
        self.cluster.start()
        self.assert_all_there()

    def test_what_a_killed_start_has_left_of_a_fenced_pool(self):
        """It was killed when the new pool had its name, and before the fenced one's memory was given back."""
        self.cluster.stop()
        left = [f"{self.cluster.pool_dir()}/{name}" for name in ("pool.fenced", "pool.node1.7")]
        for path in left:
            shutil.copyfile(f"{self.cluster.pool_dir()}/pool", path)
        self.cluster.start()
        self.assertEqual([], [path for path in left if os.path.exists(path)])

    def test_primaries_leave_and_come_back_one_by_one(self):
        for k in (2, 3, 1):
            self.cluster.stop(k)
            other = 1 if k != 1 else 2
            self.cluster.sql(other, f"UPDATE t SET v = 'without {k}' WHERE id = {k}")
            self.cluster.start(k)
            self.assertEqual([f"without {k}"], self.cluster.sql(k, f"SELECT v FROM t WHERE id = {k}"))
        self.assertEqual([["5000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_several_starts_at_a_time(self):
        """Behind the lock file of a dead postmaster, too (gclctl.one-start-at-a-time)."""
        for _ in range(3):
            self.cluster.kill_all(2)
            starts = [subprocess.Popen([os.environ["GCLCTL"], "start", self.cluster.dir, "--node", "2"], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True) for _ in range(4)]
            said = [start.communicate(timeout=120)[0] for start in starts]
            self.assertEqual([0] * 4, [start.returncode for start in starts], said)
            self.assertEqual(1, sum("primary 2 is up" in one for one in said), said)
            self.assertEqual(["5000"], self.cluster.sql(2, "SELECT count(*) FROM t"))
            self.assertTrue(os.path.exists(f"{self.cluster.dir}/node2/data/postmaster.pid"))
        self.cluster.stop(2)
        self.cluster.start(2)
        self.assert_all_there()

    def test_a_start_behind_one_that_was_killed_waits_for_the_server(self):
        """The server is there, and cannot join before its death is repaired (gclctl.start-waits)."""
        repairers = [self.cluster.workers(k)["gcl repair"] for k in (1, 3)]
        start = [os.environ["GCLCTL"], "start", self.cluster.dir, "--node", "2"]
        give(signal.SIGSTOP, *repairers)
        try:
            self.cluster.kill_all(2)
            killed = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            eventually(lambda: runs(self.cluster, 2))
            os.killpg(killed.pid, signal.SIGKILL)  # as root, it works in a child of another account
            killed.wait()
            second = subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            with self.assertRaises(subprocess.TimeoutExpired):
                second.wait(1.5)
        finally:
            give(signal.SIGCONT, *repairers)
        self.assertIn("primary 2 is up", second.communicate()[0])
        self.assertEqual(0, second.returncode)
        self.assertEqual(["5000"], self.cluster.sql(2, "SELECT count(*) FROM t"))

    def departed_arenas(self, k):
        """Arenas of primary 3's former incarnations: the most that a process of primary K maps, and keeps in memory (kB)."""
        postmaster = self.cluster.postmaster(k)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(postmaster)], text=True, capture_output=True, check=False)
        count = kept = 0
        for pid in children.stdout.split():
            mine, resident, departed = 0, 0, False
            try:
                with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as maps:
                    for line in maps:
                        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
                            departed = "/pool.node3." in line and "(deleted)" in line
                            mine += departed
                        elif departed and line.startswith("Rss:"):
                            resident += int(line.split()[1])
            except OSError:
                continue  # it has ended
            count, kept = max(count, mine), max(kept, resident)
        return count, kept

    def test_a_primary_that_restarts_under_load_leaves_no_memory_behind(self):
        restarts = 4 if LONGER == 1 else 20
        idle = [self.cluster.session(k) for k in (1, 2)]
        for session in idle:
            session.run("SELECT count(*) FROM t")
        counts, done = {1: 0, 2: 0}, []
        load = Load(0, lambda: done)

        def work(k):
            session = self.cluster.session(k)
            while load.goes_on():
                session.run(f"UPDATE t SET v = v || '' WHERE id % 50 = {k}")
                counts[k] += 1

        def restart():
            for i in range(restarts):
                self.cluster.sql(3, f"UPDATE t SET v = v || '' WHERE id % 50 = {i % 40 + 3}")
                self.cluster.stop(3)
                for k in (1, 2):
                    before = counts[k]
                    eventually(lambda k=k, before=before: counts[k] > before + 1)
                    mapped, kept = [], []

                    def let_go(k=k, mapped=mapped, kept=kept):
                        for seen, now in zip((mapped, kept), self.departed_arenas(k)):
                            seen.append(now)
                        return mapped[-1] <= 1 and kept[-1] < 4096  # kB; the cache has 32 MB

                    try:
                        eventually(let_go, 60)  # each process does when it has its processor
                    except Hang as hang:
                        raise AssertionError(f"primary {k}, restart {i}: {mapped[-1]} arenas, {kept[-1]} kB") from hang
                self.cluster.start(3)
            done.append(True)

        self.assertEqual([], together([lambda: work(1), lambda: work(2), restart], load))


class DataDirectory(unittest.TestCase):
    """A primary knows whether its data directory is the one it left the pool with, and which OIDs it gives."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (1)")
        self.data, self.kept = f"{self.cluster.dir}/node2/data", f"{os.path.dirname(self.cluster.dir)}/kept-"

    @staticmethod
    def copy(source, to):
        """As `cp -a`: a data directory belongs to its server's account."""
        subprocess.run(["cp", "-a", source, to], check=True)

    def keep(self, name):
        self.copy(self.data, self.kept + name)

    def put_back(self, name):
        shutil.rmtree(self.data)
        self.copy(self.kept + name, self.data)
        # Where no process reaps the dead postmaster, its number still looks taken.
        pathlib.Path(self.data, "postmaster.pid").unlink(missing_ok=True)

    def assert_refused(self, text):
        for statement in ("SELECT * FROM t", "CREATE TABLE more (a int) USING gcl", "CREATE ROLE more"):
            with self.assertRaises(SqlError) as caught:
                self.cluster.sql(2, statement)
            self.assertEqual("55000", caught.exception.state, caught.exception)
        with open(f"{self.cluster.dir}/node2/log", encoding="utf-8") as log:
            said = log.read()
        self.assertIn(text, said)
        self.assertIn("gcl_prepare_copy()", said)
        self.assertEqual(["7"], self.cluster.sql(2, "SELECT a FROM mine"))

    def test_an_older_copy_is_refused(self):
        self.cluster.sql(2, "CREATE TABLE mine (a int) USING heap; INSERT INTO mine VALUES (7); CHECKPOINT")
        self.keep("running")
        self.cluster.stop(2)
        self.keep("stopped")
        self.cluster.start(2)
        self.cluster.sql(2, "CREATE TABLE own (a int) USING gcl")
        self.cluster.sql(1, "DROP TABLE t; CREATE TABLE t (id int) USING gcl")
        self.cluster.stop(2)
        self.keep("newest")
        for name in ("stopped", "running"):
            self.put_back(name)
            self.cluster.ctl("start", self.cluster.dir, "--node", "2", check=False)
            self.assert_refused("It is older than this primary's last stop, or the pool is.")
            self.cluster.stop(2)
        # Of another primary, and one that has never been here.
        self.put_back("newest")
        life = f"{self.data}/gcl_ddl/life"
        shutil.copyfile(f"{self.cluster.dir}/node1/data/gcl_ddl/life", life)
        self.cluster.ctl("start", self.cluster.dir, "--node", "2", check=False)
        self.assert_refused("It is a copy of that of primary 1.")
        self.cluster.stop(2)
        os.remove(life)
        self.cluster.ctl("start", self.cluster.dir, "--node", "2", check=False)
        self.assert_refused("It has never been in this pool")
        self.cluster.stop(2)
        # The right one is as if nothing had been.
        self.put_back("newest")
        self.cluster.start(2)
        self.cluster.sql(2, "INSERT INTO own VALUES (1); INSERT INTO t VALUES (2)")
        self.assertEqual([["1"]] * 2, self.cluster.everywhere("SELECT count(*) FROM own"))

    def test_a_primary_that_is_refused_resolves_its_positions(self):
        """Later no primary knows the outcome of their transactions."""
        oid = int(self.cluster.sql(2, "SELECT oid FROM pg_database WHERE datname = current_database()")[0])
        launcher = self.cluster.workers(2)["gcl ddl launcher"]
        os.kill(launcher, signal.SIGSTOP)  # or it resolves them before the copy is made
        try:
            self.cluster.sql(1, "CREATE TABLE of_one (a int) USING gcl")
            self.cluster.sql(2, "CHECKPOINT")
            self.keep("open")
        finally:
            os.kill(launcher, signal.SIGCONT)
        _, applied, xid = data_directory.ddl_position(self.kept + "open", oid)
        self.assertNotEqual(0, xid)
        self.cluster.stop(2)
        self.put_back("open")
        self.cluster.ctl("start", self.cluster.dir, "--node", "2", check=False)
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(2, "SELECT * FROM of_one")
        self.assertEqual("55000", caught.exception.state)
        self.cluster.sql(2, "CHECKPOINT")
        self.assertEqual((applied, applied, 0), data_directory.ddl_position(self.data, oid))

    def test_a_directory_that_comes_to_a_new_pool_keeps_no_positions(self):
        """The directory is like a backup without the extension's files; the new log's entries have the old one's numbers."""
        self.cluster.sql(1, "CREATE ROLE passing; DROP ROLE passing; CREATE TABLE u (a int) USING gcl; DROP EXTENSION gcl CASCADE")
        self.cluster.stop()
        self.keep("old")
        shutil.rmtree(f"{self.kept}old/gcl_ddl")
        with Cluster(primaries=2, started=(1,), data_from=self.kept + "old") as new:
            new.sql(1, "CREATE ROLE of_new; CREATE TABLE of_new (a int) USING gcl; INSERT INTO of_new VALUES (1)")
            new.start(2)
            self.assertEqual(["1"], new.sql(2, "SELECT count(*) FROM pg_roles WHERE rolname = 'of_new'"))
            self.assertEqual(["1"], new.sql(2, "SELECT a FROM of_new"))

    def reset_oids(self, to):
        self.cluster.stop(2)
        program = data_directory.PG_BIN / "pg_resetwal"
        subprocess.run([program, "-o", str(to), "-D", self.data], check=True, cwd="/", capture_output=True, **data_directory.account())
        self.cluster.start(2)

    def test_object_ids_end_with_an_error(self):
        first, end = 16384 + 2 * 2**26, 16384 + 3 * 2**26
        two = self.cluster.session(2)
        self.assertNotIn("left", " ".join(two.run("CREATE TABLE before (a int) USING gcl")))
        two.close()
        self.reset_oids(end - 1000)
        two = self.cluster.session(2)
        self.assertIn("object IDs left", " ".join(two.run("CREATE TABLE near (a int) USING gcl")))
        self.cluster.sql(1, "CREATE VIEW of_one AS SELECT 1 AS a; CREATE TYPE color AS ENUM ('red')")
        two.close()
        self.reset_oids(end - 2)
        two = self.cluster.session(2)
        for statement in ("CREATE TABLE beyond (a int) USING gcl", "CREATE FUNCTION beyond() RETURNS int LANGUAGE sql AS 'SELECT 1'", "ALTER TYPE color ADD VALUE 'blue'",
                          "CREATE ROLE beyond"):
            with self.assertRaises(SqlError) as caught:
                two.run(statement)
            self.assertEqual("54000", caught.exception.state, caught.exception)
        # Statements that make nothing go on; so does replacing what another primary has made.
        two.run("CREATE OR REPLACE VIEW of_one AS SELECT 2 AS a; ALTER TABLE near SET (fillfactor = 50); DROP TABLE before; CREATE TABLE mine (a int) USING heap")
        self.assertEqual(["2"], self.cluster.sql(1, "SELECT a FROM of_one"))
        two.close()
        self.reset_oids(first)
        self.cluster.sql(2, "CREATE TABLE beyond (a int) USING gcl; CREATE ROLE beyond")
        self.assertEqual([["t"]] * 2, self.cluster.everywhere(f"SELECT oid BETWEEN {first} AND {end} FROM pg_class WHERE relname = 'beyond'"))


# Fills the WAL so that its last record ends with a page: the insert position is then behind the next page's header.
TO_A_PAGE_S_END = """DO $$
DECLARE at bigint; after bigint; overhead bigint := 48; room bigint;
BEGIN
  FOR i IN 1..200 LOOP
    at := pg_current_wal_insert_lsn() - '0/0';
    EXIT WHEN at % 8192 = 24 AND i > 1;
    room := 8192 - at % 8192;
    IF room < overhead + 8 THEN room := room + 8192 - 24; END IF;
    PERFORM pg_logical_emit_message(false, 'x', repeat('x', (room - overhead)::int));
    after := pg_current_wal_insert_lsn() - '0/0';
    IF (after - 1) / 8192 = at / 8192 THEN overhead := overhead - 1;   -- too short
    ELSIF after % 8192 <> 24 THEN overhead := overhead + 1; END IF;    -- too long
  END LOOP;
END $$"""


class WalPageEnd(unittest.TestCase):
    def test_a_clean_stop_flushes_a_log_that_ends_with_a_page(self):
        with Cluster(primaries=1, settings=("autovacuum=off", "checkpoint_timeout=1d", "bgwriter_delay=10s")) as cluster:
            cluster.sql(1, "CREATE TABLE t (v int) USING gcl")
            for round_ in range(3):
                cluster.sql(1, f"INSERT INTO t VALUES ({round_})")
                session = cluster.session(1)
                for _ in range(5):  # the server logs its running transactions now and then: then once more
                    session.run(TO_A_PAGE_S_END)
                    behind = session.one("SELECT (pg_current_wal_insert_lsn() - '0/0') % 8192")
                    if behind == "24":
                        break
                self.assertEqual("24", behind)
                self.assertIn("saved", cluster.stop().stdout)
                cluster.start()
            self.assertEqual(["3"], cluster.sql(1, "SELECT count(*) FROM t"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
