#!/usr/bin/env python3
"""Three primaries against three stock servers of the same machine: pgbench on all three at once, alternating runs.  The primaries
use tables of their own, and then all the same tables.  Prints sums, and ratios of medians; more than 1 is faster than stock.

    bench/primaries.py [--rounds 3] [--seconds 5] [--clients 2] [--scale 10] [--only select-only] [--gclctl build/bin/gclctl]

Scripts: pgbench's select-only, simple-update, tpcb-like, prepared.  `clients`: of each server.
"""
import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402
from plain_server import PlainServer  # noqa: E402

SERVERS = (1, 2, 3)
SCRIPTS = ("select-only", "simple-update", "tpcb-like")
KINDS = ("stock", "own", "shared")
BARS = {("own", "select-only"): 0.9, ("own", "simple-update"): 0.9, ("own", "tpcb-like"): 0.9,
        ("shared", "select-only"): 0.9, ("shared", "tpcb-like"): 0.5}
SETTINGS = ("fsync=on", "shared_buffers=256MB", "autovacuum=off", "max_wal_size=4GB")


def together(commands):
    """What they print, when all have ended well."""
    running = [subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for command in commands]
    printed = []
    for process in running:
        out, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(errors)
        printed.append(out)
    return printed


def rates(dsns, script, clients, seconds):
    out = together([["pgbench", "-n", "-M", "prepared", "-b", script, "-T", str(seconds), "-c", str(clients), "-j", "1", dsn]
                    for dsn in dsns])
    return [float(re.search(r"^tps = ([0-9.]+)", text, re.M).group(1)) for text in out]


def prepare(dsns, scale, kind):
    for dsn in dsns:
        subprocess.run(["pgbench", "-i", "-q", "-s", str(scale), dsn], check=True, capture_output=True)
        made = subprocess.run(["psql", "-XAtqc", "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam "
                               "WHERE c.oid = ANY('{pgbench_accounts,pgbench_branches,pgbench_tellers,pgbench_history}'::regclass[])",
                               "-d", dsn], text=True, capture_output=True, check=True).stdout.strip()
        if made != kind:  # what is compared is what it says
            sys.exit(f"the tables are {made}, not {kind}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--only", default=",".join(SCRIPTS))
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = "/var/tmp"
    with contextlib.ExitStack() as stack:
        stock = [stack.enter_context(PlainServer(SETTINGS)) for _ in SERVERS]
        cluster = stack.enter_context(harness.Cluster(primaries=3, pool="3GB", cache="256MB", settings=SETTINGS))
        for name in ("shared", *(f"own{k}" for k in SERVERS)):
            cluster.sql(1, f"CREATE SCHEMA {name}")

        def in_schema(k, name):
            return f"{cluster.dsn(k)} options='-csearch_path={name},public -cdefault_table_access_method=gcl'"

        dsns = {"stock": [server.dsn for server in stock],
                "own": [in_schema(k, f"own{k}") for k in SERVERS],
                "shared": [in_schema(k, "shared") for k in SERVERS]}
        prepare(dsns["stock"], args.scale, "heap")
        prepare(dsns["own"], args.scale, "gcl")
        prepare(dsns["shared"][:1], args.scale, "gcl")
        for script in (script for script in SCRIPTS if script in args.only.split(",")):
            found = {kind: [] for kind in KINDS}
            for number in range(args.rounds):
                for kind in KINDS if number % 2 == 0 else KINDS[::-1]:
                    found[kind].append(rates(dsns[kind], script, args.clients, args.seconds))
            median = {kind: statistics.median(map(sum, found[kind])) for kind in KINDS}
            print(f"{script}, {args.clients} clients on each of three: stock {median['stock']:.0f}/s", flush=True)
            for kind in KINDS[1:]:
                bar = BARS.get((kind, script))
                print(f"    {kind} tables: {median[kind]:.0f}/s, ratio {median[kind] / median['stock']:.2f}" + (f" (bar {bar})" if bar else ""))
            print("   ", {kind: [[round(v) for v in each] for each in runs] for kind, runs in found.items()}, flush=True)


if __name__ == "__main__":
    main()
