"""Backups while all primaries work (gclctl.backup-is-power-loss): what a cluster that is made of one has, and has not; what is no
backup; and what of the cluster goes on meanwhile.
"""
import calendar
import fcntl
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import deaths
from deaths import BANK, BankClient, Client
from ddl_load import DdlClient
from harness import GCLCTL, LONGER, Cluster, SqlError, eventually, new_dir
from list_append import LISTS, ListClient, Lists
from restored import Restored
from stop_points import STOP_POINTS, Stops

PRIMARIES = (1, 2, 3)
TABLES = ("acct", "hist", "lists", "chain")
SETTINGS = ("gcl.checkpoint_timeout=1s", "autovacuum_naptime=1s", "autovacuum_vacuum_threshold=200", "autovacuum_vacuum_scale_factor=0.02")
OPERATING = pathlib.Path(__file__).parents[2] / "docs" / "OPERATING.md"
PAUSE = 1.0  # seconds before each backup
BACKUPS = 2 * LONGER  # under load


class ChainClient(Client):
    """Each transaction is on another primary than the one before, and follows it: of gcl tables and ordinary ones in turn."""

    def __init__(self, cluster):
        super().__init__(cluster, 1, "chain")
        self.n, self.owns = 0, []

    def transaction(self, _):
        sessions = [self.cluster.session(k) for k in PRIMARIES]
        while not self.ended.is_set():
            self.n += 1
            self.step(sessions[self.n % 3], self.n, "INSERT INTO chain SELECT coalesce(max(n), 0) + 1 FROM chain")
            self.step(sessions[(self.n + 1) % 3], -self.n, f"INSERT INTO own VALUES ({self.n})")

    def step(self, session, n, sql):
        self.unknown.add(n)
        session.run(sql)
        self.unknown.discard(n)
        self.told[n] = time.monotonic()
        self.times.append(self.told[n])


class TimedDdlClient(DdlClient):
    """`done`: (when it was told, number, whether it is there)."""

    def __init__(self, cluster, k, name):
        super().__init__(cluster, k, name)
        self.done = []

    def does(self, session, n, sql, done):
        super().does(session, n, sql, done)
        self.done.append((time.monotonic(), n, done is self.made))


def examples():
    """Of the manual's chapter: the words of each line, of each example."""
    chapter = re.search(r"^## Backup and restore$(.*?)^## ", OPERATING.read_text(encoding="utf-8"), re.M | re.S).group(1)
    blocks = re.findall(r"^```$\n(.*?)^```$", chapter, re.M | re.S)
    return [[shlex.split(line, comments=True) for line in block.splitlines()] for block in blocks]


def time_of(backup):
    with open(f"{backup}/backup.gcl", encoding="ascii") as file:
        return re.search(r"^time=(.*)$", file.read(), re.M).group(1)


def moment_of(text):
    """A cut's time, on this process's clock."""
    date, fraction = re.fullmatch(r"([-0-9]* [:0-9]*)(\.\d+)\+00", text).groups()
    return calendar.timegm(time.strptime(date, "%Y-%m-%d %H:%M:%S")) + float(fraction) - time.time() + time.monotonic()


