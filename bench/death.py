#!/usr/bin/env python3
"""What a primary's death costs the others: of three primaries one is killed under load, with all of its processes at once, again and
again.  The survivors work on tables that all share (pgbench's tpcb-like) and, in other sessions, on tables of their own
(simple-update).  Prints for each death, in milliseconds:

    certain     from the kill until a survivor knows
    shared      the longest time that a survivor had no commit on the shared tables
    own         the longest time without a commit of any survivor on tables of its own, and the same before the death
    repaired    from the kill until nothing of the dead primary is left

    bench/death.py [--deaths 10] [--clients 2] [--scale 2] [--gclctl build/bin/gclctl]

Times of one machine that all primaries share: whatever else runs there counts.
"""
import argparse
import contextlib
import datetime
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402

DYING, SURVIVORS = 2, (1, 3)
BEFORE, AFTER = 3.0, 4.0  # seconds of load that are looked at
SETTINGS = ("fsync=on", "autovacuum=off", "log_timezone=UTC")
LOG_LINE = re.compile(rf"^(\S+ \S+) (\S+) .*LOG:  gcl: primary {DYING} (?:\(process \d+\) )?(.*) \([\d.]+ s\)$", re.M)
DEAD, GONE = "died; what it had is being repaired", "may join again"


class Load:
    """pgbench on one primary, which writes down the moment of each commit."""

    def __init__(self, dsn, script, clients, folder):
        self.prefix = os.path.join(folder, "log")
        os.mkdir(folder)
        self.process = subprocess.Popen(
            ["pgbench", "-n", "-M", "prepared", "-b", script, "-T", "3600", "-c", str(clients), "-j", "1", "--max-tries=1000",
             "-l", f"--log-prefix={self.prefix}", dsn], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def commits(self):
        """Seconds since the epoch."""
        moments = []
        for name in glob.glob(f"{self.prefix}.*"):
            with open(name, encoding="ascii") as log:
                for line in log:
                    words = line.split()
                    if len(words) >= 6 and words[2].isdigit():
                        moments.append(int(words[4]) + int(words[5]) / 1e6)
        return sorted(moments)

    def end(self):
        self.process.terminate()
        self.process.communicate()


def longest_gap(commits, since, until):
    moments = [since, *(moment for moment in commits if since < moment < until), until]
    return max(later - earlier for earlier, later in zip(moments, moments[1:]))


def told(cluster, k, what, since):
    """When primary K's log said so first after `since`; None: it did not."""
    for moment, zone, said in LOG_LINE.findall(cluster.log(k)):
        at = datetime.datetime.strptime(f"{moment}000", "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=datetime.timezone.utc).timestamp()
        assert zone == "UTC", zone
        if said == what and at >= since - 0.001:
            return at
    return None


def first_told(cluster, what, since):
    moments = [moment for moment in (told(cluster, k, what, since) for k in SURVIVORS) if moment is not None]
    return min(moments) if moments else None


def prepare(cluster, scale):
    schemas = {"shared": 1, **{f"own{k}": k for k in SURVIVORS}}
    for schema, k in schemas.items():
        cluster.sql(k, f"CREATE SCHEMA {schema}")
        dsn = f"{cluster.dsn(k)} options='-csearch_path={schema} -cdefault_table_access_method=gcl'"
        subprocess.run(["pgbench", "-i", "-q", "-s", str(scale), dsn], check=True, capture_output=True)
    return {(schema, k): f"{cluster.dsn(k)} options='-csearch_path={schema}'" for schema in schemas for k in (1, 2, 3)}


def one_death(cluster, dsns, clients, folder):
    with contextlib.ExitStack() as stack:
        def load(schema, k, script):
            started = Load(dsns[schema, k], script, clients, os.path.join(folder, f"{schema}.{k}"))
            stack.callback(started.end)
            return started
        load("shared", DYING, "tpcb-like")
        shared = [load("shared", k, "tpcb-like") for k in SURVIVORS]
        own = [load(f"own{k}", k, "simple-update") for k in SURVIVORS]
        time.sleep(1 + BEFORE)
        died = time.time()
        cluster.kill_all(DYING)
        time.sleep(AFTER)
    certain = first_told(cluster, DEAD, died)
    harness.eventually(lambda: first_told(cluster, GONE, died), 30)
    cluster.start(DYING)
    return {
        "certain": certain - died,
        "shared": max(longest_gap(load.commits(), died, died + AFTER - 0.1) for load in shared),
        "own": max(longest_gap(load.commits(), died, died + AFTER - 0.1) for load in own),
        "own before": max(longest_gap(load.commits(), died - BEFORE, died) for load in own),
        "repaired": first_told(cluster, GONE, died) - died,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--deaths", type=int, default=10)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--scale", type=int, default=2)
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    harness.GCLCTL = os.path.abspath(args.gclctl)
    data_directory.ON_DISK = "/var/tmp"
    deaths = []
    with tempfile.TemporaryDirectory() as folder, harness.Cluster(primaries=3, settings=SETTINGS) as cluster:
        dsns = prepare(cluster, args.scale)
        for n in range(args.deaths):
            logs = os.path.join(folder, str(n))
            os.mkdir(logs)
            deaths.append(one_death(cluster, dsns, args.clients, logs))
            print(", ".join(f"{what} {seconds * 1000:.0f}" for what, seconds in deaths[-1].items()), flush=True)
    print("median: " + ", ".join(f"{what} {statistics.median(death[what] for death in deaths) * 1000:.0f}" for what in deaths[0]))
    print("worst: " + ", ".join(f"{what} {max(death[what] for death in deaths) * 1000:.0f}" for what in deaths[0]))


if __name__ == "__main__":
    main()
