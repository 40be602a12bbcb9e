"""Databases for the specs: on a plain server, and on the primaries of a cluster."""
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

from relay import Relay
from suite import DATABASE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from harness import PSQL, Cluster  # noqa: E402
from plain_server import PlainServer  # noqa: E402

AT_A_TIME = 6  # specs: most of a spec's time is spent waiting
NAMES = [DATABASE, *(f"{DATABASE}_{k}" for k in range(2, AT_A_TIME + 1))]
SETTINGS = ("autovacuum=off", "max_prepared_transactions=10")
GCL_SETTINGS = (*SETTINGS, "gcl.hold_yield=-1")  # sessions of a spec are idle for as long as the others take
GCL_TABLES = "-c default_table_access_method=gcl"
# What a spec that did not come to its end has left behind.
LEFT_BEHIND = """SELECT count(*) FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
                 LEFT JOIN pg_proc p ON p.pronamespace = n.oid
                 WHERE n.nspname = 'public' AND (c.oid IS NOT NULL OR p.oid IS NOT NULL)"""
# isolationtester asks this of the primary of its first connection: whether a session is blocked by one of those of the spec.  The
# server's own function knows the processes of its primary; this one those of all.  Only the databases of the specs have it.
# A server calls its built-in functions by their OIDs, whatever the catalog says of them: so this one is an expression, which the
# planner puts in its place.
BLOCKED = """CREATE FUNCTION gcl.is_blocked(integer, integer[]) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM gcl.gcl_stat_waits WHERE $1 IN (pid, works_for_pid) AND blocked_by_pid = ANY ($2)) $$"""
IS_BLOCKED = """SET allow_system_table_mods = on;
    CREATE OR REPLACE FUNCTION pg_catalog.pg_isolation_test_session_is_blocked(integer, integer[]) RETURNS boolean
    VOLATILE LANGUAGE sql AS $$ SELECT gcl.is_blocked($1, $2) $$"""
IS_BLOCKED_NOW = "SELECT pg_get_functiondef('pg_catalog.pg_isolation_test_session_is_blocked'::regproc)"
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
    """Yields it, with a database for each spec at a time.  The extension has a schema of its own: specs have public."""
    with Cluster(primaries=3, pool="512MB", settings=GCL_SETTINGS) as cluster:
        psql(cluster.dsn(1), *(f"CREATE DATABASE {name}" for name in NAMES))
        for name in NAMES:
            for k in (1, 2, 3):
                psql(database(cluster.dsn(k), name), "CREATE SCHEMA gcl")
            psql(database(cluster.dsn(1), name), "CREATE EXTENSION gcl SCHEMA gcl")
        yield cluster


@contextlib.contextmanager
def spread(cluster):
    """Yields connection strings of its databases through relays, and the function that tells a relay that a spec begins."""
    pairs = [dict(re.findall(r"(\w+)=(\S+)", cluster.dsn(k))) for k in (1, 2, 3)]
    primaries = [f"{pair['host']}/.s.PGSQL.{pair['port']}" for pair in pairs]
    relays = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for port, name in enumerate(NAMES, 1):
            direct = database(cluster.dsn(1), name)
            original = psql(direct, IS_BLOCKED_NOW)
            psql(direct, BLOCKED)
            psql(direct, IS_BLOCKED)
            stack.callback(psql, direct, f"SET allow_system_table_mods = on; {original}", "DROP FUNCTION gcl.is_blocked")
            relay = stack.enter_context(Relay(folder, port, primaries))
            relays[f"host={folder} port={port} user=postgres dbname={name}"] = direct, relay

        def before(conninfo):
            direct, relay = relays[conninfo]
            clean(direct)
            relay.begin()

        yield list(relays), before
