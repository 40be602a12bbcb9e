#!/usr/bin/env python3
"""SERIALIZABLE: gcl against heap's serializable snapshot isolation (SSI), and against gcl's READ COMMITTED.  Alternating runs, ratios of
medians.  A transaction that fails with 40001 or 40P01 is run again by pgbench; a rate counts what was committed.

    bench/serializable.py [--rounds 3] [--seconds 5] [--clients 1,4] [--scale 10] [--only one,three,conflicts] [--gclctl build/bin/gclctl]

one: pgbench's scripts on one primary, and heap tables of the same server.  three: pgbench's scripts on three primaries, each with
tables of its own.  conflicts: the workloads of conflicts.py on one stock server, one primary, and three primaries with a third of the
clients each.
"""
import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import conflicts  # noqa: E402
import data_directory  # noqa: E402
import harness  # noqa: E402
from plain_server import PlainServer  # noqa: E402
from primaries import together  # noqa: E402

SCRIPTS = ("select-only", "simple-update", "tpcb-like")
SETTINGS = ["fsync=on", "shared_buffers=256MB", "autovacuum=off", "max_wal_size=4GB", "max_pred_locks_per_transaction=512"]
WAITS = "SELECT value FROM gcl_stat_counters() WHERE layer = 'serializable' AND counter = 'waits for pages'"


def dsn_of(dsn, schema, method, level):
    return (f"{dsn} options='-csearch_path={schema},public -cdefault_table_access_method={method} "
            f"-cdefault_transaction_isolation={level.replace(' ', chr(92) + chr(92) + ' ')} -cdeadlock_timeout=100ms'")


class Result:
    def __init__(self, outputs, waits):
        def total(pattern):
            return sum(float(found.group(1)) for found in (re.search(pattern, out, re.M) for out in outputs) if found)
        self.rate = total(r"^tps = ([0-9.]+)")
        self.done = total(r"^number of transactions actually processed: (\d+)")
        self.retries = total(r"^total number of retries: (\d+)")
        self.waits = waits

    def aborts(self):
        """Share of the attempts."""
        return self.retries / max(self.retries + self.done, 1)

    def waits_each(self):
        return self.waits / max(self.done, 1)


def play(targets, script, clients, seconds, looks=()):
    """pgbench on all targets at once.  `looks`: asks each primary how often somebody has waited for pages."""
    def waited():
        return sum(int(look.one(WAITS)) for look in looks)
    before = waited()
    out = together([["pgbench", "-n", "-M", "prepared", *script, "-T", str(seconds), "-c", str(clients), "-j", "1", "--max-tries=0", "-D",
                     f"base={at * clients}", dsn] for at, dsn in enumerate(targets)])
    return Result(out, waited() - before)


def alternate(kinds, rounds, run):
    """{kind: its results}"""
    results = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds if number % 2 == 0 else kinds[::-1]:
            results[kind].append(run(kind))
    return results


def median(results, of=lambda result: result.rate):
    return statistics.median(map(of, results))


def told(results):
    return (f"{median(results):9.0f}/s, aborts {100 * median(results, Result.aborts):5.1f} %, waits for pages "
            f"{median(results, Result.waits_each):5.2f} each  {[round(result.rate) for result in results]}")


def fill(dsn, scale, method):
    subprocess.run(["pgbench", "-i", "-q", "-s", str(scale), dsn], check=True, capture_output=True)
    check_kind(dsn, "pgbench_accounts", method)


def psql(dsn, sql):
    return subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", dsn], input=sql, text=True, capture_output=True, check=True).stdout


def check_kind(dsn, table, method):
    """What is compared is what it says."""
    made = psql(dsn, f"SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = '{table}'::regclass").strip()
    if made != method:
        sys.exit(f"{table} is {made}, not {method}")


