#!/usr/bin/env python3
"""The last lines that each failed test of ctest's last run has printed, for the end of a long log.

Usage: failed_tests.py BUILD_DIRECTORY
"""
import pathlib
import re
import sys

TESTS_MAX = 3
LINES_MAX = 30


def output_of(log, name):
    """What the test printed, out of ctest's LastTest.log; its lines without those that are blank."""
    block = re.search(rf"^\d+/\d+ Test: {re.escape(name)}\n.*?^Output:\n-+\n(.*?)^(?:<end of output>|Test time =)", log, re.MULTILINE | re.DOTALL)
    return [line for line in block[1].splitlines() if line.strip()] if block else []


def main(build):
    logs = pathlib.Path(build) / "Testing" / "Temporary"
    try:
        failed = [line.partition(":")[2] for line in (logs / "LastTestsFailed.log").read_text().splitlines()]
        log = (logs / "LastTest.log").read_text(errors="replace")
    except FileNotFoundError:
        return
    for name in failed[:TESTS_MAX]:
        lines = output_of(log, name)
        print(f"--- {name}: its last lines, of {len(lines)}")
        print(*lines[-LINES_MAX:], sep="\n", end="\n" if lines else "")
    if len(failed) > TESTS_MAX:
        print(f"--- {len(failed) - TESTS_MAX} more have failed")


if __name__ == "__main__":
    main(sys.argv[1])
