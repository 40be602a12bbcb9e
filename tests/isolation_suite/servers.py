"""Databases for the specs: on a plain server, and on the primaries of a cluster."""
import contextlib
import pathlib
import re
import subprocess
import sys

from suite import DATABASE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from harness import PSQL, Cluster  # noqa: E402
from plain_server import PlainServer  # noqa: E402

AT_A_TIME = 4  # specs: most of a spec's time is spent waiting
NAMES = [DATABASE, *(f"{DATABASE}_{k}" for k in range(2, AT_A_TIME + 1))]
SETTINGS = ("autovacuum=off", "max_prepared_transactions=10")
GCL_TABLES = "-c default_table_access_method=gcl"
# What a spec that did not come to its end has left behind.
LEFT_BEHIND = """SELECT count(*) FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
                 LEFT JOIN pg_proc p ON p.pronamespace = n.oid
                 WHERE n.nspname = 'public' AND (c.oid IS NOT NULL OR p.oid IS NOT NULL)"""
CLEAN = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC"


def psql(dsn, *statements):
    commands = [argument for statement in statements for argument in ("-c", statement)]
    done = subprocess.run([PSQL, "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", dsn, *commands], text=True, capture_output=True, timeout=120,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{statements}: {done.stderr}")
    return done.stdout.strip()


def clean(dsn):
    if psql(dsn, LEFT_BEHIND) != "0":
        psql(dsn, CLEAN)


def database(dsn, name):
    return re.sub(r"dbname=\w+", f"dbname={name}", dsn)


@contextlib.contextmanager
def plain():
    """Yields the connection strings of its databases."""
    with PlainServer(settings=SETTINGS) as server:
        psql(server.dsn, *(f"CREATE DATABASE {name}" for name in NAMES))
        yield [database(server.dsn, name) for name in NAMES]


@contextlib.contextmanager
def cluster():
    """Yields the connection strings of its databases on primary 1.  The extension has a schema of its own: specs have public."""
    with Cluster(primaries=3, pool="512MB", settings=SETTINGS) as cluster:
        psql(cluster.dsn(1), *(f"CREATE DATABASE {name}" for name in NAMES))
        for name in NAMES:
            for k in (1, 2, 3):
                psql(database(cluster.dsn(k), name), "CREATE SCHEMA gcl")
            psql(database(cluster.dsn(1), name), "CREATE EXTENSION gcl SCHEMA gcl")
        yield cluster
