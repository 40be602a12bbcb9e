#!/usr/bin/env python3
"""Instructions that one backend takes in user space, gcl tables against heap tables of the same server, counted by callgrind: per
transaction of pgbench, per row of bulk work; and the bytes of a row.

    bench/instructions.py [--only select-only,copy] [--transactions 400] [--rows 100000] [--profile 25] [--gclctl build/bin/gclctl]

A transaction: the difference of two pgbench runs, one of them longer.  A row: a session that does it less one that does nothing.
Ratios are heap / gcl: more than 1 is less work than heap's.  --profile N lists the N functions where the two differ most.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "tests", "cluster"), os.path.join(HERE, "..", "tests", "regress")]
import data_directory  # noqa: E402
import harness  # noqa: E402
from callgrind import callgrind  # noqa: E402

KINDS = ("heap", "gcl")
SCRIPTS = ("select-only", "simple-update", "tpcb-like")
PROTOCOLS = ("prepared", "simple")
BULK_BARS = {"copy": 0.8, "count": 0.9, "index int": 0.8, "index text": 0.8, "bytes": 1 / 1.15}
# name: (statements before, the one that counts), each in a session of its own
BULK = {
    "copy": ("DROP INDEX IF EXISTS copied_k, copied_t; TRUNCATE copied", "COPY copied FROM '{file}'"),
    "count": ("SELECT count(*) FROM copied", "SELECT count(*) FROM copied"),
    "index int": ("", "CREATE INDEX copied_k ON copied (k)"),
    "index text": ("DROP INDEX copied_k", "CREATE INDEX copied_t ON copied (t)"),
}


class Bench:
    """The two kinds of tables in one server that is being counted."""

    def __init__(self, cluster, counted, args):
        self.counted = counted
        self.args = args
        self.postmaster = lambda: cluster.postmaster(1)
        self.dsn = {kind: f"{cluster.dsn(1)} options='-csearch_path={kind},public -cdefault_table_access_method={kind}'" for kind in KINDS}

    def session(self, kind, sql):
        """The process that ran `sql`, and its rows, after its end."""
        rows = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.dsn[kind]], input=f"SELECT pg_backend_pid();\n{sql}",
                              text=True, capture_output=True, check=True).stdout.splitlines()
        pid = int(rows[0])
        if self.counted:
            self.counted.instructions(pid)
        return pid, rows[1:]

    def psql(self, kind, sql):
        return self.session(kind, sql)[1]

    def pgbench(self, kind, script, protocol, count):
        """The process that ran `count` transactions."""
        running = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.postmaster())], text=True, capture_output=True, check=True).stdout
        before = self.counted.ended() | {int(pid) for pid in running.split()}
        subprocess.run(["pgbench", "-n", "-M", protocol, "-b", script, "-t", str(count), "-c", "1", "--random-seed=1", self.dsn[kind]],
                       capture_output=True, check=True)
        # Beside the client's there is a session that asks for the scale.
        harness.eventually(lambda: len(self.counted.ended() - before) == 2, 20)
        return max(self.counted.ended() - before)  # the second one

    def difference(self, more, less, units):
        """Instructions per unit, and by function."""
        total = (self.counted.instructions(more) - self.counted.instructions(less)) / units
        if not self.args.profile:
            return total, {}
        more, less = self.counted.by_function(more), self.counted.by_function(less)
        return total, {name: (cost - less.get(name, 0)) / units for name, cost in more.items()}

    def transaction(self, kind, script, protocol):
        warm = 40
        self.pgbench(kind, script, protocol, warm)
        less = self.pgbench(kind, script, protocol, warm)
        return self.difference(self.pgbench(kind, script, protocol, warm + self.args.transactions), less, self.args.transactions)

    def row(self, kind, name, file):
        before, sql = BULK[name]
        self.psql(kind, before)
        less, _ = self.session(kind, "SELECT count(*) FROM copied WHERE false")
        return self.difference(self.session(kind, sql.format(file=file))[0], less, self.args.rows)

    def compare(self, name, bar, measure):
        (heap, of_heap), (gcl, of_gcl) = (measure(kind) for kind in KINDS)
        print(f"| {name} | {heap:,.0f} | {gcl:,.0f} | {heap / gcl:.2f} | {bar:.2f} |", flush=True)
        names = sorted({*of_heap, *of_gcl}, key=lambda n: of_heap.get(n, 0) - of_gcl.get(n, 0))
        for function in names[:self.args.profile] + names[-self.args.profile // 2:] if self.args.profile else ():
            print(f"      {of_heap.get(function, 0):10,.1f} {of_gcl.get(function, 0):10,.1f}  {function[:150]}")

    def bytes(self):
        for name, relation, rows in (("accounts", "pgbench_accounts", 100000), ("two ints", "narrow", self.args.rows),
                                     ("accounts' key", "pgbench_accounts_pkey", 100000)):
            heap, gcl = (int(self.psql(kind, f"SELECT pg_relation_size('{relation}')")[0]) / rows for kind in KINDS)
            print(f"| bytes, {name} | {heap:.1f} | {gcl:.1f} | {heap / gcl:.2f} | {BULK_BARS['bytes']:.2f} |", flush=True)


def fill(bench, file):
    for kind in KINDS:
        bench.psql(kind, f"CREATE SCHEMA {kind}")
        subprocess.run(["pgbench", "-i", "-q", "-s", "1", bench.dsn[kind]], check=True, capture_output=True)
        bench.psql(kind, "CREATE TABLE copied (id int, k int, abalance int, t text, filler char(84));"
                         "CREATE TABLE narrow (a int, b int); "
                         f"INSERT INTO narrow SELECT i, i FROM generate_series(1, {bench.args.rows}) i; CHECKPOINT")
        made = bench.psql(kind, "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'r' AND "
                                f"relnamespace = '{kind}'::regnamespace")
        if made != [kind]:  # what is compared is what it says
            sys.exit(f"the tables of {kind} are {made}")
    with open(file, "w", encoding="ascii") as rows:
        rows.writelines(f"{i}\t{i * 7919 % bench.args.rows}\t0\tkey {i * 7927 % bench.args.rows}\t\n" for i in range(bench.args.rows))
    os.chmod(file, 0o644)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join((*SCRIPTS, *BULK_BARS)))
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--transactions", type=int, default=400)
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--profile", type=int, default=0)
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = "/var/tmp"
    wanted = args.only.split(",")
    # full_page_writes: which pages a transaction is the first to change since a checkpoint is chance; only heap logs them whole.
    settings = ["full_page_writes=off", "shared_buffers=256MB", "autovacuum=off", "checkpoint_timeout=1h", "max_wal_size=4GB", "maintenance_work_mem=256MB",
                "max_parallel_workers_per_gather=0", "max_parallel_maintenance_workers=0"]
    with harness.Cluster(primaries=1, pool="1GB", cache="256MB", settings=settings) as cluster:
        bench = Bench(cluster, None, args)
        file = os.path.join(os.path.dirname(cluster.dir), "rows")
        fill(bench, file)
        cluster.stop()
        with callgrind(cluster) as bench.counted:
            for kind in KINDS:  # the caches
                bench.psql(kind, "SELECT count(*) FROM pgbench_accounts; SET enable_seqscan = off; SELECT sum(aid) FROM pgbench_accounts")
            print("| instructions, or bytes | heap | gcl | ratio | bar |\n| --- | --- | --- | --- | --- |", flush=True)
            for script in SCRIPTS:
                for protocol in args.protocols.split(","):
                    if script in wanted:
                        bench.compare(f"{script}, {protocol}", 1.0, lambda kind: bench.transaction(kind, script, protocol))
            for kind in KINDS:
                if any(name in wanted and name != "copy" for name in BULK):
                    bench.psql(kind, f"COPY copied FROM '{file}'")
            for name in ("count", "index int", "index text", "copy"):
                if name in wanted:
                    bench.compare(name, BULK_BARS[name], lambda kind: bench.row(kind, name, file))
            if "bytes" in wanted:
                bench.bytes()


if __name__ == "__main__":
    main()
