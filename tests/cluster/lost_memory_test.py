"""All primaries die at once, and memory with them: the pool is made again out of its last copy and all logs, and nothing that a
client was told is lost (gclctl.restart-from-logs).

Environment: ROUNDS, how often.
"""
import contextlib
import glob
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
from ddl_load import DdlClient, assert_tables_kept
from harness import GCLCTL, Cluster, eventually, together
from list_append import LISTS, ListClient, Lists, assert_lists_kept
from stop_points import STOP_POINTS, Stops

PRIMARIES = (1, 2, 3)
ROUNDS = int(os.environ.get("ROUNDS", 2))
TABLES = ("acct", "hist", "lists")
SETTINGS = ("autovacuum_naptime=1s", "autovacuum_vacuum_threshold=200", "autovacuum_vacuum_scale_factor=0.02")
WHOLE = "the pool is whole again"
HOLE = r"the log of primary 2 \(.*node2/data/pg_wal\) has a hole at [0-9A-F]+/[0-9A-F]+: "


class LostMemory(unittest.TestCase):
    def make(self, *settings, **options):
        self.cluster = self.enterContext(Cluster(primaries=len(PRIMARIES), settings=(*SETTINGS, *settings), **options))

    def lose(self, but=()):
        """The machine loses power, as far as its memory goes."""
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in PRIMARIES if k not in but]))
        shutil.rmtree(self.cluster.pool_dir())

    def start(self):
        done = self.cluster.ctl("start", self.cluster.dir)
        self.assertIn(WHOLE, done.stdout)
        return done.stdout

    def refused(self):
        done = self.cluster.ctl("start", self.cluster.dir, check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertFalse(os.path.exists(self.cluster.pool_dir() + "/pool"), "nothing half made")
        return done.stderr

    # --- under load ---------------------------------------------------------------------------------------------------

    def clients(self, name):
        bank = [BankClient(self.cluster, k, f"{name} {k}.{i}") for k in PRIMARIES for i in range(2)]
        lists = [ListClient(self.cluster, k, f"{name} list {k}", self.lists) for k in PRIMARIES]
        makers = [DdlClient(self.cluster, k, f"ddl {k}") for k in PRIMARIES]
        return bank, lists, makers

    def test_nothing_is_lost(self):
        """Also where primaries have died and were repaired before, and where all of them did."""
        self.make("gcl.checkpoint_timeout=1", cache="8MB", memory_nodes=2)
        self.cluster.sql(1, f"{BANK}; {LISTS}")
        self.lists = Lists("lost")
        bank, lists, makers = self.clients("bank")
        clients = [*bank, *lists, *makers]
        for client in clients:
            client.thread.start()
        try:
            for number in range(ROUNDS):
                self.one_round(number, clients)
        finally:
            for client in clients:
                client.ended.set()
        deaths.stop(self, clients)
        self.assert_all_kept(bank, makers)
        self.cluster.stop()
        self.cluster.start()
        self.assert_all_kept(bank, makers)

    def one_round(self, number, clients):
        chance = random.Random(number)
        deaths.assert_all_work(clients, time.monotonic())
        for died in ([2], [3, 1], [])[number % 3]:  # survivors repair; the repaired one comes back
            self.cluster.kill_all(died)
            time.sleep(chance.random())
            self.cluster.start(died)
        if number % 2:  # all die, and the first that starts repairs alone
            self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in PRIMARIES]))
            self.cluster.start()
        deaths.assert_all_work(clients, time.monotonic())
        time.sleep(chance.random() * 2)
        self.lose()
        began = time.monotonic()
        said = self.start()
        print(f"round {number}: {re.findall('.*applied.*', said)}, {time.monotonic() - began:.1f} s until all are up", flush=True)

    def assert_all_kept(self, bank, makers):
        deaths.assert_bank_kept(self, self.cluster, bank, "bank")
        assert_lists_kept(self, self.cluster, self.lists)
        assert_tables_kept(self, self.cluster, makers)
        deaths.assert_in_order(self, self.cluster, *TABLES)

    # --- what else there is -------------------------------------------------------------------------------------------

    def test_all_kinds_of_things(self):
        self.make()
        self.cluster.stop()  # the copy has nothing yet
        self.cluster.start()
        self.cluster.sql(1, """CREATE TABLE t (id serial PRIMARY KEY, v text, big text) USING gcl; CREATE INDEX ON t (v);
            CREATE TABLE gone (a int) USING gcl; CREATE SEQUENCE s; CREATE TABLE plain (a int) USING heap""")
        self.cluster.sql(2, "INSERT INTO t (v, big) SELECT 'row ' || i, repeat(md5(i::text), 300) FROM generate_series(1, 300) i")
        self.cluster.sql(3, "BEGIN; UPDATE t SET v = 'rolled back'; SAVEPOINT a; DELETE FROM t; ROLLBACK")
        self.cluster.sql(3, """BEGIN; UPDATE t SET v = 'kept' WHERE id % 3 = 0; SAVEPOINT a; DELETE FROM t WHERE id % 2 = 0;
            ROLLBACK TO a; SAVEPOINT b; DELETE FROM t WHERE id > 290; RELEASE b; COMMIT""")
        self.cluster.sql(1, "DROP TABLE gone; INSERT INTO plain VALUES (1); SELECT nextval('s')")
        self.cluster.sql(2, "ALTER TABLE t ADD COLUMN more int DEFAULT 7")
        numbers = [int(self.cluster.sql(k, "SELECT nextval('s')")[0]) for k in PRIMARIES]
        open_ones = [self.cluster.session(k) for k in PRIMARIES]
        for k, session in zip(PRIMARIES, open_ones):
            session.run(f"BEGIN; UPDATE t SET v = 'open' WHERE id = {k}; CREATE TABLE open_{k} (a int) USING gcl" if k == 2 else
                        f"BEGIN; UPDATE t SET v = 'open' WHERE id = {k}")
        self.cluster.sql(3, "INSERT INTO t (v) VALUES ('last')")  # its flush takes what the others have logged along
        self.lose()
        self.cluster.close_sessions()
        self.start()
        for answer in self.cluster.everywhere("""SELECT count(*), count(*) FILTER (WHERE v = 'kept'), count(*) FILTER
                (WHERE v IN ('rolled back', 'open')), sum(more), sum(length(big)) FROM t"""):
            self.assertEqual([f"291|96|0|{291 * 7}|{290 * 32 * 300}"], answer)
        for answer in self.cluster.everywhere("SET enable_seqscan = off; SELECT count(*) FROM t WHERE v = 'kept'"):
            self.assertEqual(["96"], answer)
        for answer in self.cluster.everywhere("SELECT to_regclass('gone'), to_regclass('open_2')"):
            self.assertEqual(["|"], answer)
        again = [int(self.cluster.sql(k, "SELECT nextval('s')")[0]) for k in PRIMARIES]
        self.assertEqual(set(), set(numbers) & set(again))
        deaths.assert_in_order(self, self.cluster, "t")
        self.cluster.sql(2, "INSERT INTO t (v) SELECT 'after' FROM generate_series(1, 1000)")
        self.lose()
        self.start()
        self.assertEqual([["1000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t WHERE v = 'after'"))
        deaths.assert_in_order(self, self.cluster, "t")

    def test_a_removed_primary(self):
        """Its log is kept, also where its data directory is not, until the pool is saved."""
        self.make(spare=1)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; CREATE TABLE own (a int) USING heap")
        self.cluster.sql(3, "INSERT INTO t SELECT generate_series(1, 100)")
        said = self.cluster.ctl("remove-primary", self.cluster.dir, "--node", "3", "--delete-data").stdout
        self.assertIn("its log is kept until the pool is saved", said)
        self.cluster.sql(1, "INSERT INTO t VALUES (101)")
        self.lose(but=[3])
        self.start()
        self.cluster.primaries = 2
        self.assertEqual([["101"]] * 2, self.cluster.everywhere("SELECT count(*) FROM t"))
        self.assertEqual([["1"], ["2"]], [[row] for row in self.cluster.sql(2, "SELECT node FROM gcl_stat_ddl_log_kept ORDER BY node")])
        self.cluster.ctl("add-primary", self.cluster.dir, "--node", "3")
        self.cluster.start(3)
        self.cluster.sql(3, "INSERT INTO t VALUES (102); CREATE TABLE of_three (a int) USING gcl; INSERT INTO of_three VALUES (3)")
        self.cluster.ctl("remove-primary", self.cluster.dir, "--node", "3", "--delete-data")
        self.cluster.ctl("add-primary", self.cluster.dir, "--node", "3")
        self.cluster.start(3)
        self.cluster.sql(3, "INSERT INTO t VALUES (103)")
        self.cluster.primaries = 3
        self.lose()
        self.start()
        self.assertEqual([["103|3"]] * 3, self.cluster.everywhere("SELECT (SELECT count(*) FROM t), (SELECT a FROM of_three)"))
        deaths.assert_in_order(self, self.cluster, "t")
        self.assertTrue([name for name in os.listdir(self.cluster.dir) if name.startswith("removed3.")])
        self.cluster.stop()
        self.assertEqual([], [name for name in os.listdir(self.cluster.dir) if name.startswith("removed")])
        self.cluster.start()
        self.assertEqual([["103"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_a_removed_primary_whose_directory_stays(self):
        """Another directory has its number by then, and another log."""
        self.make(spare=1)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        self.cluster.sql(3, "INSERT INTO t SELECT generate_series(1, 100)")
        # Of commands that were killed (gclctl.removed-log-whole): this one's, and one of a primary that has left since.
        incarnation = self.cluster.sql(1, "SELECT incarnation FROM gcl_stat_cluster WHERE node = 3")[0]
        half, former = (f"{self.cluster.dir}/removed{of}.part" for of in (f"3.{incarnation}", "2.0"))
        for directory in (half, former):
            os.makedirs(directory + "/pg_wal")
            subprocess.run(["chown", "-R", "--reference", self.cluster.dir, directory], check=True)
        said = self.cluster.ctl("remove-primary", self.cluster.dir, "--node", "3").stdout
        self.assertIn("a copy of its log is kept until the pool is saved", said)
        self.assertFalse(os.path.exists(half))
        shutil.move(f"{self.cluster.dir}/node3/data", f"{self.cluster.dir}/away")
        self.assertNotIn("cannot be mended", self.cluster.ctl("add-primary", self.cluster.dir, "--node", "3").stderr)
        self.cluster.start(3)
        self.cluster.sql(3, "INSERT INTO t VALUES (101)")
        self.lose()
        self.start()
        self.assertEqual([["101"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))
        self.cluster.stop()
        self.assertEqual([], [name for name in os.listdir(self.cluster.dir) if name.startswith("removed")])

    def end_of_ring(self, k):
        said = self.cluster.ctl("inspect", "ring", self.cluster.dir, "--node", str(k)).stdout
        return int(re.search(r"the last one ends at (\d+)", said)[1])

    def flushed(self, k):
        return self.cluster.sql(k, "SELECT pg_current_wal_flush_lsn()")

    def test_ids_that_the_dead_ones_log_does_not_know(self):
        """Its ring in the pool is ahead of its log: what it had done and not committed stays undone, and its ids are not used again."""
        # Nothing flushes the log but what a client commits.
        self.make("autovacuum=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB")
        self.cluster.sql(1, "CREATE TABLE t (v text) USING gcl")
        self.cluster.stop()
        for _ in range(10):
            self.cluster.start()
            before, flushed = self.end_of_ring(3), self.flushed(3)
            victim = self.cluster.session(3)
            victim.run("BEGIN; INSERT INTO t VALUES ('not committed')")  # the first ids since its start, whose note is not flushed
            eventually(lambda: self.end_of_ring(3) > before)  # its provider brings redo to the pool
            if self.flushed(3) == flushed:
                break
            self.cluster.stop(3)  # on a slow machine the server did, as it does from time to time
        else:
            self.fail("the log was flushed each time")
        self.cluster.kill_all(3)
        state = "SELECT state FROM gcl_stat_cluster WHERE node = 3"
        eventually(lambda: self.cluster.sql(1, state) != ["live"])
        eventually(lambda: self.cluster.sql(1, state) in ([], ["absent"]))
        self.lose(but=[3])
        self.start()
        self.assertEqual([["0"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))
        for n in range(5):
            self.cluster.sql(3, f"INSERT INTO t VALUES ('{n}')")
        self.assertEqual([["5|0"]] * 3, self.cluster.everywhere("SELECT count(*), count(*) FILTER (WHERE v = 'not committed') FROM t"))

    def test_a_directory_that_is_lost(self):
        """What it had of the log is missed by its name, and not taken for nothing."""
        self.make(spare=1)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        self.cluster.sql(3, "INSERT INTO t SELECT generate_series(1, 100)")
        self.cluster.stop(3)
        shutil.move(f"{self.cluster.dir}/node3/data", f"{self.cluster.dir}/away")
        self.assertIn("a loss of memory cannot be mended", self.cluster.ctl("add-primary", self.cluster.dir, "--node", "3").stderr)
        self.cluster.start(3)
        self.cluster.sql(3, "INSERT INTO t VALUES (101)")
        self.lose()
        self.assertRegex(self.refused(), r"primary 3 has written since .*, and its log \(.*/removed3\.\d+/pg_wal\) does not go back")
        place, = (name for name in os.listdir(self.cluster.dir) if name.startswith("removed3."))
        subprocess.run(["cp", "-a", f"{self.cluster.dir}/away/pg_wal/.", f"{self.cluster.dir}/{place}/pg_wal"], check=True)
        self.start()
        self.assertEqual([["101"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_a_directory_that_was_lost_comes_back(self):
        """A command that makes another one is killed meanwhile: nothing has become of the cluster."""
        self.make()
        c, data = self.cluster, f"{self.cluster.dir}/node3/data"
        c.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        c.sql(3, "INSERT INTO t SELECT generate_series(1, 100)")
        c.stop(3)
        shutil.move(data, f"{c.dir}/away")
        self.kill_an_addition()
        self.assertFalse(os.path.exists(data), "half of a directory")
        shutil.move(f"{c.dir}/away", data)
        c.start(3)
        c.sql(3, "INSERT INTO t VALUES (101)")
        c.ctl("checkpoint", c.dir)
        self.lose()
        self.start()
        self.assertEqual([["101"]] * 3, c.everywhere("SELECT count(*) FROM t"))
        # What is left of one that was killed is in nobody's way.
        c.stop(3)
        shutil.move(data, f"{c.dir}/away")
        self.kill_an_addition()
        c.ctl("add-primary", c.dir, "--node", "3")
        self.assertEqual(["data", "log", "start.lock"], sorted(os.listdir(f"{c.dir}/node3")))
        c.start(3)
        self.assertEqual(["101"], c.sql(3, "SELECT count(*) FROM t"))

    def kill_an_addition(self):
        """While files are copied, which would take minutes; the process that copies them dies, too."""
        program, = glob.glob(f"{self.cluster.dir}/prefix/**/bin/pg_basebackup", recursive=True)
        os.rename(program, f"{program}.quick")
        with open(program, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\necho $$ > {self.cluster.dir}/node3/copies; exec "$0.quick" --max-rate=32k "$@"\n')
        os.chmod(program, 0o755)
        parts = f"{self.cluster.dir}/node3/data.part.*"
        before = glob.glob(parts)
        adds = subprocess.Popen([GCLCTL, "add-primary", self.cluster.dir, "--node", "3"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)
        eventually(lambda: [part for part in glob.glob(parts) if part not in before and glob.glob(f"{part}/*/*")])
        os.killpg(adds.pid, signal.SIGKILL)
        self.assertEqual(-signal.SIGKILL, adds.wait())
        with open(f"{self.cluster.dir}/node3/copies", encoding="ascii") as file:
            os.killpg(int(file.read()), signal.SIGKILL)  # a group of its own
        os.remove(f"{self.cluster.dir}/node3/copies")
        os.rename(f"{program}.quick", program)
        copying = "SELECT count(*) FROM pg_stat_replication WHERE application_name LIKE 'pg_basebackup%'"
        eventually(lambda: self.cluster.sql(1, copying) == ["0"])

    def test_memory_that_was_added(self):
        self.make(pool="64MB")
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, pad text) USING gcl")
        self.cluster.ctl("add-memory", self.cluster.dir, "64MB")
        self.cluster.ctl("add-memory", self.cluster.dir, "32MB")
        for k in PRIMARIES:
            self.cluster.sql(k, f"INSERT INTO t SELECT i, repeat('{k}', 2000) FROM generate_series({k}0001, {k}9999) i")
        self.assertGreater(int(self.cluster.sql(1, "SELECT pg_relation_size('t') / 8192")[0]), 3500)  # more than in any one of them
        self.lose()
        self.start()
        count = 3 * 9999
        self.assertEqual([[f"{count}|{count * 2000}"]] * 3, self.cluster.everywhere("SELECT count(*), sum(length(pad)) FROM t"))
        deaths.assert_in_order(self, self.cluster, "t")
        self.cluster.stop()
        self.cluster.start()
        self.assertEqual([[str(count)]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_what_was_in_doubt(self):
        """Decided by its server's log, or as an administrator has decided; and as all had seen it where it was not in doubt."""
        self.make(STOP_POINTS)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl; INSERT INTO t SELECT i, 'old' FROM generate_series(1, 7) i")
        self.cluster.sql(2, "CREATE TABLE own (a int) USING heap")
        cases = ((1, "xact_locally_committed", True, None, "new"), (2, "xact_prepared", True, None, "old"),
                 (3, "xact_locally_committed", True, False, "old"), (4, "xact_prepared", True, True, "new"),
                 # Of gcl tables alone: survivors roll it back, whatever its server's log says.
                 (5, "xact_locally_committed", False, None, "old"), (6, "xact_prepared", False, None, "old"),
                 (7, "xact_prepared", True, True, "new"))  # with a savepoint (txn.savepoints-durable-first)
        for id_, point, mixed, decided, expected in cases:
            with self.subTest(point=point, mixed=mixed, decided=decided):
                session = self.cluster.session(2)
                begin = "BEGIN; UPDATE t SET v = v WHERE id = 1; SAVEPOINT s" if id_ == 7 else "BEGIN"
                session.run(f"{begin}; UPDATE t SET v = 'new' WHERE id = {id_}" + ("; INSERT INTO own VALUES (1)" if mixed else ""))
                pid = session.pid()
                Stops(self.cluster).attach(2, point, pid)
                session.send("COMMIT")
                stands = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'GclStop_{point}'"
                eventually(lambda stands=stands: self.cluster.sql(2, stands) == ["1"])
                self.cluster.kill_all(2)
                if mixed:
                    eventually(lambda: self.cluster.sql(1, "SELECT node FROM gcl_in_doubt") == ["2"])
                else:
                    self.assertEqual([], self.cluster.sql(1, f"UPDATE t SET v = v WHERE id = {id_}"))
                if decided is not None:
                    self.cluster.sql(3, f"SELECT gcl_resolve_in_doubt(node, id, {decided}) FROM gcl_in_doubt")
                    self.assertEqual([expected], self.cluster.sql(1, f"SELECT v FROM t WHERE id = {id_}"))
                self.lose(but=[2])
                self.cluster.close_sessions()
                self.start()
                self.assertEqual([[expected]] * 3, self.cluster.everywhere(f"SELECT v FROM t WHERE id = {id_}"))
                self.assertEqual([[]] * 3, self.cluster.everywhere("SELECT * FROM gcl_in_doubt"))
                self.cluster.sql(1, f"UPDATE t SET v = v WHERE id = {id_}")
        deaths.assert_in_order(self, self.cluster, "t")

    # --- what fails ---------------------------------------------------------------------------------------------------

    def test_a_log_that_is_missing(self):
        """Nothing starts with less than was told; given back, all is there."""
        self.make("wal_keep_size=0", "min_wal_size=32MB")
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        self.cluster.sql(2, "INSERT INTO t SELECT generate_series(1, 100)")
        self.cluster.sql(2, "SELECT pg_switch_wal() IS NOT NULL; INSERT INTO t VALUES (101)")
        self.lose()
        self.assertIn("LOST with the memory", self.cluster.ctl("status", self.cluster.dir, check=False).stdout)
        wal = f"{self.cluster.dir}/node2/data/pg_wal"
        first = min(name for name in os.listdir(wal) if re.fullmatch("[0-9A-F]{24}", name))
        shutil.move(f"{wal}/{first}", f"{self.cluster.dir}/{first}")
        self.assertIn("primary 2 has written since the pool was last saved, and its log", self.refused())
        shutil.move(f"{self.cluster.dir}/{first}", f"{wal}/{first}")
        shutil.move(f"{self.cluster.dir}/node2", f"{self.cluster.dir}/away")
        self.assertRegex(self.refused(), "primary 2 has written since the pool was last saved, and there is no .*node2/data")
        shutil.move(f"{self.cluster.dir}/away", f"{self.cluster.dir}/node2")
        self.start()
        self.assertEqual([["101"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_a_log_with_a_hole(self):
        """What is behind a segment that is gone or damaged would be missed without a word: a server takes it for the end of its log.
        Given back, all is there."""
        self.make("min_wal_size=32MB", "checkpoint_timeout=1h")
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        wal = f"{self.cluster.dir}/node2/data/pg_wal"
        for first, noted in (1, "SELECT 1"), (11, "CHECKPOINT"):  # by nothing but the log itself; by the server's control file
            in_segment = []
            for i in range(first, first + 5):
                in_segment += self.cluster.sql(2, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
                self.cluster.sql(2, f"INSERT INTO t VALUES ({i})")
                self.cluster.sql(2, "SELECT pg_switch_wal() IS NOT NULL")
            self.cluster.sql(2, f"INSERT INTO t VALUES ({first + 5})")
            self.cluster.sql(2, noted)
            middle, last = (f"{wal}/{in_segment[i]}" for i in (2, 4))
            self.lose()
            for segment in middle, last:
                with self.subTest(noted, gone=segment):
                    shutil.move(segment, f"{self.cluster.dir}/away")
                    self.assertRegex(self.refused(), HOLE)
                    shutil.move(f"{self.cluster.dir}/away", segment)
            for segment, at in [(one, at) for one in (middle, last) for at in (8, self.place_in_record(one))]:
                with self.subTest(noted, damaged=segment, at=at), open(segment, "r+b") as file:
                    file.seek(at)
                    byte = file.read(1)
                    file.seek(at)
                    file.write(bytes([byte[0] ^ 1]))
                    file.flush()
                    self.assertRegex(self.refused(), HOLE)
                    file.seek(at)
                    file.write(byte)
            self.start()
            self.assertEqual([["6" if first == 1 else "12"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def place_in_record(self, segment):
        """Of a byte of the first record that begins there."""
        with open(segment, "rb") as file:
            page = file.read(8192)
        return 40 + (int.from_bytes(page[16:20], "little") + 7) // 8 * 8 + 30

    def half_made(self):
        """The files of a pool that is being made, or was when gclctl died; each with what tells it from a former one's."""
        found = set()
        for path in glob.glob(f"{self.cluster.dir}/*restart*") + glob.glob(f"{self.cluster.pool_dir()}/*restart*"):
            with contextlib.suppress(FileNotFoundError):
                file = os.stat(path)
                found.add((path, file.st_ino, file.st_ctime_ns))
        return found

    def test_it_is_begun_again(self):
        """gclctl dies in the middle, at any moment; and in every other round when the files of the new pool have just begun."""
        self.make(memory_nodes=2)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, pad text) USING gcl")
        self.cluster.sql(2, "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i")
        self.lose()
        took, chance, half = 2.0, random.Random(1), 0
        for number in range(12):
            former = self.half_made()
            process = subprocess.Popen([os.environ["GCLCTL"], "start", self.cluster.dir], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True, start_new_session=True)
            if number % 2:
                eventually(lambda: self.half_made() - former or process.poll() is not None)
            else:
                time.sleep(chance.random() * took)
            if process.poll() is None and not os.path.exists(f"{self.cluster.pool_dir()}/pool"):
                os.killpg(process.pid, signal.SIGKILL)  # as root, it works in a child of another account
            said = process.communicate(timeout=120)[0]  # when all of them have ended
            half += not os.path.exists(f"{self.cluster.pool_dir()}/pool") and bool(self.half_made() - former)
            if WHOLE in said or os.path.exists(f"{self.cluster.pool_dir()}/pool"):
                self.cluster.start()  # some of its servers may be on their way
                self.assertEqual([["20000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))
                self.cluster.sql(3, f"UPDATE t SET pad = 'round {number}' WHERE id = {number}")
                self.lose()
        print(f"{half} of 12 left a pool half made", flush=True)
        self.assertGreater(half, 0)
        self.start()
        self.assertEqual([["20000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))
        deaths.assert_in_order(self, self.cluster, "t")
        self.assertEqual([], [name for name in os.listdir(self.cluster.dir) if "restart" in name])
        self.assertEqual([], [name for name in os.listdir(self.cluster.pool_dir()) if "restart" in name])


if __name__ == "__main__":
    unittest.main(verbosity=2)
