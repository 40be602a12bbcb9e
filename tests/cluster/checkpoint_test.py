"""Checkpoints of a pool in use: a restart takes them up, WAL is let go, and none speaks of what has never happened
(recovery/checkpoint.hpp, tools/gclctl/checkpoint.hpp)."""
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import deaths
from deaths import BANK, BankClient
from harness import GCLCTL, Cluster, eventually, has_memory, together

PRIMARIES = (1, 2, 3)
TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl"
MANY = f"{TABLE}; INSERT INTO t SELECT i, repeat('a', 400) FROM generate_series(1, 3000) i"
SLOT = "SELECT coalesce(restart_lsn - '0/0', 0) FROM pg_replication_slots WHERE slot_name = 'gcl'"
WHOLE = "the pool is whole again"
FRAME, RING_HEADER = 16, 4096


class Checkpoints(unittest.TestCase):
    def make(self, *settings, **options):
        self.cluster = self.enterContext(Cluster(primaries=len(PRIMARIES), settings=settings, **options))

    def checkpoint(self):
        return self.cluster.ctl("checkpoint", self.cluster.dir).stdout

    def lose(self):
        self.cluster.close_sessions()
        living = [k for k in PRIMARIES if has_memory(self.cluster.postmaster(k))]  # a postmaster that was killed has left its file
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in living]))
        shutil.rmtree(self.cluster.pool_dir())

    def start(self):
        said = self.cluster.ctl("start", self.cluster.dir).stdout
        self.assertIn(WHOLE, said)
        return said

    def refused(self):
        done = self.cluster.ctl("start", self.cluster.dir, check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertFalse(os.path.exists(self.cluster.pool_dir() + "/pool"), "nothing half made")
        return done.stderr

    def saved(self, ending=""):
        return f"{self.cluster.dir}/pool.saved{ending}"

    def kept_from(self, k):
        return int(self.cluster.sql(k, SLOT)[0])

    # --- what they are for --------------------------------------------------------------------------------------------

    def test_a_restart_takes_them_up(self):
        """Transactions that are open in one end behind it, on either side; what is behind it comes out of the logs."""
        self.make(memory_nodes=2)
        self.cluster.sql(1, MANY)
        kept, undone = self.cluster.session(2), self.cluster.session(3)
        kept.run("BEGIN; UPDATE t SET v = 'kept' WHERE id BETWEEN 1 AND 10; SAVEPOINT s; UPDATE t SET v = 'kept' WHERE id BETWEEN 11 AND 20")
        undone.run("BEGIN; UPDATE t SET v = 'undone' WHERE id BETWEEN 21 AND 30")
        self.cluster.sql(3, "BEGIN; UPDATE t SET v = 'rolled back' WHERE id = 31; ROLLBACK")
        self.assertRegex(self.checkpoint(), r"checkpoint 1: \d+ records of .* pages changed")
        kept.run("COMMIT")
        self.cluster.sql(1, "DELETE FROM t WHERE id > 2000; CREATE TABLE later (a int) USING gcl; INSERT INTO later VALUES (1)")
        self.assertIn("checkpoint 2: ", self.checkpoint())
        self.cluster.sql(2, "INSERT INTO t SELECT i, 'behind' FROM generate_series(5001, 5010) i")
        for _ in range(2):
            self.lose()
            said = self.start()
            for answer in self.cluster.everywhere("""SELECT count(*), count(*) FILTER (WHERE v = 'kept'), count(*) FILTER (WHERE v = 'behind'),
                    count(*) FILTER (WHERE v IN ('undone', 'rolled back')) FROM t UNION ALL SELECT a, 0, 0, 0 FROM later"""):
                self.assertEqual(["2010|20|10|0", "1|0|0|0"], answer)
            deaths.assert_in_order(self, self.cluster, "t")
            self.assertEqual([], [name for name in os.listdir(self.cluster.dir) if re.search(r"\.(checkpoint|delta)$", name)], "saved, and forgotten")
            self.assertRegex(self.checkpoint(), "checkpoint 1: ")
        self.assertRegex(said, r"checkpoint 1 taken up: \d+ pages")

    def test_wal_is_let_go(self):
        """Each primary's slot moves behind a checkpoint that has its log, by itself; one that was restarted, behind the next."""
        self.make("gcl.checkpoint_timeout=1s", "min_wal_size=32MB", "autovacuum=off")
        self.cluster.sql(1, TABLE)
        before = {k: self.kept_from(k) for k in PRIMARIES}

        ids = iter(range(100))

        def moves(k, count=2):
            was = self.kept_from(k)
            for _ in range(count):
                self.cluster.sql(k, f"INSERT INTO t VALUES ({next(ids)}); SELECT pg_switch_wal() IS NOT NULL")
            eventually(lambda: self.kept_from(k) > was + (count - 1) * (16 << 20))

        for k in PRIMARIES:
            moves(k)
            self.assertGreater(self.kept_from(k), before[k])
        self.cluster.kill_all(2)
        self.cluster.start(2)
        moves(2)
        self.cluster.sql(2, "CHECKPOINT")
        first = min(self.cluster.sql(2, "SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'"))
        self.assertGreater(int(first[8:], 16), 1, "the server has removed what nobody wants")
        self.assertRegex(self.cluster.ctl("status", self.cluster.dir).stdout, r"last checkpoint \d+ s ago")
        self.lose()
        self.assertIn("taken up", self.start())
        self.assertEqual([["8"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_the_journal_does_not_keep_rings(self):
        self.make()
        self.cluster.sql(1, MANY)
        self.cluster.sql(2, "UPDATE t SET v = repeat(md5(id::text), 12)")
        self.cluster.kill_all(2)
        eventually(lambda: os.path.getsize(self.saved(".journal")) > 100_000)
        self.cluster.start(2)
        self.checkpoint()
        self.assertLess(os.path.getsize(self.saved(".journal")), 10_000)
        self.cluster.sql(3, "DELETE FROM t WHERE id > 2990")
        self.lose()
        self.start()
        self.assertEqual([["2990|" + str(2990 * 384)]] * 3, self.cluster.everywhere("SELECT count(*), sum(length(v)) FROM t"))
        deaths.assert_in_order(self, self.cluster, "t")

    # --- what has never happened --------------------------------------------------------------------------------------

    def ring_of(self, k):
        """Where its data begins in the pool's file, and how large that is."""
        said = self.cluster.ctl("inspect", "pool", self.cluster.dir).stdout
        bytes_, at = map(int, re.search(r"redo rings\s+(\d+) bytes at (\d+)", said).groups())
        ring = self.cluster.ctl("inspect", "ring", self.cluster.dir, "--node", str(k), "--last", "100000").stdout
        data = int(re.search(r"ring of (\d+) bytes", ring)[1])
        self.assertEqual(0, bytes_ % (data + RING_HEADER))
        return at + (data + RING_HEADER) * k + RING_HEADER, data, ring

    def end_of_ring(self, k):
        return int(re.search(r"the last one ends at (\d+)", self.ring_of(k)[2])[1])

    def test_a_record_behind_a_hole(self):
        """A session that died while it wrote to the ring: what its primary's log has behind that has never happened, though it
        was flushed (recovery.certain-below-hole)."""
        self.make(cache="8MB")
        self.cluster.sql(1, f"{TABLE}; CREATE TABLE own (a int) USING heap; INSERT INTO t SELECT i, 'old' FROM generate_series(1, 20) i")
        self.checkpoint()
        lost, other = self.cluster.session(1), self.cluster.session(1)
        before = self.end_of_ring(1)
        lost.run("BEGIN; UPDATE t SET v = 'never' WHERE id = 1")
        eventually(lambda: self.end_of_ring(1) > before)  # the page provider brings it there
        end = self.end_of_ring(1)
        lost.run("UPDATE t SET v = 'never' WHERE id = 2")
        eventually(lambda: self.end_of_ring(1) > end)
        other.run("INSERT INTO own VALUES (1)")  # flushes all of it
        processes = [self.cluster.postmaster(1), *self.children_of(self.cluster.postmaster(1))]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        at, data, _ = self.ring_of(1)
        with open(f"{self.cluster.pool_dir()}/pool", "r+b") as pool:
            pool.seek(at + end % data)
            frame = pool.read(FRAME)
            self.assertNotEqual(bytes(FRAME), frame)
            pool.seek(at + end % data)
            pool.write(bytes(FRAME))
        self.assertEqual(end, self.end_of_ring(1), "this is the hole")
        said = self.checkpoint()
        for pid in processes:
            os.kill(pid, signal.SIGCONT)
        self.cluster.kill_all(1)
        self.cluster.close_sessions()
        self.cluster.sql(2, "UPDATE t SET v = 'new' WHERE id IN (2, 3)")
        self.cluster.sql(3, "UPDATE t SET v = 'newer' WHERE id IN (2, 4)")
        expected = self.cluster.sql(2, "SELECT id, v FROM t ORDER BY id")
        self.checkpoint()
        self.lose()
        self.start()
        self.assertEqual([expected] * 3, self.cluster.everywhere("SELECT id, v FROM t ORDER BY id"), said)
        deaths.assert_in_order(self, self.cluster, "t")

    @staticmethod
    def children_of(pid):
        return [int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True).stdout.split()]

    # --- what dies, what is damaged -----------------------------------------------------------------------------------

    def half_made(self, since):
        """Images were written after `since`, and the checkpoint that names them was not."""
        written = self.written(".delta")
        return written > since and written > self.written(".checkpoint")

    def written(self, ending):
        return os.stat(self.saved(ending)).st_mtime_ns

    def test_killed_at_any_moment(self):
        """The one before is whole, and the next goes on: at a random moment; and in every other turn when its pages are written,
        and it is not."""
        self.make("gcl.checkpoint_timeout=0", cache="8MB")
        self.cluster.sql(1, BANK)
        clients = [BankClient(self.cluster, k, f"bank {k}") for k in PRIMARIES]
        for client in clients:
            client.thread.start()
        chance = random.Random(1)
        try:
            deaths.assert_all_work(clients, time.monotonic())
            self.checkpoint()
            halves = 0
            for turn in range(400):
                if halves >= 10 and turn >= 40:
                    break
                before = self.written(".delta")
                making = subprocess.Popen([GCLCTL, "checkpoint", self.cluster.dir], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          start_new_session=True)
                if turn % 2:
                    while making.poll() is None and not self.half_made(before):
                        time.sleep(0.0002)
                else:
                    time.sleep(chance.random() * 0.08)
                if making.poll() is None:
                    os.killpg(making.pid, signal.SIGKILL)  # as root, it works in a child of another account
                making.communicate(timeout=60)  # when both have ended
                halves += self.half_made(before)
            print(f"{halves} of {turn} were half made", flush=True)
            self.assertGreaterEqual(halves, 10)
            deaths.assert_all_work(clients, time.monotonic())
            self.lose()
            self.assertIn("taken up", self.start())
        finally:
            for client in clients:
                client.ended.set()
        deaths.stop(self, clients)
        deaths.assert_bank_kept(self, self.cluster, clients, "bank")

    # --- who waits for it ---------------------------------------------------------------------------------------------

    def standing_still(self, seconds):
        """A checkpoint that was stopped so long after its start; None, if it had ended."""
        making = subprocess.Popen([GCLCTL, "checkpoint", self.cluster.dir], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True)
        time.sleep(seconds)
        os.killpg(making.pid, signal.SIGSTOP)
        state = os.waitid(os.P_PID, making.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if state.si_code == os.CLD_STOPPED:
            return making
        making.wait()
        return None

    def test_no_primary_waits_for_one(self):
        """It stands still at any moment, with all that it has open and locked (checkpoint.suspended-restart): rows and tables are
        changed, and primaries leave and join."""
        self.make("gcl.checkpoint_timeout=0", cache="8MB")
        self.cluster.sql(1, BANK)
        clients = [BankClient(self.cluster, k, f"bank {k}") for k in PRIMARIES]
        for client in clients:
            client.thread.start()
        chance = random.Random(2)
        turns = 0
        try:
            deaths.assert_all_work(clients, time.monotonic())
            began = time.monotonic()
            self.checkpoint()
            longest = time.monotonic() - began
            for _ in range(200):
                if turns == 10:
                    break
                making = self.standing_still((turns + chance.random()) / 10 * longest)
                if making is None:  # it took longer than others do
                    longest *= 0.9
                    continue
                try:
                    k, other = PRIMARIES[turns % 3], PRIMARIES[(turns + 1) % 3]
                    self.cluster.stop(k)
                    self.cluster.start(k)
                    self.cluster.sql(k, f"CREATE TABLE d{turns} (a int) USING gcl; INSERT INTO d{turns} VALUES (1)")
                    self.cluster.sql(other, f"ALTER TABLE d{turns} ADD b int DEFAULT 2; UPDATE d{turns} SET a = 3")
                    deaths.assert_all_work(clients, time.monotonic())
                    self.assertIsNone(making.poll(), "it stands still")
                finally:
                    os.killpg(making.pid, signal.SIGCONT)
                self.assertIn(making.wait(60), (0, 2))
                turns += 1
            self.assertEqual(10, turns, "most checkpoints had ended before they were stopped")
            self.lose()
            self.assertIn("taken up", self.start())
        finally:
            for client in clients:
                client.ended.set()
        deaths.stop(self, clients)
        deaths.assert_bank_kept(self, self.cluster, clients, "bank")
        for turn in range(turns):
            self.assertEqual([["3|2"]] * 3, self.cluster.everywhere(f"SELECT a, b FROM d{turn}"))

    def test_two_at_a_time(self):
        """The second says so, and leaves it to the first."""
        self.make("gcl.checkpoint_timeout=0", "autovacuum=off")
        began = time.monotonic()
        self.cluster.sql(1, MANY)
        self.checkpoint()
        longest, chance = time.monotonic() - began, random.Random(3)
        for turn in range(100):
            self.cluster.sql(2, f"UPDATE t SET v = 'turn {turn}'")
            first = self.standing_still(chance.random() * longest)
            if first is None:  # it took longer than others do
                longest *= 0.9
                continue
            try:
                second = self.cluster.ctl("checkpoint", self.cluster.dir, check=False)
            finally:
                os.killpg(first.pid, signal.SIGCONT)
            code = first.wait(60)
            if "another process makes a checkpoint" in second.stdout:
                break
            self.assertIn(code, (0, 2))  # before it had begun, or when it was done
        else:
            self.fail("none was stopped in the middle")
        self.assertEqual((0, 2), (code, second.returncode), second)
        eventually(self.finds_nothing_new)

    def finds_nothing_new(self):
        done = self.cluster.ctl("checkpoint", self.cluster.dir, check=False)
        return done.returncode == 2 and "the logs have nothing new" in done.stdout

    def damaged(self, ending):
        path = self.saved(ending)
        subprocess.run(["cp", "-a", path, f"{path}.whole"], check=True)  # and whose it is
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    def mended(self, ending):
        os.rename(f"{self.saved(ending)}.whole", self.saved(ending))

    def test_damage_and_loss_are_told(self):
        """Nothing starts with less than was told; given back, all is there."""
        self.make("gcl.checkpoint_timeout=0", "min_wal_size=32MB")
        self.cluster.sql(1, MANY)
        began = self.kept_from(2)
        self.cluster.sql(2, "UPDATE t SET v = 'b'; SELECT pg_switch_wal() IS NOT NULL; UPDATE t SET v = 'c' WHERE id = 2")
        self.checkpoint()
        eventually(lambda: self.kept_from(2) >> 24 > began >> 24)
        self.cluster.sql(2, "CHECKPOINT; UPDATE t SET v = 'c' WHERE id = 1; SELECT pg_switch_wal() IS NOT NULL; CHECKPOINT")
        self.lose()
        self.damaged(".checkpoint")
        self.assertIn("pool.saved.checkpoint is damaged", self.refused())
        self.mended(".checkpoint")
        self.damaged(".delta")
        self.assertRegex(self.refused(), r"page verification failed, calculated checksum \d+ but expected \d+: "
                                         r"page \d+ of memory node 0 in .*pool.saved.delta")
        self.mended(".delta")
        shutil.move(self.saved(".delta"), self.saved(".away"))
        self.assertIn("there is no", self.refused())
        shutil.move(self.saved(".away"), self.saved(".delta"))
        shutil.move(self.saved(".checkpoint"), self.saved(".away"))
        self.assertRegex(self.refused(), "primary 2 has written since the pool was last saved, and its log .* does not go back to")
        shutil.move(self.saved(".away"), self.saved(".checkpoint"))
        self.start()
        self.assertEqual([["3000|2"]] * 3, self.cluster.everywhere("SELECT count(*), count(*) FILTER (WHERE v = 'c') FROM t"))

    def test_another_log_in_its_place(self):
        self.make("gcl.checkpoint_timeout=0")
        self.cluster.sql(1, MANY)
        self.cluster.sql(3, "INSERT INTO t VALUES (0)")
        self.checkpoint()
        self.lose()
        wal = {k: f"{self.cluster.dir}/node{k}/data/pg_wal" for k in PRIMARIES}
        shutil.move(wal[3], self.saved(".wal"))
        subprocess.run(["cp", "-a", wal[1], wal[3]], check=True)
        self.assertRegex(self.refused(), "the log of primary 3 .* is not the one that the last checkpoint was made of")
        shutil.rmtree(wal[3])
        shutil.move(self.saved(".wal"), wal[3])
        self.start()

    def test_a_command_that_fails_is_told(self):
        self.make("gcl.checkpoint_timeout=1s", "gcl.checkpoint_command=echo no room >&2; exit 3", started=())
        self.cluster.sql(1, TABLE)
        eventually(lambda: re.search(r"(?s)WARNING:  gcl: no checkpoint was made.*DETAIL: .*no room.*HINT: ", self.cluster.log(1)))
        self.cluster.sql(1, "INSERT INTO t VALUES (1)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