def one_primary(args):
    with harness.Cluster(primaries=1, pool="2GB", cache="512MB", settings=SETTINGS) as cluster:
        look = cluster.session(1)
        for schema in ("heap", "gcl"):
            look.run(f"CREATE SCHEMA {schema}")
            fill(dsn_of(cluster.dsn(1), schema, schema, "read committed"), args.scale, schema)
        dsns = {"heap": dsn_of(cluster.dsn(1), "heap", "heap", "serializable"), "gcl": dsn_of(cluster.dsn(1), "gcl", "gcl", "serializable"),
                "gcl rc": dsn_of(cluster.dsn(1), "gcl", "gcl", "read committed")}
        for script in SCRIPTS:
            for clients in args.clients:
                found = alternate(list(dsns), args.rounds, lambda kind: play([dsns[kind]], ("-b", script), clients, args.seconds, [look]))
                print(f"{script}, one primary, {clients} clients: gcl / heap {median(found['gcl']) / median(found['heap']):.2f} (bar 1.0), "
                      f"gcl / gcl READ COMMITTED {median(found['gcl']) / median(found['gcl rc']):.2f}"
                      + (" (bar 0.95)" if script == "select-only" else ""))
                for kind, results in found.items():
                    print(f"    {kind:8} {told(results)}", flush=True)


def three_primaries(args):
    with harness.Cluster(primaries=3, pool="3GB", cache="256MB", settings=SETTINGS) as cluster:
        looks = [cluster.session(k) for k in (1, 2, 3)]
        for k in (1, 2, 3):
            looks[0].run(f"CREATE SCHEMA own{k}")
            fill(dsn_of(cluster.dsn(k), f"own{k}", "gcl", "read committed"), args.scale, "gcl")
        for script in SCRIPTS:
            for clients in args.clients:
                found = alternate(["serializable", "read committed"], args.rounds, lambda level: play(
                    [dsn_of(cluster.dsn(k), f"own{k}", "gcl", level) for k in (1, 2, 3)], ("-b", script), clients, args.seconds, looks))
                ratio = median(found["serializable"]) / median(found["read committed"])
                print(f"{script}, three primaries, tables of their own, {clients} clients each: gcl / gcl READ COMMITTED {ratio:.2f} (bar 0.9)")
                for level, results in found.items():
                    print(f"    {level:14} {told(results)}", flush=True)


def conflict_workloads(args):
    with contextlib.ExitStack() as stack:
        stock = stack.enter_context(PlainServer(SETTINGS))
        one = stack.enter_context(harness.Cluster(primaries=1, pool="1GB", cache="256MB", settings=SETTINGS))
        three = stack.enter_context(harness.Cluster(primaries=3, pool="1GB", cache="256MB", settings=SETTINGS))
        scripts = stack.enter_context(tempfile.TemporaryDirectory())
        targets = {"heap": [dsn_of(stock.dsn, "public", "heap", "serializable")],
                   "one": [dsn_of(one.dsn(1), "public", "gcl", "serializable")],
                   "one rc": [dsn_of(one.dsn(1), "public", "gcl", "read committed")],
                   "three": [dsn_of(three.dsn(k), "public", "gcl", "serializable") for k in (1, 2, 3)]}
        looks = {"heap": [], "one rc": [], "one": [one.session(1)], "three": [three.session(k) for k in (1, 2, 3)]}
        for load in conflicts.WORKLOADS:
            if load.name not in args.workloads and args.workloads:
                continue
            for kind, (dsn, *_) in targets.items():
                if kind == "one rc":
                    continue  # the tables of "one"
                psql(dsn, load.tables)
                psql(dsn, "VACUUM ANALYZE")
                check_kind(dsn, load.table, "heap" if kind == "heap" else "gcl")
            arguments = load.arguments(scripts)
            found = alternate(list(targets), args.rounds, lambda kind: play(
                targets[kind], arguments, conflicts.CLIENTS // len(targets[kind]), args.seconds, looks[kind]))
            print(f"{load.name}, {conflicts.CLIENTS} clients{', rows that never meet' if load.apart else ''}: one primary / heap "
                  f"{median(found['one']) / median(found['heap']):.2f}, three / heap {median(found['three']) / median(found['heap']):.2f}")
            for kind, results in found.items():
                print(f"    {kind:8} {told(results)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--clients", default="1,4")
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--only", default="one,three,conflicts")
    parser.add_argument("--workloads", default="", help="of conflicts.py; all")
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    args.clients = [int(clients) for clients in args.clients.split(",")]
    args.workloads = [name for name in args.workloads.split(",") if name]
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = "/var/tmp"
    for name, part in (("one", one_primary), ("three", three_primaries), ("conflicts", conflict_workloads)):
        if name in args.only.split(","):
            part(args)


if __name__ == "__main__":
    main()
