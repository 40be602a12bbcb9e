"""Disks that are full, of a cluster that works: what goes on, what is refused and how, and what comes back with the room."""
import glob
import os
import re
import shutil
import subprocess
import time
import unittest

import small_disk
from data_directory import account
from harness import NOT_SERVING, Cluster, Load, SqlError, eventually, together
from small_disk import SmallDisk

POOL = "64MB"
SEGMENT = 16 << 20  # of WAL
ELSEWHERE = ("node1", "node2", "node3", "run")  # of a cluster whose directory is small: data and sockets


def move_away(path):
    """To a name beside it; an empty directory takes its place."""
    os.rename(path, path + ".moved")
    os.mkdir(path, 0o700)
    small_disk.own(path)
    return path + ".moved"


class FullDisk(unittest.TestCase):
    def make(self, pool=POOL, **options):
        return self.enterContext(Cluster(primaries=3, pool=pool, cache="8MB", **options))

    def error_of(self, session, sql, seconds=30.0):
        with self.assertRaises(SqlError, msg=sql) as caught:
            session.run(sql, seconds)
        return caught.exception.state, "\n".join(line for line in session.collected if line)


class WalOfOnePrimary(FullDisk):
    def test_it_dies_and_comes_back_with_the_room(self):
        """The others repair it and go on; what it had acknowledged is there."""
        cluster = self.make(pool="256MB", settings=("min_wal_size=32MB", "max_wal_size=64MB"))
        cluster.sql(1, "CREATE TABLE t (k int, n int, pad text, PRIMARY KEY (k, n)) USING gcl")
        cluster.stop(2)
        wal = f"{cluster.dir}/node2/data/pg_wal"
        moved = move_away(wal)
        disk = SmallDisk(wal, 96)
        self.addCleanup(small_disk.unmount, wal)
        subprocess.run(["cp", "-a", f"{moved}/.", wal], check=True)
        cluster.start(2)
        told = {k: set() for k in (1, 2, 3)}
        done = []
        load = Load(0, lambda: done)

        def write(k, kilobytes):
            session, n = None, 0
            while load.goes_on() and not (k == 2 and done):
                n += 1
                try:
                    session = session or cluster.session(k)
                    session.run(f"INSERT INTO t SELECT {k}, {n}, string_agg(md5(random()::text), '') FROM generate_series(0, {kilobytes} * 32)")
                    told[k].add(f"{k}|{n}")
                except SqlError as error:
                    if error.state not in ("53100", *NOT_SERVING) or k != 2:  # 53100: the PANIC, told to its client
                        raise
                    session = None
                    if is_down(cluster, 2):
                        done.append(True)
                    time.sleep(0.1)

        self.assertEqual([], together([lambda: write(1, 0), lambda: write(2, 250), lambda: write(3, 0)], load))
        self.assertGreater(len(told[2]), 10)
        self.assertIn("No space left on device", cluster.log(2))
        self.assertIn("PANIC", cluster.log(2))
        # The others have all of it, and go on.
        everything = set.union(*told.values())
        for k in (1, 3):
            self.assertEqual(set(), everything - set(cluster.sql(k, "SELECT k, n FROM t")))
            cluster.sql(k, f"UPDATE t SET pad = 'by {k}' WHERE k = 2; INSERT INTO t VALUES ({k}, -1, '')")
        # Without room it does not come back, and says why.
        started = cluster.ctl("start", cluster.dir, "--node", "2", check=False)
        self.assertEqual(1, started.returncode, started.stdout)
        self.assertIn("No space left on device", started.stderr)
        cluster.sql(1, "INSERT INTO t VALUES (1, -2, '')")
        disk.grow(400)
        cluster.start(2)
        self.assertEqual(set(), everything - set(cluster.sql(2, "SELECT k, n FROM t")))
        cluster.sql(2, "INSERT INTO t VALUES (2, -1, '')")
        self.assertEqual([["4"]] * 3, cluster.everywhere("SELECT count(*) FROM t WHERE n < 0"))
        self.assertEqual([[]] * 3, cluster.everywhere("SELECT * FROM gcl_check('t', true)"))
        self.assertIn("saved", cluster.stop().stdout)
        cluster.start()
        self.assertEqual(set(), everything - set(cluster.sql(2, "SELECT k, n FROM t")))


