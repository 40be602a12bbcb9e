"""The machine loses power while it works: the disk has what was synced, and any part of the rest.  Every COMMIT that was answered
before is there when the cluster has started again, nothing else is, and all is in order.

Environment: POINTS, how many losses of power; GCL_SEED, which.  Where one was not survived, the recording is kept in /var/tmp, and
the loss is had again with POWER_RECORDING, POWER_AT and POWER_SEED, as the failure says.
"""
import copy
import os
import pickle
import random
import re
import shutil
import subprocess
import time
import traceback
import types
import unittest

import deaths
from ddl_load import DdlClient, assert_tables_kept
from deaths import BANK, BankClient
from harness import SEED, SERVES, Cluster, Hang, SqlError, eventually, together
from list_append import LISTS, Check, ListClient, Lists
from power import NOTHING, Recording, changes, image

PRIMARIES = (1, 2, 3)
POINTS = int(os.environ.get("POINTS", 10))
TABLES = ("acct", "hist", "lists")
SETTINGS = ("fsync=on", "checkpoint_timeout=30s", "min_wal_size=32MB", "max_wal_size=64MB", "shared_buffers=4MB", "wal_buffers=256kB",
            "autovacuum_naptime=1s", "autovacuum_vacuum_threshold=200", "autovacuum_vacuum_scale_factor=0.02",
            "gcl.checkpoint_timeout=1s")
# Changes that decide something: power is lost right before and behind them, too.
DECIDING = {"WAL": r"^sync .*/pg_wal/", "journal": r"pool\.saved\.journal", "save": r"pool\.saved(?!\.journal|\.checkpoint|\.delta)",
            "checkpoint": r"pool\.saved\.(checkpoint|delta)",
            "control file": r"pg_control", "removal": r"cluster\.conf|removed3|node3/data/gcl\.conf", "rename": r"^(rename|unlink|link) "}


class Noting:
    """A client that notes when each COMMIT was sent and answered: how many changes there had been."""
    recording = None

    def note(self):
        if not hasattr(self, "sent_at"):
            self.sent_at, self.told_at = {}, {}
        return self.recording.count()

    def commit(self, session, n):
        self.sent_at[n] = self.note()
        super().commit(session, n)
        self.told_at[n] = self.note()


class NotingBank(Noting, BankClient):
    pass


class NotingLists(Noting, ListClient):
    pass


class NotingDdl(Noting, DdlClient):
    def does(self, session, n, sql, done):
        what = ("made" if done is self.made else "dropped", n)
        self.sent_at[what] = self.note()
        super().does(session, n, sql, done)
        self.told_at[what] = self.note()


def as_of(client, at):
    """What the client knew when power was lost."""
    told = {n: client.told.get(n) for n, when in client.told_at.items() if when <= at}
    unknown = {n for n, when in client.sent_at.items() if when <= at and n not in told}
    return types.SimpleNamespace(name=client.name, told=told, unknown=unknown)


def ddl_as_of(client, at):
    known = as_of(client, at)
    of = {what: {n for this, n in known.told if this == what} for what in ("made", "dropped")}
    return types.SimpleNamespace(name=client.name, n=client.n, table=client.table, unknown={n for _, n in known.unknown}, **of)


class Past:
    """What was recorded, and what the clients noted: all that it takes to lose power, again and again."""

    def __init__(self, cluster, recording, clients, transactions, without_three):
        self.root, self.first_dsn, self.base = cluster.dir, cluster.dsn(1), cluster.ports.base
        self.recording, self.count, self.without_three = recording.dir, recording.count(), without_three
        plain = [{name: getattr(client, name, {}) for name in ("name", "n", "told", "told_at", "sent_at")} for client in clients]
        self.clients, self.kinds = plain, [type(client).__name__ for client in clients]
        self.transactions = {}
        for number, one in transactions.items():
            self.transactions[number] = copy.copy(one)
            self.transactions[number].client = one.client.name

    def of(self, kind):
        for client, its in zip(self.clients, self.kinds):
            if its == kind:
                one = types.SimpleNamespace(**client)
                one.table = lambda n, one=one: DdlClient.table(one, n)
                yield one

    def keep(self):
        """Returns the directory that load() takes."""
        kept = f"/var/tmp/gcl-power-{os.getpid()}"
        if not os.path.exists(kept):
            subprocess.run(["cp", "-a", "--sparse=always", self.recording, kept], check=True)
            with open(f"{kept}/past", "wb") as file:
                pickle.dump(self, file)
        return kept

    @staticmethod
    def load(kept):
        with open(f"{kept}/past", "rb") as file:
            past = pickle.load(file)
        past.recording = kept
        return past

    def cluster(self):
        """For where there is none yet."""
        cluster = Cluster.__new__(Cluster)
        cluster.primaries, cluster.dir, cluster.first_dsn, cluster.sessions = len(PRIMARIES), self.root, self.first_dsn, []
        cluster.ports = types.SimpleNamespace(base=self.base)
        os.makedirs(os.path.dirname(self.root), exist_ok=True)
        return cluster


