#!/usr/bin/env python3
"""pgbench's built-in scripts on gcl tables against heap tables of the same server: a cluster of one primary, alternating
runs, same settings.  Prints the ratio of medians.

    bench/pgbench.py [--rounds 5] [--seconds 10] [--clients 4] [--scale 10] [--gclctl build/bin/gclctl]

The bars of the skeleton: select-only >= 0.8 of heap, tpcb-like >= 0.6.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import harness  # noqa: E402

SCRIPTS = {"select-only": 0.8, "tpcb-like": 0.6}


def run(dsn, script, args):
    out = subprocess.run(["pgbench", "-n", "-b", script, "-T", str(args.seconds), "-c", str(args.clients), "-j", "1", dsn],
                         text=True, capture_output=True, check=True).stdout
    return float(re.search(r"^tps = ([0-9.]+)", out, re.M).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    # Both kinds of table fit their cache; the heap side has as many buffers as gcl has frames.
    settings = ["fsync=on", "shared_buffers=512MB", "autovacuum=off"]
    with harness.Cluster(primaries=1, pool="2GB", cache="512MB", settings=settings) as cluster:
        dsns = {}
        for kind in ("heap", "gcl"):
            dsns[kind] = f"{cluster.dsn(1)} options='-csearch_path={kind},public -cdefault_table_access_method={kind}'"
            cluster.sql(1, f"CREATE SCHEMA {kind}")
            subprocess.run(["pgbench", "-i", "-q", "-s", str(args.scale), dsns[kind]], check=True, capture_output=True)
        for kind, dsn in dsns.items():  # what is compared is what it says
            made = subprocess.run(["psql", "-XAtq", "-d", dsn, "-c", "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON "
                                   "a.oid = relam WHERE c.oid = ANY (ARRAY['pgbench_accounts', 'pgbench_history', "
                                   "'pgbench_tellers', 'pgbench_branches']::regclass[])"],
                                  text=True, capture_output=True, check=True).stdout.strip()
            if made != kind:
                sys.exit(f"the tables of {kind} are {made}")
        for script, bar in SCRIPTS.items():
            tps = {"heap": [], "gcl": []}
            for number in range(args.rounds):
                for kind in ("heap", "gcl") if number % 2 == 0 else ("gcl", "heap"):
                    tps[kind].append(run(dsns[kind], script, args))
            heap, gcl = statistics.median(tps["heap"]), statistics.median(tps["gcl"])
            print(f"{script}: heap {heap:.0f} tps, gcl {gcl:.0f} tps, ratio of medians {gcl / heap:.2f} (bar {bar})")
            print("   ", {kind: [round(v) for v in values] for kind, values in tps.items()}, flush=True)


if __name__ == "__main__":
    main()
