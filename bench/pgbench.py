#!/usr/bin/env python3
"""gcl tables against heap tables of the same server: a cluster of one primary, alternating runs, same settings.  Prints ratios of
medians; more than 1 is faster than heap.

    bench/pgbench.py [--rounds 5] [--seconds 5] [--clients 1,4] [--scale 10] [--only select-only,copy] [--gclctl build/bin/gclctl]

Scripts: pgbench's select-only, simple-update, tpcb-like, prepared.  Bulk: copy, count, index, and bytes (per row, in memory).
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402

BARS = {"select-only": 1.0, "simple-update": 1.0, "tpcb-like": 1.0, "count": 0.9, "copy": 0.8, "index": 0.8, "bytes": 1 / 1.15}
SCRIPTS = ("select-only", "simple-update", "tpcb-like")
KINDS = ("heap", "gcl")
# name: statements before and after the one that counts
BULK = {
    "copy": ("TRUNCATE bulk", "COPY bulk FROM '{file}'", ""),
    "count": ("", "SELECT count(*) FROM bulk", ""),
    "index": ("", "CREATE INDEX bulk_i ON bulk (k)", "DROP INDEX bulk_i"),
}
ROWS = 500000


def psql(dsn, sql):
    return subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", dsn], input=sql, text=True, capture_output=True, check=True).stdout


def script_rate(dsn, script, clients, seconds):
    out = subprocess.run(["pgbench", "-n", "-M", "prepared", "-b", script, "-T", str(seconds), "-c", str(clients), "-j", "1", dsn],
                         text=True, capture_output=True, check=True).stdout
    return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))


def bulk_rate(dsn, name, file):
    before, counted, after = BULK[name]
    psql(dsn, before)
    began = time.monotonic()
    psql(dsn, counted.format(file=file))
    took = time.monotonic() - began
    psql(dsn, after)
    return ROWS / took


def compare(name, bar, rate, rounds):
    rates = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS if number % 2 == 0 else KINDS[::-1]:
            rates[kind].append(rate(kind))
    heap, gcl = (statistics.median(rates[kind]) for kind in KINDS)
    print(f"{name}: heap {heap:.0f}/s, gcl {gcl:.0f}/s, ratio of medians {gcl / heap:.2f} (bar {bar:.2f})")
    print("   ", {kind: [round(v) for v in values] for kind, values in rates.items()}, flush=True)


def prepare(dsns, scale):
    for kind, dsn in dsns.items():
        psql(dsn, f"CREATE SCHEMA {kind}")
        subprocess.run(["pgbench", "-i", "-q", "-s", str(scale), dsn], check=True, capture_output=True)
        psql(dsn, "CREATE TABLE bulk (id int, k int, v text)")
        made = psql(dsn, "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'r' AND relnamespace = "
                    f"'{kind}'::regnamespace").strip()
        if made != kind:  # what is compared is what it says
            sys.exit(f"the tables of {kind} are {made}")


def bytes_per_row(dsns):
    size = {"heap": int(psql(dsns["heap"], "SELECT pg_relation_size('bulk')")) / ROWS}
    # Pages of the pool that hold a row; gcl numbers blocks with holes.
    size["gcl"] = int(psql(dsns["gcl"], "SELECT count(DISTINCT (ctid::text::point)[0]) FROM bulk")) * 8192 / ROWS
    print(f"bytes: heap {size['heap']:.1f} per row, gcl {size['gcl']:.1f}, ratio {size['heap'] / size['gcl']:.2f} (bar {BARS['bytes']:.2f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--clients", default="1,4")
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--only", default=",".join(BARS))
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = "/var/tmp"
    wanted = args.only.split(",")
    # Both kinds of table fit their cache; the heap side has as many buffers as gcl has frames.
    settings = ["fsync=on", "shared_buffers=512MB", "autovacuum=off", "max_wal_size=4GB", "max_parallel_workers_per_gather=0",
                "max_parallel_maintenance_workers=0"]
    with harness.Cluster(primaries=1, pool="2GB", cache="512MB", settings=settings) as cluster:
        dsns = {kind: f"{cluster.dsn(1)} options='-csearch_path={kind},public -cdefault_table_access_method={kind}'" for kind in KINDS}
        prepare(dsns, args.scale)
        for script in SCRIPTS:
            for clients in map(int, args.clients.split(",")):
                if script in wanted:
                    compare(f"{script}, {clients} clients", BARS[script],
                            lambda kind: script_rate(dsns[kind], script, clients, args.seconds), args.rounds)
        file = os.path.join(os.path.dirname(cluster.dir), "rows")
        with open(file, "w", encoding="ascii") as rows:
            rows.writelines(f"{i}\t{i * 7919 % ROWS}\tsome text of row {i}\n" for i in range(ROWS))
        os.chmod(file, 0o644)
        if any(name in wanted for name in (*BULK, "bytes")):
            for kind in KINDS:
                psql(dsns[kind], f"COPY bulk FROM '{file}'; VACUUM ANALYZE bulk")
            bytes_per_row(dsns)
        for name in BULK:
            if name in wanted:
                compare(name, BARS[name], lambda kind: bulk_rate(dsns[kind], name, file), args.rounds)


if __name__ == "__main__":
    main()