class PowerLoss(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "POWER_RECORDING" in os.environ:
            cls.past = Past.load(os.environ["POWER_RECORDING"])
            cls.cluster = cls.past.cluster()
            cls.addClassCleanup(shutil.rmtree, os.path.dirname(cls.past.root), ignore_errors=True)
            return
        cls.cluster = cls.enterClassContext(Cluster(primaries=len(PRIMARIES), pool="64MB", cache="4MB", settings=SETTINGS, memory_nodes=2))
        cls.cluster.holds_nothing = False
        began = time.monotonic()
        cls.record()
        print(f"{cls.past.count} changes recorded ({time.monotonic() - began:.1f} s)", flush=True)

    # --- what is recorded ---------------------------------------------------------------------------------------------

    @classmethod
    def record(cls):
        """Three primaries work, one dies and is repaired, all stop and save, start again, and lose their memory."""
        cluster = cls.cluster
        cluster.sql(1, f"{BANK}; {LISTS}")
        cluster.stop()
        cls.recording = Noting.recording = Recording(cluster)
        cluster.start()
        lists = Lists(SEED)
        clients = [NotingBank(cluster, k, f"bank {k}") for k in PRIMARIES]
        clients += [NotingLists(cluster, k, f"list {k}", lists) for k in PRIMARIES] + [NotingDdl(cluster, 1, "ddl 1")]
        for client in clients:
            client.thread.start()
        try:
            cls.live(clients)
        finally:
            for client in clients:
                client.ended.set()
        deaths.stop(cls(), clients)
        cluster.ctl("stop", cluster.dir, "--immediate")
        cls.recording.end()
        cls.past = Past(cluster, cls.recording, clients, lists.transactions, cls.without_three)
        cls.put_aside()

    @classmethod
    def live(cls, clients):
        cluster = cls.cluster
        cls.work(clients)
        cls.recording.kill_all(2)
        cls.work([client for client in clients if client.k != 2], checkpoint=(1, 3))
        cluster.start(2)
        cls.work(clients)
        cluster.stop()
        cluster.start()
        cls.work(clients)
        cls.recording.kill_all(*PRIMARIES)  # memory is there: the first that starts repairs alone
        cluster.start()
        cls.work(clients)
        cluster.ctl("add-memory", cluster.dir, "32MB")
        cls.work(clients)
        cls.leave_and_come_back(clients)
        cls.recording.kill_all(*PRIMARIES)
        shutil.rmtree(cluster.pool_dir())
        cluster.start()
        cls.work(clients)

    @classmethod
    def leave_and_come_back(cls, clients):
        """Primary 3 is removed, with its data, and a new one made in its place."""
        cluster, began = cls.cluster, cls.recording.count()
        cluster.ctl("remove-primary", cluster.dir, "--node", "3", "--delete-data")
        cls.work([client for client in clients if client.k != 3], checkpoint=(1, 2))
        cluster.ctl("add-primary", cluster.dir, "--node", "3")
        cluster.start(3)
        cls.without_three = began, cls.recording.count()
        cls.work(clients)

    @classmethod
    def work(cls, clients, checkpoint=PRIMARIES):
        deaths.assert_all_work(clients, time.monotonic())
        together([lambda k=k: cls.cluster.sql(k, "SELECT pg_switch_wal() IS NULL; CHECKPOINT") for k in checkpoint])
        deaths.assert_all_work(clients, time.monotonic())

    @classmethod
    def put_aside(cls):
        """What is left of the cluster itself: its programs."""
        subprocess.run(["cp", "-a", f"{cls.cluster.dir}/prefix", cls.past.recording], check=True)
        cls.cluster.ctl("destroy", cls.cluster.dir)

    # --- power is lost ------------------------------------------------------------------------------------------------

    def test_every_commit_is_kept(self):
        if "POWER_AT" in os.environ:
            return self.lose_power(int(os.environ["POWER_AT"]), int(os.environ["POWER_SEED"]))
        chance = random.Random(SEED)
        for at in self.points(chance):
            seed = chance.randrange(1000)
            with self.subTest(at=at, seed=seed):
                try:
                    self.lose_power(at, seed)
                except Exception:
                    print(f"\nNOT SURVIVED.  Again: POWER_RECORDING={self.past.keep()} POWER_AT={at} POWER_SEED={seed} python3 power_loss_test.py"
                          f"\n{traceback.format_exc()}", flush=True)
                    raise
        return None

    def test_a_disk_that_lies_is_seen(self):
        """Were these files not synced, commits would be lost."""
        for files in (r"pool\.saved\.journal$", r"node2/data/pg_wal/"):
            with self.subTest(files=files), self.assertRaises((AssertionError, RuntimeError, SqlError)):
                self.lose_power(self.past.count, NOTHING, deaf=files)

    def points(self, chance):
        """Half of them anywhere, the others where something is decided."""
        deciding = {name: [] for name in DECIDING}
        for number, kind, path in changes(self.past.recording, self.past.root):
            for name, pattern in DECIDING.items():
                if re.search(pattern, f"{kind} {path}"):
                    deciding[name].append(number)
        self.assertEqual([], [name for name, numbers in deciding.items() if not numbers], "never happened")
        chosen = [chance.randrange(1, self.past.count) for _ in range(POINTS - POINTS // 2)]
        kinds = [list(DECIDING)[i % len(DECIDING)] for i in range(POINTS // 2)]
        return chosen + [chance.choice(deciding[kind]) + chance.randrange(2) for kind in kinds]

    def lose_power(self, at, seed, deaf=None):
        began = time.monotonic()
        chosen = image(self.past.recording, at, seed, self.cluster.dir, deaf)
        programs = f"{self.past.recording}/prefix"
        os.symlink(programs, f"{self.cluster.dir}/prefix")
        subprocess.run(["chown", "-R", "-h", "--reference", programs, self.cluster.dir], check=True)
        try:
            self.cluster.ctl("start", self.cluster.dir)
            started = time.monotonic()
            self.assert_kept(at)
        finally:
            self.cluster.ctl("destroy", self.cluster.dir, check=False)
            shutil.rmtree(self.cluster.dir, ignore_errors=True)
        print(f"power lost at {at}, seed {seed} ({chosen}): started in {started - began:.1f} s, {time.monotonic() - began:.1f} s in all", flush=True)

    def assert_kept(self, at):
        self.cluster.primaries = self.primaries_at(at)
        bank = [as_of(client, at) for client in self.past.of("NotingBank")]
        deaths.assert_bank_kept(self, self.cluster, bank, "bank")
        rows = self.cluster.everywhere("SELECT id, v FROM lists ORDER BY id")
        self.assertEqual([rows[0]] * self.cluster.primaries, rows)
        final = {int(of): [int(value) for value in values.strip("{}").split(",")] for of, values in (row.split("|") for row in rows[0])}
        self.assertEqual([], Check(self.transactions(at), final).all())
        assert_tables_kept(self, self.cluster, [ddl_as_of(client, at) for client in self.past.of("NotingDdl")])
        deaths.assert_in_order(self, self.cluster, *TABLES)

    def primaries_at(self, at):
        """Two, while primary 3 is removed.  What was begun of that is done, if it was not told yet."""
        began, ended = self.past.without_three
        with open(f"{self.cluster.dir}/cluster.conf", encoding="utf-8") as file:
            removed = re.search(r"^removed=.*3", file.read(), re.M)
        self.assertFalse(removed and not began < at <= ended)
        if not removed and began < at <= ended and not self.serves(3):
            self.cluster.ctl("remove-primary", self.cluster.dir, "--node", "3")
            removed = True
        return 2 if removed else 3

    def serves(self, k):
        try:
            eventually(lambda: self.cluster.sql(k, SERVES) == ["serving"], 60)
            return True
        except (Hang, SqlError):
            return False

    def transactions(self, at):
        """Those whose COMMIT was sent by then: what they have seen was committed before."""
        known = {client.name: as_of(client, at) for client in self.past.of("NotingLists")}
        found = {}
        for number, one in self.past.transactions.items():
            if number in known[one.client].told or number in known[one.client].unknown:
                found[number] = copy.copy(one)
                found[number].client = known[one.client]
        return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
