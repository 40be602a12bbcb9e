#!/usr/bin/env python3
"""Two builds side by side, on clusters of the same settings: one primary, and three with shared tables.  They run in turn, or both at
once (--at-once), so that what else the machine does is the same for both.  Prints ratios; more than 1 is faster than the build before.

    bench/builds.py BEFORE/gclctl [--rounds 7] [--seconds 6] [--clients 4] [--scale 10] [--only one,select-only] [--at-once]
        [--gclctl build/bin/gclctl]

Scripts: pgbench's select-only, simple-update, tpcb-like, prepared.  `clients`: of each primary.
"""
import argparse
import contextlib
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cluster"))
import data_directory  # noqa: E402
import harness  # noqa: E402
import primaries  # noqa: E402

CLUSTERS = {"one": 1, "three": 3}
SETTINGS = ("fsync=on", "shared_buffers=128MB", "autovacuum=off", "max_wal_size=4GB")


class Build(harness.Cluster):
    """Of another gclctl than the other one's."""

    holds_nothing = False  # the build before may not have what says so

    def __init__(self, gclctl, count):
        self.gclctl = os.path.abspath(gclctl)
        harness.GCLCTL = self.gclctl
        super().__init__(primaries=count, pool="2GB", cache="256MB", settings=SETTINGS, data_from="/nowhere")

    def ctl(self, *arguments, check=True):
        harness.GCLCTL = self.gclctl
        return super().ctl(*arguments, check=check)

    def dsns(self):
        return [f"{self.dsn(k)} options='-cdefault_table_access_method=gcl'" for k in range(1, self.primaries + 1)]


def in_turn(builds, rate, number):
    """{build: its rate}"""
    return {build: sum(rate(builds[build].dsns())) for build in list(builds)[:: 1 if number % 2 == 0 else -1]}


def at_once(builds, rate, _number):
    rates = rate([dsn for build in builds.values() for dsn in build.dsns()])
    each = len(rates) // len(builds)
    return {build: sum(rates[at * each:(at + 1) * each]) for at, build in enumerate(builds)}


def compare(name, builds, script, args):
    def rate(dsns):
        return primaries.rates(dsns, script, args.clients, args.seconds)
    rate([dsn for build in builds.values() for dsn in build.dsns()])  # the caches
    found = [(at_once if args.at_once else in_turn)(builds, rate, number) for number in range(args.rounds)]
    before, now = (statistics.median(each[build] for each in found) for build in ("before", "now"))
    pairs = sorted(each["now"] / each["before"] for each in found)
    print(f"{name}, {script}: before {before:.0f}/s, now {now:.0f}/s, ratio of medians {now / before:.2f}, "
          f"median of pairs {statistics.median(pairs):.2f} ({pairs[0]:.2f} to {pairs[-1]:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--only", default=",".join((*CLUSTERS, *primaries.SCRIPTS)))
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--gclctl", default="build/bin/gclctl")
    args = parser.parse_args()
    wanted = args.only.split(",")
    data_directory.ON_DISK = "/var/tmp"
    for name in (name for name in CLUSTERS if name in wanted):
        with contextlib.ExitStack() as stack:
            builds = {"before": stack.enter_context(Build(args.before, CLUSTERS[name])),
                      "now": stack.enter_context(Build(args.gclctl, CLUSTERS[name]))}
            for build in builds.values():
                subprocess.run(["pgbench", "-i", "-q", "-s", str(args.scale), build.dsns()[0]], check=True, capture_output=True)
            for script in (script for script in primaries.SCRIPTS if script in wanted):
                compare(name, builds, script, args)


if __name__ == "__main__":
    main()