def is_down(cluster, k):
    return re.search(f"primary {k} .* down", cluster.ctl("status", cluster.dir, check=False).stdout)


class SavedPool(FullDisk):
    """The directory of the durable copy and of the journal; the primaries' data are elsewhere."""

    def setUp(self):
        self.cluster = self.make()
        self.cluster.sql(1, "CREATE TABLE a (i int PRIMARY KEY, t text) USING gcl; INSERT INTO a SELECT i, 'a' FROM generate_series(1, 1000) i")
        self.cluster.sql(2, "CREATE TABLE b (i int PRIMARY KEY, t text) USING gcl; INSERT INTO b SELECT i, 'b' FROM generate_series(1, 1000) i")
        self.cluster.stop()
        moved = move_away(self.cluster.dir)
        self.disk = SmallDisk(self.cluster.dir, 160)
        for entry in os.listdir(moved):
            if entry not in ELSEWHERE:
                subprocess.run(["cp", "-a", f"{moved}/{entry}", self.cluster.dir], check=True)
        for folder in ELSEWHERE:
            place = f"{self.cluster.dir}/{folder}"
            os.makedirs(place, 0o700, exist_ok=True)
            small_disk.own(place)
            small_disk.bind(f"{moved}/{folder}", place)
        self.addCleanup(self.put_back, moved)
        self.cluster.start()

    def put_back(self, moved):
        """The cluster's directory is as it was made, so that it can be destroyed: where something is mounted it cannot."""
        self.cluster.close_sessions()
        self.disk.make_room()
        try:
            self.cluster.assert_left_in_order()
        finally:
            self.cluster.holds_nothing = False  # none of it runs any more
            self.cluster.ctl("stop", self.cluster.dir, "--immediate")
            for folder in (*ELSEWHERE, ""):
                small_disk.unmount(f"{self.cluster.dir}/{folder}")
            os.rmdir(self.cluster.dir)
            os.rename(moved, self.cluster.dir)

    def test_a_stop_that_cannot_save(self):
        """The pool stays in memory, can be used, and is saved when there is room."""
        self.cluster.sql(3, "INSERT INTO a SELECT i, repeat(md5(i::text), 20) FROM generate_series(1001, 9000) i")
        self.disk.fill()
        stopped = self.cluster.ctl("stop", self.cluster.dir, check=False)
        self.assertEqual(1, stopped.returncode, stopped.stdout)
        for words in ("could not be saved", "No space left on device", "gclctl stop again"):
            self.assertIn(words, stopped.stderr)
        self.assertIn("NOT SAVED", self.cluster.ctl("status", self.cluster.dir, check=False).stdout)
        # Nothing is half made.
        upgraded = self.cluster.ctl("upgrade", self.cluster.dir, check=False)
        self.assertEqual(1, upgraded.returncode, upgraded.stdout)
        self.assertIn("No space left on device", upgraded.stderr)
        self.assertEqual([f"{self.cluster.dir}/prefix"], glob.glob(f"{self.cluster.dir}/prefix*"))
        self.disk.make_room()
        self.assertIn("saved", self.cluster.stop().stdout)
        os.remove(self.cluster.pool_dir() + "/pool")  # as after a reboot
        self.cluster.start()
        self.assertEqual([["9000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM a"))

    def test_a_primary_dies_while_the_journal_is_full(self):
        """Its repair waits for room, and says so; what needs nothing of it goes on."""
        one, three = self.cluster.session(1), self.cluster.session(3)
        three.run("UPDATE a SET t = 'c' WHERE i = 1")
        self.cluster.sql(2, "UPDATE b SET t = 'c'")  # its pages are primary 2's
        self.disk.fill()
        self.cluster.kill_all(2)
        logs = (1, 3)
        eventually(lambda: any("repair of a dead primary did not go on" in self.cluster.log(k) for k in logs))
        self.assertIn("pool.saved.journal: No space left on device", "".join(self.cluster.log(k) for k in logs))
        # Reads and commits elsewhere.
        for session in (one, three):
            for _ in range(5):
                session.run("UPDATE a SET t = t || 'd' WHERE i = 1")
                self.assertEqual("1000", session.one("SELECT count(*) FROM a"))
        # What is primary 2's waits, and can be given up.
        state, _ = self.error_of(one, "SET statement_timeout = '1s'; SELECT count(*) FROM b WHERE t = 'c'")
        self.assertEqual("57014", state)
        self.assertRegex(self.cluster.ctl("status", self.cluster.dir, check=False).stdout,
                         r"primary 2 .* down\n +DEAD .*its repair waits until it is in the pool's journal")
        three.send("SELECT count(*) FROM b WHERE t = 'c'")
        self.assertTrue(three.waits(2))
        # Nobody does anything but make room.
        self.disk.make_room()
        self.assertEqual(["1000"], three.result())
        self.cluster.start(2)
        self.assertEqual([["1000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM b WHERE t = 'c'"))

    def test_all_primaries_die_while_the_journal_is_full(self):
        """The first that starts would repair the pool: it says why it cannot, and all is there when there is room."""
        for k in (1, 2, 3):
            self.cluster.sql(k, f"UPDATE b SET t = '{k}' WHERE i % 3 = {k - 1}")
        self.disk.fill()
        for k in (1, 2, 3):
            self.cluster.kill_all(k)
        started = self.cluster.ctl("start", self.cluster.dir, "--node", "1", check=False)
        self.assertEqual(1, started.returncode, started.stdout)
        for words in ("could not join the gcl pool", "pool.saved.journal: No space left on device", "Give the file system more room"):
            self.assertIn(words, started.stderr)
        self.disk.make_room()
        self.cluster.start()
        self.assertEqual([["1000|333"]] * 3, self.cluster.everywhere("SELECT count(*), count(*) FILTER (WHERE t = '3') FROM b WHERE t <> 'b'"))

    def test_a_checkpoint_that_finds_no_room(self):
        """The one before counts, the servers say why there is no other, and WAL is kept; with room it goes on by itself."""
        for k in (1, 2, 3):
            self.cluster.sql(k, "ALTER SYSTEM SET gcl.checkpoint_timeout = '1s'")
            self.cluster.sql(k, "ALTER SYSTEM SET min_wal_size = '32MB'")
            self.cluster.sql(k, "SELECT pg_reload_conf()")
        began = self.kept_from(1)
        self.fill_pages(1)
        eventually(lambda: self.kept_from(1) > began + SEGMENT, 60)
        self.disk.fill()
        self.fill_pages(2)
        for k in (1, 2, 3):
            self.hears_of_no_room(k)
        checkpoint, kept = self.checkpoint(), self.kept_from(1)
        self.fill_pages(3)
        self.hears_of_no_room(1)
        self.assertEqual((checkpoint, kept), (self.checkpoint(), self.kept_from(1)))
        # Nobody does anything but make room.
        self.disk.make_room()
        eventually(lambda: self.kept_from(1) > kept + 2 * SEGMENT, 60)
        self.assertNotEqual(checkpoint, self.checkpoint())
        # Memory is lost while there is none.
        self.disk.fill()
        self.fill_pages(4)
        self.hears_of_no_room(1)
        self.cluster.close_sessions()
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in (1, 2, 3)]))
        shutil.rmtree(self.cluster.pool_dir())
        self.disk.make_room()
        self.assertRegex(self.cluster.ctl("start", self.cluster.dir).stdout, r"checkpoint \d+ taken up(?s:.*)the pool is whole again")
        self.assertEqual([["5000|3200"]] * 3, self.cluster.everywhere("SELECT count(*), max(length(t)) FROM a"))
        self.assertEqual([[]] * 3, self.cluster.everywhere("SELECT * FROM gcl_check('a', true)"))

    def fill_pages(self, part):
        """More than the checkpoint has places for, and segments of WAL."""
        self.cluster.sql(1, f"INSERT INTO a SELECT i, repeat(md5(i::text), 100) FROM generate_series({part}001, {part + 1}000) i;"
                            f"SELECT pg_switch_wal() IS NOT NULL; INSERT INTO b VALUES (-{part}, 'b'); SELECT pg_switch_wal() IS NOT NULL")
        self.cluster.sql(1, "CHECKPOINT")

    def hears_of_no_room(self, k):
        """From now on, twice: a checkpoint was under way perhaps."""
        said = r"WARNING:  gcl: no checkpoint was made: the command failed.*\n.*DETAIL: (?s:.){1,300}pool\.saved\.\w+(\.next)?: No space left on device"
        before = len(re.findall(said, self.cluster.log(k)))
        eventually(lambda: len(re.findall(said, self.cluster.log(k))) >= before + 2, 60)

    def checkpoint(self):
        with open(f"{self.cluster.dir}/pool.saved.checkpoint", "rb") as file:
            return file.read()

    def kept_from(self, k):
        return int(self.cluster.sql(k, "SELECT restart_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = 'gcl'")[0])

    def test_primaries_join_while_there_is_no_room_for_a_journal(self):
        """They serve their own tables; those of gcl as soon as there is room."""
        self.cluster.sql(3, "CREATE TABLE own (i int) USING heap; INSERT INTO own VALUES (7)")
        self.cluster.stop()  # what is saved has no journal
        self.disk.fill()
        self.cluster.start()
        for k in (1, 2, 3):
            eventually(lambda k=k: "the join of this primary could not be noted" in self.cluster.log(k))
            for words in ("pool.saved.journal: No space left on device", "It tries again each second"):
                self.assertIn(words, self.cluster.log(k))
        three = self.cluster.session(3)
        self.assertEqual("7", three.one("SELECT i FROM own"))
        state, _ = self.error_of(three, "SET statement_timeout = '1s'; SELECT count(*) FROM a")
        self.assertEqual("57014", state)  # else 57P03, after half a minute
        self.disk.make_room()
        eventually(lambda: all(self.serves(k) for k in (1, 2, 3)))
        self.cluster.sql(1, "INSERT INTO a VALUES (-3, 'f')")
        self.assertEqual([["1001"]] * 3, self.cluster.everywhere("SELECT count(*) FROM a"))


    def serves(self, k):
        try:
            return self.cluster.sql(k, "SELECT count(*) FROM a") == ["1000"]
        except SqlError as error:
            self.assertIn(error.state, NOT_SERVING)  # it has not caught up yet
            return False


