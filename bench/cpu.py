#!/usr/bin/env python3
"""Processor time of a transaction in a backend, gcl tables against heap tables of the same server: both at work at the same time,
so that what else the machine does is the same for both.  Prints gcl / heap; more than 1 is dearer than heap.

    bench/cpu.py [--rounds 5] [--seconds 10] [--clients 2] [--scale 10] [--only simple-update] [--profile 40]

`--clients` is of each kind.  With --profile: microseconds of a transaction by function, where the two differ most (perf's samples
of cpu-clock, which needs no counters of the processor).
"""
import argparse
import collections
import contextlib
import glob
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402
from pgbench import KINDS, SCRIPTS, prepare, psql  # noqa: E402

Used = collections.namedtuple("Used", "at cpu faults switches")
BEGIN, END = 2, 3  # seconds beside those that count
SAMPLES = 2000  # of a second


def used(pids):
    """What the processes have used so far; the scheduler counts nanoseconds."""
    cpu = faults = switches = 0
    for pid in pids:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            cpu += int(file.read().split()[0])
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            faults += int(file.read().rpartition(")")[2].split()[7])
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            switches += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return Used(time.time(), cpu / 1000, faults, switches)


def done_until(logs, moment):
    """Transactions, by pgbench's count of each second."""
    done = 0.0
    for name in glob.glob(f"{logs}.*"):
        with open(name, encoding="ascii") as log:
            for line in log:
                began, count = map(int, line.split()[:2])
                done += count * min(1.0, max(0.0, moment - began))
    return done


@contextlib.contextmanager
def sampled(pids, file):
    perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES), "-o", file, "-p", ",".join(pids)],
                            stderr=subprocess.DEVNULL) if file else None
    try:
        yield
    finally:
        if perf:
            perf.send_signal(signal.SIGINT)
            perf.wait()


def one_round(cluster, dsns, script, args, folder, profile):
    """{kind: Used of a transaction}, and {kind: transactions}."""
    logs = {kind: os.path.join(folder, kind) for kind in KINDS}
    for name in glob.glob(os.path.join(folder, "*.*")):
        os.remove(name)
    loads = [subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-b", script, "-T", str(BEGIN + args.seconds + END), "-c", str(args.clients),
                               "-l", "--aggregate-interval=1", f"--log-prefix={logs[kind]}", dsns[kind]], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "PGAPPNAME": f"bench {kind}"}) for kind in KINDS]
    time.sleep(BEGIN)
    pids = {kind: psql(cluster.dsn(1), f"SELECT pid FROM pg_stat_activity WHERE application_name = 'bench {kind}'").split() for kind in KINDS}
    if any(len(of_kind) != args.clients for of_kind in pids.values()):
        sys.exit(f"these are not the backends: {pids}")
    data = os.path.join(folder, "perf") if profile is not None else None
    with sampled(sum(pids.values(), []), data):
        before = {kind: used(pids[kind]) for kind in KINDS}
        time.sleep(args.seconds)
        after = {kind: used(pids[kind]) for kind in KINDS}
    if any(load.wait() for load in loads):
        sys.exit("pgbench has failed")
    count = {kind: done_until(logs[kind], after[kind].at) - done_until(logs[kind], before[kind].at) for kind in KINDS}
    if data:
        kind_of = {pid: kind for kind in KINDS for pid in pids[kind]}
        report = subprocess.run(["perf", "report", "-i", data, "--stdio", "-q", "-t", "|", "--sort", "pid,dso,sym", "-F", "sample,pid,dso,sym"],
                                text=True, capture_output=True, check=True).stdout
        for samples, pid, library, function in (line.split("|")[:4] for line in report.splitlines() if line.count("|") >= 3):
            kind = kind_of.get(pid.strip().split(":")[0])
            if kind and samples.strip().isdigit():
                profile[f"{library.strip()} {function.strip()[4:]}"][kind] += int(samples) * 1e6 / SAMPLES / count[kind] / args.rounds
    return {kind: Used(*((b - a) / count[kind] for a, b in zip(before[kind], after[kind]))) for kind in KINDS}


def compare(cluster, dsns, script, args, folder):
    profile = collections.defaultdict(lambda: dict.fromkeys(KINDS, 0.0)) if args.profile else None
    for kind in KINDS:  # the caches, and pages that have been changed before
        subprocess.run(["pgbench", "-n", "-M", "prepared", "-b", script, "-t", "5000", "-c", "4", dsns[kind]], check=True, capture_output=True)
    rounds = [one_round(cluster, dsns, script, args, folder, profile) for _ in range(args.rounds)]
    ratios = sorted(round_["gcl"].cpu / round_["heap"].cpu for round_ in rounds)
    middle = {kind: [statistics.median(getattr(round_[kind], what) for round_ in rounds) for what in ("cpu", "faults", "switches")]
              for kind in KINDS}
    print(f"{script}: gcl / heap {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    for kind in KINDS:
        print("    {}: {:.1f} us, {:.2f} page faults, {:.1f} switches".format(kind, *middle[kind]), flush=True)
    names = sorted(profile or (), key=lambda name: profile[name]["heap"] - profile[name]["gcl"])
    for name in names[:args.profile] + names[-args.profile // 2:] if args.profile else ():
        print(f"      {profile[name]['heap']:8.2f} {profile[name]['gcl']:8.2f}  {name[:120]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--only", default=",".join(SCRIPTS))
    parser.add_argument("--profile", type=int, default=0)
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = "/var/tmp"
    settings = ["fsync=on", "shared_buffers=512MB", "autovacuum=off", "max_wal_size=4GB", "max_parallel_workers_per_gather=0"]
    with harness.Cluster(primaries=1, pool="2GB", cache="512MB", settings=settings) as cluster, tempfile.TemporaryDirectory() as folder:
        dsns = {kind: f"{cluster.dsn(1)} options='-csearch_path={kind},public -cdefault_table_access_method={kind}'" for kind in KINDS}
        prepare(dsns, args.scale)
        for script in args.only.split(","):
            compare(cluster, dsns, script, args, folder)


if __name__ == "__main__":
    main()
