"""Whether the WALs of all primaries together make every page of the pool, out of nothing."""
import os
import re
import subprocess

PROGRAM = os.path.join(os.path.dirname(os.environ.get("GCLCTL", "")), "pages_of_wals")
KEPT = "wal_keep_size=8GB"  # a setting that a cluster needs for it


def assert_made_by_wals(test, cluster):
    """REQUIRES: a cluster with the setting KEPT that was stopped, and never lost a primary."""
    data = [f"{cluster.dir}/node{k}/data" for k in range(1, cluster.primaries + 1)]
    ended = subprocess.run([PROGRAM, f"{cluster.dir}/pool.saved", *data], text=True, capture_output=True, check=False, timeout=300)
    test.assertEqual(0, ended.returncode, ended.stdout[-2000:] + ended.stderr)
    pages, records, transactions = map(int, re.match(r"(\d+) pages of (\d+) records, (\d+) transactions", ended.stdout).groups())
    test.assertGreater(pages, 50)
    test.assertGreater(records, transactions)
    test.assertGreater(transactions, 20)