class Memory(FullDisk):
    def test_tmpfs_is_full(self):
        """The pool has all of its memory since it was made: a primary that is in it goes on, no other joins, and no memory is added."""
        folder = subprocess.run(["mktemp", "-d", "/var/tmp/gcl-memory.XXXXXX"], text=True, capture_output=True, check=True).stdout.strip()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o700)
        small_disk.own(folder)
        disk = SmallDisk(folder, 256)
        self.addCleanup(small_disk.unmount, folder)
        cluster = Cluster(primaries=3, pool=POOL, cache="8MB")
        cluster.arguments += ["--memory-dir", folder]
        self.enterContext(cluster)
        cluster.sql(1, "CREATE TABLE t (i int PRIMARY KEY, t text) USING gcl; INSERT INTO t SELECT i, 'a' FROM generate_series(1, 1000) i")
        cluster.stop(3)
        disk.fill()
        sessions = [cluster.session(k) for k in (1, 2) for _ in range(6)]  # some have no flight recorder
        for session in sessions:
            session.run("UPDATE t SET t = t || 'b' WHERE i = 5")
            self.assertEqual("1000", session.one("SELECT count(*) FROM t"))
        added = cluster.ctl("add-memory", cluster.dir, "64MB", check=False)
        self.assertEqual(1, added.returncode, added.stdout)
        self.assertIn("MB free", added.stderr)
        started = cluster.ctl("start", cluster.dir, "--node", "3", check=False)
        self.assertEqual(1, started.returncode, started.stdout)
        self.assertIn("of shared memory are needed", started.stderr)
        program = glob.glob(f"{cluster.dir}/prefix/**/bin/postgres", recursive=True)[0]
        data = f"{cluster.dir}/node3/data"
        done = subprocess.run([program, "-D", data, "-c", "log_error_verbosity=verbose"], text=True, capture_output=True, timeout=60, cwd=data,
                              check=False, **account())
        self.assertEqual(1, done.returncode, done.stderr)
        for words in ("FATAL:  53100: could not join the gcl pool", "cannot allocate", "HINT:  Give the file system more room"):
            self.assertIn(words, done.stderr)
        disk.make_room()
        cluster.start(3)
        self.assertEqual([["1000"]] * 3, cluster.everywhere("SELECT count(*) FROM t"))


if __name__ == "__main__":
    small_disk.enter_namespace()
    unittest.main(verbosity=2)
