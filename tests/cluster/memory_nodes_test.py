"""Pools of several memory nodes: load from three primaries, a clean stop, memory emptied, and everything there again; and one that grows while it is
in use."""
import glob
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from harness import GCLCTL, TRANSPORT, Cluster, SqlError

ACCOUNTS = 3000
# A tpcb-like transaction: two accounts, a branch that all sessions want, and a line of history.
LOAD = """
DO $$
DECLARE a int; b int;
BEGIN
  FOR i IN 1..{rounds} LOOP
    a := 1 + (random() * ({accounts} - 1))::int;
    b := 1 + (random() * ({accounts} - 1))::int;
    UPDATE account SET balance = balance - 7 WHERE id = least(a, b);  -- in one order: no deadlocks
    UPDATE account SET balance = balance + 7 WHERE id = greatest(a, b);
    UPDATE branch SET balance = balance + 1 WHERE id = {k};
    INSERT INTO history (node, n, note) VALUES ({k}, i, repeat('x', 200));
    COMMIT;
  END LOOP;
END $$"""


class MemoryNodes(unittest.TestCase):
    ROUNDS = 400

    def setUp(self):
        # So that no primary dies while a daemon stands still.
        self.cluster = self.enterContext(Cluster(primaries=3, memory_nodes=2, patience=20))

    def load(self):
        sessions = [self.cluster.session(k) for k in (1, 2, 3)]
        for k, session in enumerate(sessions, 1):
            session.run("SET lock_timeout = '100s'; SET client_min_messages = warning")
            session.send(LOAD.format(rounds=self.ROUNDS, accounts=ACCOUNTS, k=k))
        done = 0
        for session in sessions:
            try:
                session.result(120)
                done += 1
            finally:
                session.close()
        return done

    def assert_all_there(self, loads):
        rows = self.ROUNDS * loads
        for answer in self.cluster.everywhere(
                "SELECT (SELECT count(*) || ' ' || sum(balance) FROM account), "
                "(SELECT string_agg(balance::text, ' ' ORDER BY id) FROM branch), "
                "(SELECT count(*) || ' ' || count(DISTINCT (node, n)) || ' ' || min(length(note)) FROM history)"):
            self.assertEqual([f"{ACCOUNTS} {ACCOUNTS * 1000}|{rows} {rows} {rows}|{3 * rows} {3 * self.ROUNDS} 200"], answer)
        for answer in self.cluster.everywhere(
                "SET enable_seqscan = off; SELECT count(*) FROM account WHERE id BETWEEN 1 AND 1000000"):
            self.assertEqual([str(ACCOUNTS)], answer)

    def files(self):
        return sorted(os.path.basename(f) for f in glob.glob(self.cluster.pool_dir() + "/*") if "node" not in f)

    def test_load_stop_reboot_start(self):
        self.cluster.sql(1, "CREATE TABLE account (id int PRIMARY KEY, balance int) USING gcl;"
                            "CREATE TABLE branch (id int PRIMARY KEY, balance int) USING gcl;"
                            "CREATE TABLE history (node int, n int, note text) USING gcl")
        self.cluster.sql(2, f"INSERT INTO account SELECT i, 1000 FROM generate_series(1, {ACCOUNTS}) i")
        self.cluster.sql(3, "INSERT INTO branch SELECT i, 0 FROM generate_series(1, 3) i")
        self.assertEqual(3, self.load())
        self.assert_all_there(1)
        self.assertEqual(["pool", "pool.lock", "pool.mem1"], self.files())
        # What was loaded lies in both: without memory node 1 there is no answer.
        used = os.stat(self.cluster.pool_dir() + "/pool.mem1")
        self.assertEqual(used.st_blocks * 512, used.st_size, "allocated in full")

        self.assertIn("saved", self.cluster.stop().stdout)
        for name in ("pool.saved", "pool.saved.mem1"):
            # Holes stay holes: what is allocated was written.
            self.assertGreater(os.stat(f"{self.cluster.dir}/{name}").st_blocks * 512, 256 << 10, name)
        shutil.rmtree(self.cluster.pool_dir())
        self.cluster.start()
        self.assertEqual(["pool", "pool.lock", "pool.mem1"], self.files())
        self.assert_all_there(1)
        self.assertEqual(3, self.load())
        self.assert_all_there(2)

        self.cluster.stop()
        self.cluster.start()
        self.assert_all_there(2)

    def test_what_they_have_done_is_shown(self):
        self.cluster.sql(1, "CREATE TABLE t (id int) USING gcl")
        look = "SELECT * FROM gcl_stat_memory_nodes ORDER BY memory_node"
        shown = [row.split("|") for row in self.cluster.sql(2, look)]
        self.assertEqual(["0", "1"], [row[0] for row in shown])
        total = sum(int(row[1]) for row in shown)
        self.assertEqual([str(total)], self.cluster.sql(2, "SELECT pool_pages FROM gcl_stat_space"))
        if TRANSPORT == "shm":
            self.assertEqual([["", "mapped"] + [""] * 9] * 2, [row[2:] for row in shown])
            return
        for row in shown:
            self.assertEqual(["serving", ""], row[3:5])
            links, batches, operations, bytes_in, bytes_out = map(int, row[6:11])
            self.assertGreaterEqual(links, 4, "three primaries, and who asks")
            self.assertGreaterEqual(operations, batches)
            self.assertGreater(float(row[11]) + float(row[12]), 0)
        before = int(shown[0][7])
        self.cluster.sql(3, "INSERT INTO t SELECT generate_series(1, 10000)")
        after = int(self.cluster.sql(1, look)[0].split("|")[7])
        self.assertGreater(after, before)
        # One that stands still: its row says so, and a query that waits for it can be cancelled.
        with open(f"{self.cluster.dir}/memory1/pid", encoding="ascii") as file:
            daemon = int(file.read())
        session = self.cluster.session(2)
        self.addCleanup(session.close)
        session.run("SET statement_timeout = '700ms'")
        os.kill(daemon, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with self.assertRaisesRegex(SqlError, "statement timeout"):
                session.run(look)
            self.assertLess(time.monotonic() - began, 15)
        finally:
            os.kill(daemon, signal.SIGCONT)
        self.assertEqual(2, len(self.cluster.sql(3, look)))

    def test_status_and_a_lost_memory_node(self):
        status = self.cluster.ctl("status", self.cluster.dir).stdout
        for name in ("pool", "pool.mem1"):
            self.assertRegex(status, rf"12[78] MB  {self.cluster.pool_dir()}/{name}\n")
        self.cluster.stop()
        os.rename(self.cluster.pool_dir() + "/pool.mem1", self.cluster.pool_dir() + "/elsewhere")
        status = self.cluster.ctl("status", self.cluster.dir, check=False).stdout
        self.assertRegex(status, r"DAMAGED: memory node 1 of pool .* is missing")
        self.assertRegex(status, r"no file  .*pool\.mem1")
        refused = self.cluster.ctl("start", self.cluster.dir, check=False)
        self.assertNotEqual(0, refused.returncode)
        self.assertIn("memory node 1", refused.stderr)
        os.rename(self.cluster.pool_dir() + "/elsewhere", self.cluster.pool_dir() + "/pool.mem1")
        self.cluster.start()
        pool_dir = self.cluster.pool_dir()
        self.cluster.ctl("destroy", self.cluster.dir)
        self.assertFalse(os.path.exists(pool_dir), "destroy removes every memory node")


class AddMemory(unittest.TestCase):
    """A full pool takes more rows after `gclctl add-memory`, in sessions that were there before."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB", settings=("autovacuum=off",)))

    def insert(self, session, base, rows):
        session.run(f"INSERT INTO t SELECT {base} + i, repeat('x', 900), {base} FROM generate_series(1, {rows}) i", 60)

    def fill(self, session, base, rows=2000):
        """Inserts until there is no room; how many rows went in."""
        total = 0
        while True:
            try:
                self.insert(session, base + total, rows)
                total += rows
            except SqlError as error:
                self.assertEqual("53100", error.state, error)
                if rows == 20:
                    return total
                rows //= 10

    def add(self, size, check=True):
        return self.cluster.ctl("add-memory", self.cluster.dir, size, check=check)

    def description(self):
        """Of the cluster; it is written once."""
        path = self.cluster.dir + "/cluster.conf"
        with open(path, encoding="utf-8") as f:
            return f.read(), os.stat(path).st_ino, os.stat(path).st_mtime_ns

    def extent(self):
        """As status says: MB, and how many memory nodes."""
        said = self.cluster.ctl("status", self.cluster.dir, check=False).stdout
        return int(re.search(r"^pool +(\d+) MB ", said, re.M).group(1)), len(re.findall(r"^ +\d+ MB  /", said, re.M))

    def assert_rows(self, rows):
        for answer in self.cluster.everywhere("SELECT count(*), count(DISTINCT i), min(length(x)) FROM t; SET enable_seqscan = off;"
                                              "SELECT count(*) FROM t WHERE i > 0"):
            self.assertEqual([f"{rows}|{rows}|900", str(rows)], answer)

    def test_a_full_pool_grows_while_it_is_used(self):
        one, two = self.cluster.session(1), self.cluster.session(2)
        one.run("CREATE TABLE t (i int PRIMARY KEY, x text, base int) USING gcl")
        rows = self.fill(one, 0)
        self.assertGreater(rows, 10000)
        rows += self.fill(two, 1000000)  # each has pages of its own to fill before it is refused
        refused = self.add("1MB", check=False)
        self.assertIn("at least 16 MB", refused.stderr)
        refused = self.add("1000000GB", check=False)
        self.assertNotEqual(0, refused.returncode)
        self.assertEqual([], glob.glob(self.cluster.pool_dir() + "/pool.mem*"))
        self.assertEqual((64, 1), self.extent())

        description = self.description()
        self.assertIn("2 memory nodes and 96 MB", self.add("32MB").stdout)
        self.assertEqual((96, 2), self.extent())
        self.assertEqual(description, self.description())
        self.insert(two, 1500000, 100)  # both primaries, in sessions of before
        self.insert(one, 2000000, 5000)
        two.run("UPDATE t SET base = 1 WHERE i > 2000000 AND i % 100 = 0", 60)
        more = 5000 + self.fill(one, 3000000)
        self.assertGreater(more, 10000, "as many as half of what went into the first 64 MB, at least")
        rows += 100 + more
        self.assert_rows(rows)
        self.assertRegex(self.cluster.ctl("status", self.cluster.dir).stdout, r"3[12] MB  .*/pool\.mem1\n")

        one.close(), two.close()
        self.assertIn("saved", self.cluster.stop().stdout)
        shutil.rmtree(self.cluster.pool_dir())
        self.cluster.start()
        self.assert_rows(rows)
        self.cluster.stop()  # a pool that no primary is in grows, too
        self.add("16MB")
        self.cluster.start()
        self.insert(self.cluster.session(2), 5000000, 2000)
        self.assert_rows(rows + 2000)

    def test_what_is_not_saved_is_added_all_the_same(self):
        one = self.cluster.session(1)
        one.run("CREATE TABLE t (i int PRIMARY KEY, x text, base int) USING gcl")
        self.insert(one, 0, 500)
        one.close()
        self.cluster.stop()
        shutil.rmtree(self.cluster.pool_dir())  # a reboot: it is loaded first
        blocked = self.cluster.dir + "/pool.saved.next.mem1"
        os.mkdir(blocked)  # stands for a disk that is full
        said = self.add("16MB", check=False)
        self.assertEqual(2, said.returncode, said.stderr)
        self.assertIn("2 memory nodes and 80 MB", said.stdout)
        self.assertRegex(said.stderr, r"added, but not saved: .*pool\.saved\.next\.mem1.*run gclctl stop")
        self.assertEqual((80, 2), self.extent())
        self.assertIn("NOT SAVED", self.cluster.ctl("status", self.cluster.dir, check=False).stdout)
        os.rmdir(blocked)
        self.assertIn("the pool is saved", self.cluster.stop().stdout)
        shutil.rmtree(self.cluster.pool_dir())
        self.assertEqual((80, 2), self.extent())
        self.cluster.start()
        self.assertEqual((80, 2), self.extent())
        self.assert_rows(500)

    def test_each_of_several_additions_at_once_is_counted_or_refused(self):
        adders = [subprocess.Popen([GCLCTL, "add-memory", self.cluster.dir, "16MB"], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE) for _ in range(4)]
        added = 0
        for adder in adders:
            said, refused = adder.communicate(timeout=60)
            if adder.returncode == 0:
                self.assertRegex(said, r"the pool has \d memory nodes")
                added += 1
            else:
                self.assertIn("is being added", refused)
        self.assertGreater(added, 0)
        self.assertEqual(1 + added, self.extent()[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
