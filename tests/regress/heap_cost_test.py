#!/usr/bin/env python3
"""What a preloaded gcl costs heap tables, in instructions: counted by callgrind in one backend, not by a clock.

Primary 1 of a cluster runs under valgrind, once as it is and once with an empty shared_preload_libraries.  One session runs a few
prepared statements of every kind, others some hundreds more of one kind: the difference is what one more costs, without start,
caches and end of a session.
"""
import subprocess
import time
import unittest

from callgrind import callgrind
from harness import Cluster
from servers import Primary

RATIO_MIN = 0.99
STATEMENTS = 400
WARM = 8  # a generic plan is made after five
SETUP = """
DROP TABLE IF EXISTS counted;
CREATE TABLE counted (id int PRIMARY KEY, v int, t text) USING heap;
INSERT INTO counted SELECT i, i, 'some text' FROM generate_series(1, 10000) i;
VACUUM (FREEZE, ANALYZE) counted;
CHECKPOINT;
"""
KINDS = {
    "look_up": "SELECT v FROM counted WHERE id = $1",
    "change": "UPDATE counted SET v = v + 1 WHERE id = $1",
    "add": "INSERT INTO counted VALUES (10000 + $1, 0, NULL) ON CONFLICT DO NOTHING",
}


def psql(server, text):
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", server.socket_dir, "-p", str(server.port), "-U", "postgres", "postgres"],
                          input=text, text=True, capture_output=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def session_instructions(server, counted, more=None):
    """Instructions of a whole session that runs WARM statements of every kind, and then STATEMENTS of one."""
    text = "SELECT pg_backend_pid();\n" + "".join(f"PREPARE {kind}(int) AS {sql};\n" for kind, sql in KINDS.items())
    for kind, count in [*((kind, WARM) for kind in KINDS), (more, STATEMENTS if more else 0)]:
        # In one message: waiting for the next one takes instructions by chance.
        text += "".join(f"BEGIN\\; EXECUTE {kind}({i * 7919 % 10000 + 1})\\; COMMIT\\;\n" for i in range(count)) + "SELECT 1;\n"
    return counted.instructions(psql(server, text).splitlines()[0])


def costs(server, counted):
    """{kind: instructions of one more transaction of one statement}"""
    psql(server, SETUP)
    session_instructions(server, counted)  # fills the caches that sessions share
    base = session_instructions(server, counted)
    return {kind: (session_instructions(server, counted, kind) - base) / STATEMENTS for kind in KINDS}


class HeapCost(unittest.TestCase):
    def test_preloading_gcl_costs_heap_statements_less_than_a_hundredth(self):
        began = time.monotonic()
        with Cluster(primaries=1, pool="64MB", cache="16MB", settings=("autovacuum=off", "checkpoint_timeout=1h")) as cluster:
            server = Primary(cluster)
            cluster.stop()
            with callgrind(cluster) as counted:
                self.assertEqual("gcl\n", psql(server, "SHOW shared_preload_libraries"))
                with_gcl = costs(server, counted)
            with callgrind(cluster, "-c", "shared_preload_libraries=") as counted:
                without = costs(server, counted)
        for kind in KINDS:
            print(f"{kind}: {without[kind]:.0f} instructions without gcl, {with_gcl[kind]:.0f} with it, "
                  f"ratio {without[kind] / with_gcl[kind]:.4f}")
        print(f"({time.monotonic() - began:.0f} s)")
        for kind in KINDS:
            self.assertGreater(without[kind], 1000, "nothing was counted")
            self.assertGreaterEqual(without[kind] / with_gcl[kind], RATIO_MIN, kind)


if __name__ == "__main__":
    unittest.main(verbosity=2)
