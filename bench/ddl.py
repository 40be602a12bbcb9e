#!/usr/bin/env python3
"""DDL on three primaries against heap on one server of stock PostgreSQL, the same settings: one CREATE TABLE at a time, and PostgreSQL's
regression files.

    bench/ddl.py [--rounds 5] [--disk [DIR]] [--regress POSTGRES_15_SOURCE/src/test/regress] [--only file,...] [--gclctl build/bin/gclctl]

Times are of the client, milliseconds or seconds; ratios above 1 are slower than heap.  --disk: with fsync, all servers on one disk, below DIR; otherwise
in memory, without.  Give it a new file system: ext4 does not use an inode again that was freed within the last minutes, and making a file takes a
millisecond instead of 30 us where the last run's were (mkfs.ext4 on a file, mount -o loop).  The files of PostgreSQL are not part of this project: they
come with its source.
"""
import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402
from plain_server import PlainServer  # noqa: E402

TABLES = 100  # of each round
# Of the schedule, in its order, what makes and changes objects; what is about types and functions alone says nothing.
FILES = """test_setup create_function_sql create_type create_table create_misc create_operator create_procedure create_index
    index_including create_view create_aggregate constraints inherit typed_table drop_if_exists truncate alter_table sequence identity
    generated domain enum triggers foreign_key rowsecurity updatable_views rules partition_prune indexing insert insert_conflict update with
    returning temp plpgsql polymorphism rangefuncs namespace create_table_like alter_generic replica_identity fast_default hash_part
    subselect union copy2 transactions portals select_into privileges""".split()


def compare_create_table(servers, rounds):
    sessions = {kind: harness.Session(dsn) for kind, dsn in servers.items()}
    medians = {kind: [] for kind in servers}
    for number in range(rounds):
        for kind in (list(servers), list(servers)[::-1])[number % 2]:
            times = []
            for i in range(TABLES):
                began = time.monotonic()
                sessions[kind].run(f"CREATE TABLE c_{number}_{i} (a int, b text, c timestamptz)")
                times.append((time.monotonic() - began) * 1000)
            medians[kind].append(statistics.median(times))
    heap, gcl = (statistics.median(medians[kind]) for kind in ("heap", "gcl"))
    print(f"CREATE TABLE of three columns: heap {heap:.2f} ms, gcl {gcl:.2f} ms, ratio {gcl / heap:.2f}")
    print("   ", {kind: [round(v, 2) for v in values] for kind, values in medians.items()}, flush=True)


def run_file(dsn, folder, name):
    environment = {**os.environ, "PGTZ": "PST8PDT", "PGDATESTYLE": "Postgres, MDY", "PG_ABS_SRCDIR": str(folder), "PG_DLSUFFIX": ".so",
                   "PG_LIBDIR": "/nonexistent"}
    began = time.monotonic()
    done = subprocess.run(["psql", "-X", "-a", "-q", "-d", dsn, "-f", folder / "sql" / f"{name}.sql"], text=True, errors="replace",
                          capture_output=True, timeout=600, env=environment)
    return time.monotonic() - began, (done.stdout + done.stderr).count("ERROR:")


def compare_files(servers, folder, files):
    ratios, total = [], {kind: 0.0 for kind in servers}
    for name in files:
        found = {kind: run_file(dsn, folder, name) for kind, dsn in servers.items()}
        for kind, (seconds, _) in found.items():
            total[kind] += seconds
        ratios.append(found["gcl"][0] / found["heap"][0])
        print(f"{name:22s} {ratios[-1]:5.2f}  ", {kind: f"{seconds:.2f} s, {errors} errors" for kind, (seconds, errors) in found.items()}, flush=True)
    print(f"{len(files)} regression files: heap {total['heap']:.1f} s, gcl {total['gcl']:.1f} s, ratio {total['gcl'] / total['heap']:.2f}; "
          f"median of the files' ratios {statistics.median(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--disk", nargs="?", const="/var/tmp")
    parser.add_argument("--regress", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(FILES))
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = args.disk
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(harness.Cluster(primaries=3, pool="1GB", cache="64MB", settings=(
            "autovacuum=off", "max_prepared_transactions=2", f"fsync={'on' if args.disk else 'off'}")))
        cluster.holds_nothing = False  # regression files leave all kinds of things behind
        plain = stack.enter_context(PlainServer(like=cluster))
        cluster.sql(1, "CREATE DATABASE regression")
        subprocess.run(["psql", "-Xqd", plain.dsn, "-c", "CREATE DATABASE regression"], check=True)
        options = "intervalstyle=postgres_verbose -cclient_min_messages=notice"
        servers = {"heap": f"{plain.dsn} dbname=regression options='-c{options}'",
                   "gcl": f"{cluster.dsn(1)} dbname=regression options='-c{options} -cdefault_table_access_method=gcl'"}
        harness.Session(servers["gcl"]).run("CREATE EXTENSION gcl")
        compare_create_table(servers, args.rounds)
        if args.regress:
            compare_files(servers, args.regress.resolve(), args.only.split(","))


if __name__ == "__main__":
    main()