class Backup(unittest.TestCase):
    def make(self, *settings, **options):
        self.cluster = self.enterContext(Cluster(primaries=len(PRIMARIES), settings=(*SETTINGS, *settings), **options))

    def new_place(self):
        place = new_dir()
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        os.chmod(place, 0o755)
        return f"{place}/backup"

    def back_up(self):
        place = self.new_place()
        said = self.cluster.ctl("backup", self.cluster.dir, place).stdout
        print(re.search("commits were held for .*", said).group(0))
        return place

    def refused(self, *arguments):
        done = self.cluster.ctl(*arguments, check=False)
        self.assertEqual(1, done.returncode, done.stdout)
        return done.stderr

    # --- under load ---------------------------------------------------------------------------------------------------

    def test_what_was_told_before_is_there_and_nothing_after(self):
        self.make(cache="8MB", memory_nodes=2)
        self.cluster.sql(1, f"{BANK}; {LISTS}; CREATE TABLE chain (n int PRIMARY KEY) USING gcl")
        self.cluster.everywhere("CREATE TABLE own (n int) USING heap")
        lists = Lists("backup")
        bank = [BankClient(self.cluster, k, f"bank {k}.{i}") for k in PRIMARIES for i in range(2)]
        others = [ListClient(self.cluster, k, f"list {k}", lists) for k in PRIMARIES]
        makers = [TimedDdlClient(self.cluster, k, f"ddl {k}") for k in PRIMARIES[:2]]
        chain = ChainClient(self.cluster)
        clients = [*bank, *others, *makers, chain]
        try:
            for client in clients[:-1]:
                client.thread.start()
            deaths.assert_all_work(clients[:-1], time.monotonic())
            self.cluster.kill_all(2)  # so the journal has more than joins
            self.cluster.start(2)
            chain.thread.start()
            deaths.assert_all_work(clients, time.monotonic())
            backups = []
            for _ in range(BACKUPS):
                time.sleep(PAUSE)
                backups.append(self.back_up())
                deaths.assert_all_work(clients, time.monotonic())
        finally:
            for client in clients:
                client.ended.set()
        deaths.stop(self, clients)
        values = self.read_lists(self.cluster)
        for backup in backups:
            moment = moment_of(time_of(backup))
            print(f"commits before and after the cut: {[sum((t < moment) == b for c in clients for t in c.times) for b in (True, False)]}")
            with Restored(self.cluster, backup) as other:
                self.assert_bank(other, bank, moment)
                self.assert_tables(other, makers, moment)
                self.assert_lists(self.read_lists(other), values, lists, others, moment)
                self.assert_chain(other, chain, moment)
                deaths.assert_in_order(self, other, *TABLES)
                other.sql(2, "INSERT INTO hist VALUES ('restored', 1)")
                other.stop()
                self.assertIn(" 0 bad", other.ctl("verify", other.dir).stdout)
                other.start()
                self.assert_bank(other, bank, moment)

    def assert_bank(self, other, clients, moment):
        """Of each client all that it was told before the cut, at most one more that was under way, and none that began later."""
        for k in PRIMARIES:
            self.assertEqual([str(deaths.ACCOUNTS * deaths.EACH)], other.sql(k, "SELECT sum(bal) FROM acct"))
            for client in clients:
                found = {int(n) for n in other.sql(k, f"SELECT n FROM hist WHERE who = '{client.name}'")}
                told = {n for n, when in client.told.items() if when < moment}
                self.assertEqual(set(), told - found, f"{client.name}: told, and not there")
                extra = {n for n in found - told if n not in client.unknown}
                self.assertLessEqual(len(extra), 1, f"{client.name}: later than the cut {extra}")

    def assert_tables(self, other, makers, moment):
        for k in PRIMARIES:
            there = set(other.sql(k, "SELECT relname FROM pg_class WHERE relkind = 'r'"))
            for maker in makers:
                found = {n for n in range(1, maker.n + 1) if maker.table(n) in there}
                known = {}
                for when, n, made in maker.done:
                    if when < moment:
                        known[n] = made
                before = {n for n, made in known.items() if made}
                later = [n for when, n, _ in maker.done if when >= moment][:1]  # it may have been under way
                self.assertEqual(set(), before - found - maker.unknown - set(later), f"{maker.name} on primary {k}")
                self.assertEqual(set(), found - before - maker.unknown - set(later), f"{maker.name} on primary {k}")

    def read_lists(self, cluster):
        rows = [cluster.sql(k, "SELECT id, v FROM lists ORDER BY id") for k in PRIMARIES]
        self.assertEqual([rows[0]] * len(PRIMARIES), rows)
        return {int(of): [int(value) for value in values.strip("{}").split(",")] for of, values in (row.split("|") for row in rows[0])}

    def assert_lists(self, restored, final, lists, clients, moment):
        """Each list is the beginning of what it became; and a transaction that is there has seen only what is there."""
        there = {number for values in restored.values() for number in values}
        for of, values in restored.items():
            self.assertEqual(final[of][:len(values)], values)
        for number in there:
            mine = lists.transactions[number]
            self.assertEqual(set(), {of for of in mine.appends if number not in restored.get(of, [])}, "half of a transaction")
            for read in mine.reads:
                self.assertEqual(read.values, restored.get(read.of, [])[:len(read.values)], f"{number} has seen what is not there")
        for client in clients:
            told = {n for n, when in client.told.items() if when < moment}
            self.assertEqual(set(), {n for n in told if lists.transactions[n].appends} - there)

    def assert_chain(self, other, chain, moment):
        rows = [other.sql(k, "SELECT n FROM chain ORDER BY n") for k in PRIMARIES]
        own = sorted(int(n) for answer in other.everywhere("SELECT n FROM own") for n in answer)
        self.assertEqual([rows[0]] * 3, rows)
        self.assertEqual(list(range(1, len(rows[0]) + 1)), [int(n) for n in rows[0]])
        self.assertEqual(list(range(1, len(own) + 1)), own)
        self.assertIn(len(rows[0]) - len(own), (0, 1))
        told = [n for n, when in chain.told.items() if when < moment]
        self.assertLessEqual(max([n for n in told if n > 0], default=0), len(rows[0]))
        self.assertLessEqual(max([-n for n in told if n < 0], default=0), len(own))

    # --- the hold of commits ------------------------------------------------------------------------------------------

    def test_commits_wait_and_go_on(self):
        self.make()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t VALUES (1, 0), (2, 0)")
        self.cluster.sql(1, "CREATE TABLE own (n int) USING heap")
        holder, one, two, reader = (self.cluster.session(1) for _ in range(4))
        holder.run("SELECT gcl_hold_commits(60000)")
        one.send("UPDATE t SET v = 1 WHERE id = 1")
        two.send("INSERT INTO own VALUES (1)")
        held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'GclHeldCommit' AND backend_type = 'client backend'"
        eventually(lambda: reader.run(held) == ["2"])
        self.assertTrue(one.waits() and two.waits())
        self.assertEqual(["0"], reader.run("SELECT v FROM t WHERE id = 1"))  # a session that only reads does not wait
        with self.assertRaises(SqlError) as refused:
            reader.run("SELECT gcl_hold_commits(1000)")
        self.assertEqual("55006", refused.exception.state)
        cancelled = self.cluster.session(1)
        pid = cancelled.pid()
        cancelled.send("INSERT INTO own VALUES (2)")
        cancelled.waits_for("GclHeldCommit")
        reader.run(f"SELECT pg_cancel_backend({pid})")
        with self.assertRaises(SqlError) as refused:
            cancelled.result()
        self.assertEqual("57014", refused.exception.state)
        self.assertEqual(["t"], holder.run("SELECT gcl_release_commits()"))
        one.result()
        two.result()
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT v FROM t WHERE id = 1"))
        self.assertEqual(["1"], self.cluster.sql(1, "SELECT n FROM own"))
        self.assertEqual(["f"], holder.run("SELECT gcl_release_commits()"))

    def test_a_hold_ends_by_itself(self):
        """At its deadline, and when its session ends in whatever way."""
        self.make()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t VALUES (1, 0)")
        holder, writer = self.cluster.session(1), self.cluster.session(1)
        began = time.monotonic()
        holder.run("SELECT gcl_hold_commits(1500)")
        writer.run("UPDATE t SET v = 1")
        self.assertGreater(time.monotonic() - began, 1.0)
        self.assertEqual(["f"], holder.run("SELECT gcl_release_commits()"))
        holder.run("SELECT gcl_hold_commits(60000)")
        writer.send("UPDATE t SET v = 2")
        writer.waits_for("GclHeldCommit")
        self.cluster.sql(1, f"SELECT pg_terminate_backend({holder.pid()})")
        writer.result()
        other = self.cluster.session(1)
        other.run("SELECT gcl_hold_commits(60000)")
        writer.send("UPDATE t SET v = 3")
        writer.waits_for("GclHeldCommit")
        other.close()
        writer.result()
        self.assertEqual(["3"], self.cluster.sql(3, "SELECT v FROM t"))

    def test_pages_stay_where_commits_are_held(self):
        """What is changed behind the position is seen by no other primary before the release (hold.pages-stay)."""
        self.make()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t VALUES (1, 0)")
        holder, writer, reader = self.cluster.session(1), self.cluster.session(1), self.cluster.session(2)
        reader.run("SELECT * FROM t")
        for ms, ends in ((60000, lambda: holder.run("SELECT gcl_release_commits()")), (12000, lambda: None)):
            holder.run(f"SELECT gcl_hold_commits({ms})")
            writer.run("BEGIN; UPDATE t SET v = v + 1")
            reader.send("SELECT v FROM t")
            reader.waits_for("GclPeer")
            self.assertTrue(reader.waits(1))
            ends()
            self.assertEqual(["0"], reader.result())
            writer.run("ROLLBACK")

    def test_who_may_hold(self):
        self.make()
        self.cluster.sql(1, "CREATE ROLE joe LOGIN")
        for call in ("gcl_hold_commits(100)", "gcl_release_commits()"):
            with self.assertRaises(SqlError) as refused:
                self.cluster.sql(1, f"SET ROLE joe; SELECT {call}")
            self.assertEqual("42501", refused.exception.state)
        for ms in (0, 60001):
            with self.assertRaises(SqlError) as refused:
                self.cluster.sql(1, f"SELECT gcl_hold_commits({ms})")
            self.assertEqual("22023", refused.exception.state)

    def test_a_commit_that_stands_still(self):
        """The backup says so and ends; nobody else is kept from committing."""
        self.make(STOP_POINTS)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl")
        stops, writer = Stops(self.cluster), self.cluster.session(2)
        stop = stops.attach(2, "xact_prepared", writer.pid())
        writer.send("INSERT INTO t VALUES (1)")
        pid = stop.reached()
        place = self.new_place()
        said = self.refused("backup", self.cluster.dir, place)
        self.assertRegex(said, "no moment was found")
        self.assertRegex(said, f"Process {pid} has begun to commit")
        self.assertFalse(os.path.exists(place))
        for k in PRIMARIES:
            self.cluster.sql(k, f"INSERT INTO t VALUES ({10 + k})")
        stop.go_on()
        writer.result()
        self.cluster.ctl("backup", self.cluster.dir, place)
        with Restored(self.cluster, place) as other:
            self.assertEqual([["4"]] * 3, other.everywhere("SELECT count(*) FROM t"))

    # --- what is no backup --------------------------------------------------------------------------------------------

    def test_an_interrupted_backup_is_none(self):
        self.make()
        place = self.new_place()
        with subprocess.Popen([GCLCTL, "backup", self.cluster.dir, place], stdout=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            self.assertIn("primary 1", process.stdout.readline())
            self.assertIn("primary 2", process.stdout.readline())
            os.killpg(process.pid, signal.SIGKILL)
        eventually(lambda: self.cluster.sql(2, "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'walsender'") == [])
        self.assertTrue(os.path.exists(f"{place}/node1/data/PG_VERSION"))
        self.assertIn("no whole backup", self.refused("verify-backup", place))
        new = self.new_place()
        self.assertIn("no whole backup", self.refused("restore", place, new))
        self.assertFalse(os.path.exists(new))
        self.assertIn("not empty", self.refused("backup", self.cluster.dir, place))
        self.back_up()

    def test_damage_is_found(self):
        self.make(spare=len(PRIMARIES))
        port = str(self.cluster.ports.base + len(PRIMARIES))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t SELECT generate_series(1, 1000)")
        place = self.back_up()
        wal = sorted(os.listdir(f"{place}/node2/data/pg_wal"))[0]
        self.assertIn("is whole", self.cluster.ctl("verify-backup", place).stdout)
        for path, at in ((f"node2/data/pg_wal/{wal}", 5000), ("pool.saved", 9000), ("pool.saved.journal", 50), ("cluster.gcl", 3),
                         ("node1/data/global/pg_control", 20), ("node3/data/base/1/1259", 100), ("backup.gcl", 60)):
            with self.subTest(path):
                with open(f"{place}/{path}", "r+b") as file:
                    file.seek(at)
                    before = file.read(1)
                    file.seek(at)
                    file.write(bytes([before[0] ^ 1]))
                try:
                    self.assertIn(os.path.basename(path), self.refused("verify-backup", place))
                    new = self.new_place()
                    self.assertIn(os.path.basename(path), self.refused("restore", place, new, "--port", port))
                    self.assertFalse(os.path.exists(new))
                finally:
                    with open(f"{place}/{path}", "r+b") as file:
                        file.seek(at)
                        file.write(before)
        with open(f"{place}/backup.gcl", "r+b") as file:
            text = file.read()
            file.seek(text.index(b"format 1") + len("format "))
            file.write(b"2")
            file.flush()
            self.assertIn("backup.gcl has format 2, and format 1 is read here; a later version of gclctl wrote it", self.refused("verify-backup", place))
            file.seek(0)
            file.write(text)
        os.rename(f"{place}/node2/data/pg_wal/{wal}", f"{place}/{wal}")
        self.assertIn(f"{wal} is missing", self.refused("verify-backup", place))
        os.rename(f"{place}/{wal}", f"{place}/node2/data/pg_wal/{wal}")
        self.cluster.ctl("verify-backup", place)

    def test_what_cannot_be_backed_up(self):
        self.make()
        self.cluster.stop(2)
        self.assertIn("primary 2 does not run", self.refused("backup", self.cluster.dir, self.new_place()))
        self.cluster.start(2)
        eventually(lambda: self.cluster.sql(2, "SELECT 1") == ["1"])
        self.cluster.ctl("backup", self.cluster.dir, self.new_place())
        with open(f"{self.cluster.dir}/pool.saved.checkpoint.lock", "a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("in use by another backup", self.refused("backup", self.cluster.dir, self.new_place()))

    def test_a_server_with_prepared_transactions(self):
        self.make("max_prepared_transactions=2")
        self.assertIn("max_prepared_transactions", self.refused("backup", self.cluster.dir, self.new_place()))

    def test_a_tablespace(self):
        self.make()
        place = os.path.dirname(self.new_place())
        if os.geteuid() == 0:
            shutil.chown(place, "postgres", "postgres")
        self.cluster.sql(2, f"CREATE TABLESPACE elsewhere LOCATION '{place}'")
        self.assertIn('primary 2 has tablespace "elsewhere"', self.refused("backup", self.cluster.dir, self.new_place()))

    def test_all_are_stopped_meanwhile(self):
        self.make()
        place = self.new_place()
        with subprocess.Popen([GCLCTL, "backup", self.cluster.dir, place], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            self.assertIn("primary 1", process.stdout.readline())
            self.cluster.stop()
            self.assertIn("gclctl: ", process.stderr.read())
        self.assertEqual(1, process.returncode)
        self.assertFalse(os.path.exists(place))
        self.cluster.start()
        self.cluster.ctl("backup", self.cluster.dir, place)

    # --- points between backups ---------------------------------------------------------------------------------------

    def test_a_restored_cluster_writes_into_no_archive(self):
        """Whatever ALTER SYSTEM has set in the cluster that the backup is of; its port, likewise, stays its own."""
        self.make(spare=len(PRIMARIES))
        archive, command = self.new_archive()
        for k in PRIMARIES:
            self.cluster.sql(k, f"ALTER SYSTEM SET archive_command = '{command}'")
            self.cluster.sql(k, "ALTER SYSTEM SET archive_mode = on")
            self.cluster.sql(k, "ALTER SYSTEM SET work_mem = '5MB'")
            with open(f"{self.cluster.dir}/node{k}/data/postgresql.conf", "a", encoding="utf-8") as file:
                file.write("archive_mode = always\n")  # behind gclctl's
        self.cluster.stop()
        self.cluster.start()
        self.cluster.everywhere("SELECT pg_switch_wal()")
        eventually(lambda: all(os.listdir(f"{archive}/node{k}") for k in PRIMARIES))
        backup = self.back_up()
        before = {path: path.read_bytes() for path in pathlib.Path(archive).glob("node*/*")}
        with Restored(self.cluster, backup) as other:
            self.assertEqual([["off"]] * 3, other.everywhere("SHOW archive_mode"))
            other.everywhere("SELECT pg_switch_wal()")
            self.assertEqual(before, {path: path.read_bytes() for path in before})
            self.assertEqual([["5MB"]] * 3, other.everywhere("SHOW work_mem"), "all else is as it was set")
        for k in PRIMARIES:
            self.cluster.sql(k, f"ALTER SYSTEM SET port = {self.cluster.ports.base + k - 1}")
            self.cluster.sql(k, "ALTER SYSTEM SET \"GCL.Pool_File\" = '/no/where'")
        with Restored(self.cluster, self.back_up()) as other:
            self.assertEqual([[str(other.ports.base + k - 1)] for k in PRIMARIES], other.everywhere("SHOW port"))
            self.assertEqual([[f"{other.dir}/pool.saved"]] * 3, other.everywhere("SHOW gcl.pool_file"))
        for k in PRIMARIES:
            self.cluster.sql(k, "ALTER SYSTEM RESET \"GCL.Pool_File\"")

    def new_archive(self):
        """Its directory, and the manual's command."""
        archive = os.path.dirname(self.new_place())
        for k in PRIMARIES:
            os.mkdir(f"{archive}/node{k}")
        for directory in (archive, *(f"{archive}/node{k}" for k in PRIMARIES)):
            if os.geteuid() == 0:
                shutil.chown(directory, "postgres", "postgres")
        settings = dict(words[i + 1].split("=", 1) for words in examples()[1] for i, word in enumerate(words) if word == "--set")
        self.assertEqual({"archive_mode", "archive_command"}, set(settings))
        return archive, settings["archive_command"].replace("/archive/", f"{archive}/")

    def make_archiving(self):
        self.archive, command = self.new_archive()
        self.make("archive_mode=on", f"archive_command={command}", spare=len(PRIMARIES))
        self.free_port = str(self.cluster.ports.base + len(PRIMARIES))

    def point(self):
        said = self.cluster.ctl("restore-point", self.cluster.dir, self.archive).stdout
        return re.fullmatch("restore point (.*)", said.strip()).group(1)

    def test_a_point_in_time(self):
        self.make_archiving()
        self.cluster.sql(1, BANK)
        bank = [BankClient(self.cluster, k, f"bank {k}.{i}") for k in PRIMARIES for i in range(2)]
        makers = [TimedDdlClient(self.cluster, k, f"ddl {k}") for k in PRIMARIES[:2]]
        clients = [*bank, *makers]
        for client in clients:
            client.thread.start()
        try:
            deaths.assert_all_work(clients, time.monotonic())
            backup = self.back_up()
            deaths.assert_all_work(clients, time.monotonic())
            first = self.point()
            self.cluster.kill_all(2)  # another life of its data directory, and more in the journal
            self.cluster.start(2)
            deaths.assert_all_work(clients, time.monotonic())
            second = self.point()
            deaths.assert_all_work(clients, time.monotonic())
        finally:
            for client in clients:
                client.ended.set()
        deaths.stop(self, clients)
        for options, moment in (((), time_of(backup)), (("--to", first), first), ((), second)):
            with self.subTest(moment), Restored(self.cluster, backup, *(("--archive", self.archive) if moment != time_of(backup) else ()),
                                                *options) as other:
                self.assert_bank(other, bank, moment_of(moment))
                self.assert_tables(other, makers, moment_of(moment))
                deaths.assert_in_order(self, other, "acct", "hist")

    def test_points_that_are_none(self):
        self.make_archiving()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (1)")
        early = self.point()
        place, new = self.back_up(), self.new_place()
        restore = ("restore", place, new, "--port", self.free_port, "--archive", self.archive)
        self.assertIn("no restore point that goes on from this backup", self.refused(*restore))
        self.assertIn("no restore point up to", self.refused(*restore, "--to", early))
        self.assertIn("is no time", self.refused(*restore, "--to", "yesterday"))
        self.assertIn("written as UTC", self.refused(*restore, "--to", "2026-01-31 12:00:00+01"))
        self.cluster.sql(2, "INSERT INTO t VALUES (2)")
        later = self.point()
        point = pathlib.Path(self.archive, "points", later, "point.gcl")
        text = point.read_bytes()
        point.write_bytes(text.replace(b"format 1", b"format 2"))
        self.assertIn("point.gcl has format 2, and format 1 is read here; a later version of gclctl wrote it", self.refused(*restore))
        point.write_bytes(text)
        segment = sorted(os.listdir(f"{self.archive}/node2"))[-1]
        os.rename(f"{self.archive}/node2/{segment}", f"{self.archive}/{segment}")
        self.assertIn(f"the archive has no {self.archive}/node2/{segment}", self.refused(*restore))
        shutil.copy(f"{self.archive}/node1/{segment}", f"{self.archive}/node2/{segment}")  # of another primary
        os.chmod(f"{self.archive}/node2/{segment}", 0o644)
        self.assertRegex(self.refused(*restore), "the WAL of primary 2 goes to .*, and was to go to")
        self.assertFalse(os.path.exists(new))
        os.rename(f"{self.archive}/{segment}", f"{self.archive}/node2/{segment}")
        names = {"/backup/monday": place, "NEWDIR": new, "25432": self.free_port, "/archive": self.archive, "DIR": self.cluster.dir,
                 "2026-01-31 23:59:59": later[:-3].replace(" ", "T")}
        said = [self.cluster.ctl(*(names.get(word, word) for word in line[1:])).stdout for line in examples()[1][2:]]
        self.assertRegex(said[0], "^restore point")
        self.assertIn(f"as of {later}", said[1])
        self.cluster.ctl("destroy", new)
        self.cluster.stop()  # saves the pool
        self.cluster.start()
        self.point()
        with Restored(self.cluster, place, "--archive", self.archive) as other:
            self.assertEqual([["2"]] * 3, other.everywhere("SELECT count(*) FROM t"), "the last one that goes on from the backup")

    def test_an_archive_that_gets_nothing(self):
        self.make()
        self.archive = os.path.dirname(self.new_place())
        if os.geteuid() == 0:
            shutil.chown(self.archive, "postgres", "postgres")
        said = self.refused("restore-point", self.cluster.dir, self.archive)
        self.assertIn("cannot be used before the archive has", said)

    def has_checkpoint(self):
        """Of all that the logs have: this one's, or one that a server has just had made."""
        eventually(lambda: re.search("^checkpoint|nothing new", self.cluster.ctl("checkpoint", self.cluster.dir, check=False).stdout))

    def test_the_journal_has_the_rings_since_the_last_point(self):
        """A ring for each death would grow it without end (gclctl.point-has-rings)."""
        self.make_archiving()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl")
        place, journal = self.back_up(), f"{self.cluster.dir}/pool.saved.journal"
        grows = "MB of journal, which grows with each death until gclctl restore-point"
        for turn in range(3):
            self.cluster.sql(2, f"INSERT INTO t SELECT 3000 * {turn} + i, repeat(md5(i::text), 12) FROM generate_series(1, 3000) i")
            self.cluster.kill_all(2)
            eventually(lambda: os.path.getsize(journal) > 100_000)
            self.cluster.start(2)
            self.has_checkpoint()
            self.assertGreater(os.path.getsize(journal), 400_000, "the backup's checkpoint lacks it")
            self.assertIn(grows, self.cluster.ctl("status", self.cluster.dir).stdout)
            self.point()
            self.assertLess(os.path.getsize(journal), 10_000)
            self.assertNotIn(grows, self.cluster.ctl("status", self.cluster.dir).stdout)
        points = sorted(pathlib.Path(self.archive, "points").iterdir())
        for upto, lines in ((points[0], 3000), (points[2], 9000)):
            with self.subTest(upto), Restored(self.cluster, place, "--archive", self.archive, "--to", upto.name) as other:
                self.assertEqual([[str(lines)]] * 3, other.everywhere("SELECT count(*) FROM t"))
                self.assertEqual([[]] * 3, other.everywhere("SELECT * FROM gcl_check('t', true)"))
        # The cluster itself has them in its checkpoint.
        for k in PRIMARIES:
            self.cluster.kill_all(k)
        shutil.rmtree(self.cluster.pool_dir())
        self.cluster.start()
        self.assertEqual([["9000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))
        os.rename(points[1], f"{self.archive}/aside")
        self.assertRegex(self.refused("restore", place, self.new_place(), "--port", self.free_port, "--archive", self.archive),
                         "primary 2 died before the restore point of .*, and the point that had its last records is gone from the archive")

    def test_the_journal_keeps_rings_for_points_only(self):
        """A cluster that archives nothing has no restore points, and drops what a checkpoint has."""
        self.make()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl")
        self.back_up()
        self.cluster.sql(2, "INSERT INTO t SELECT i, repeat(md5(i::text), 12) FROM generate_series(1, 3000) i")
        self.cluster.kill_all(2)
        journal = f"{self.cluster.dir}/pool.saved.journal"
        eventually(lambda: os.path.getsize(journal) > 100_000)
        self.cluster.start(2)
        self.has_checkpoint()
        self.assertLess(os.path.getsize(journal), 10_000)

    # --- clusters that have had a life --------------------------------------------------------------------------------

    def test_primaries_and_memory_that_came_and_went(self):
        self.make(spare=1)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl; CREATE SEQUENCE s")
        self.cluster.stop()
        self.cluster.start()
        self.cluster.sql(3, "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 2000) i; SELECT nextval('s')")
        self.cluster.ctl("remove-primary", self.cluster.dir, "--node", "3", "--delete-data")
        self.cluster.ctl("add-memory", self.cluster.dir, "64MB")
        self.cluster.ctl("add-primary", self.cluster.dir)
        self.cluster.start(4)
        self.cluster.sql(4, "INSERT INTO t SELECT i, repeat('y', 500) FROM generate_series(2001, 4000) i")
        open_one = self.cluster.session(2)
        open_one.run("BEGIN; DELETE FROM t; CREATE TABLE never (a int) USING gcl")
        place = self.back_up()
        open_one.run("ROLLBACK")
        with Restored(self.cluster, place) as other:
            other.primaries = 0  # its third is no more: the harness asks one by one
            for k in (1, 2, 4):
                self.assertEqual(["4000|2000"], other.sql(k, "SELECT count(*), count(*) FILTER (WHERE v LIKE 'y%') FROM t"))
                self.assertEqual([], other.sql(k, "SELECT * FROM gcl_check('t', true)"))
                self.assertEqual(["t"], other.sql(k, "SELECT to_regclass('never') IS NULL"))
                self.assertNotEqual(["1"], other.sql(k, "SELECT nextval('s')"))
            other.stop()
            other.start()
            self.assertEqual(["4000"], other.sql(4, "SELECT count(*) FROM t"))

    def test_the_example_of_the_manual(self):
        self.make(spare=3)
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (7)")
        names = {"/backup/monday": self.new_place(), "NEWDIR": self.new_place(), "25432": str(self.cluster.ports.base + 3),
                 "DIR": self.cluster.dir}
        for line in examples()[0]:
            self.assertEqual("gclctl", line[0])
            done = self.cluster.ctl(*(names.get(word, word) for word in line[1:]))
        self.addCleanup(self.cluster.ctl, "destroy", names["NEWDIR"])
        self.assertRegex(done.stdout, f"primary 3 is up: psql .* port={self.cluster.ports.base + 5} ")
        there = self.cluster.ctl("psql", names["NEWDIR"], "3", "-X", "-A", "-t", "-c", "SELECT id FROM t").stdout
        self.assertEqual("7", there.strip())

    def test_a_restored_cluster_is_as_patient(self):
        """gclctl init --patience, of a cluster over a network."""
        self.make(patience=20)
        with Restored(self.cluster, self.back_up()) as other:
            with open(f"{other.dir}/cluster.conf", encoding="utf-8") as description:
                self.assertIn("patience=20\n", description.read())

    def test_a_backup_of_a_restored_cluster(self):
        self.make()
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY) USING gcl; INSERT INTO t VALUES (1)")
        with Restored(self.cluster, self.back_up()) as other:
            other.sql(2, "INSERT INTO t VALUES (2)")
            again = self.new_place()
            other.ctl("backup", other.dir, again)
            other.sql(2, "INSERT INTO t VALUES (3)")
            with Restored(other, again) as third:
                self.assertEqual([["1", "2"]] * 3, third.everywhere("SELECT id FROM t ORDER BY id"))
        self.assertEqual(["1"], self.cluster.sql(3, "SELECT id FROM t"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
