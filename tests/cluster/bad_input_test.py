"""Bad input: each is refused with an error that says what is wrong and what helps; nothing is lost, nothing hangs."""
import os
import resource
import shutil
import subprocess
import unittest

from data_directory import account
from harness import GCLCTL, Cluster, Session, SqlError, eventually

FORMAT_AT, BLOCK_SIZE_AT = 8, 12  # in a pool's header


class Refusals(unittest.TestCase):
    def assert_refused(self, session, state, words, sql):
        """`words` are in the message, the detail or the hint."""
        with self.assertRaises(SqlError, msg=sql) as caught:
            session.run(sql)
        self.assertEqual(state, caught.exception.state, caught.exception)
        self.assertIn(words, "\n".join(line for line in session.collected if line))


class PoolsAndSettings(Refusals):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        cls.cluster.sql(1, "CREATE TABLE t (i int PRIMARY KEY) USING gcl; INSERT INTO t SELECT generate_series(1, 1000)")
        cls.pool = cls.cluster.pool_dir() + "/pool"
        cls.saved = cls.cluster.dir + "/pool.saved"

    def setUp(self):
        self.cluster.stop()

    def tearDown(self):
        self.cluster.start()
        self.assertEqual([["1000"]] * 2, self.cluster.everywhere("SELECT count(*) FROM t"))

    def last_words(self, k, *settings):
        """What a server says that must not start."""
        program = next(os.path.join(root, "postgres") for root, _, files in os.walk(self.cluster.dir + "/prefix")
                       if "postgres" in files)
        arguments = [program, "-D", f"{self.cluster.dir}/node{k}/data"]
        for setting in settings:
            arguments += ["-c", setting]
        done = subprocess.run(arguments, text=True, capture_output=True, timeout=60, cwd=f"{self.cluster.dir}/node{k}/data",
                              check=False, **account())
        self.assertEqual(1, done.returncode, done.stderr)
        return done.stderr

    def assert_no_start(self, words, *settings, k=1, hint=True):
        said = self.last_words(k, *settings)
        self.assertRegex(said, "FATAL:")
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(hint, "HINT:" in said, said)

    def log(self, k):
        with open(f"{self.cluster.dir}/node{k}/log", encoding="utf-8") as log:
            return log.read()

    def start_refused(self, words):
        done = self.cluster.ctl("start", self.cluster.dir, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn(words, done.stderr)
        self.assertNotIn("closed cleanly", done.stderr)

    def tampered(self, path, at, value):
        with open(path, "r+b") as f:
            f.seek(at)
            before = f.read(len(value))
            f.seek(at)
            f.write(value)
        return before

    def test_a_pool_cut_short(self):
        size = os.path.getsize(self.pool)
        shutil.copy(self.pool, self.pool + ".whole")
        os.truncate(self.pool, size - 4096)
        self.assert_no_start(["shorter than it must be", str(size)])
        self.start_refused("shorter than it must be")
        os.truncate(self.pool, 100)
        self.assert_no_start(["is not a pool"])
        self.start_refused("is not a pool")
        with open(self.pool, "r+b") as to, open(self.pool + ".whole", "rb") as whole:
            shutil.copyfileobj(whole, to)
        os.remove(self.pool + ".whole")
        # The same for the copy on disk.
        os.rename(self.pool, self.pool + ".elsewhere")
        size = os.path.getsize(self.saved)
        with open(self.saved, "rb") as f:
            f.seek(size - 4096)
            tail = f.read()
        os.truncate(self.saved, size - 4096)
        self.assert_no_start(["not a whole pool file", "XX001"], "log_error_verbosity=verbose")
        self.start_refused("shorter than it must be")
        with open(self.saved, "ab") as f:
            f.write(tail)
        os.rename(self.pool + ".elsewhere", self.pool)

    def test_a_pool_of_another_format_or_server(self):
        for at, value, words in ((FORMAT_AT, b"\x63\0\0\0", ["format version 99", "reads version"]),
                                 (BLOCK_SIZE_AT, b"\0\x40\0\0", ["pages of 16384 bytes", "8192"])):
            before = self.tampered(self.pool, at, value)
            self.assert_no_start(words)
            self.start_refused(words[0])
            self.assertIn("NOT FOR THESE SERVERS", self.cluster.ctl("status", self.cluster.dir, check=False).stdout)
            self.tampered(self.pool, at, before)
        with open(self.pool, "rb") as f:
            header = f.read(65536)
        at = header.index(b"server version=15")
        before = self.tampered(self.pool, at, b"server version=14")
        self.assert_no_start(["server version=14", "server version=15"])
        self.start_refused("server version=14")
        self.tampered(self.pool, at, before)

    def test_no_pool_where_one_is_named(self):
        self.assert_no_start(["/nowhere/pool"], "gcl.pool=/nowhere/pool")
        self.assert_no_start(["cannot open pool file", "No such file"], f"gcl.pool={self.pool}2", "gcl.pool_file=/nowhere/saved")

    def test_permissions(self):
        for path, mode in ((self.pool, 0o000), (os.path.dirname(self.pool), 0o500)):
            before = os.stat(path).st_mode
            os.chmod(path, mode)
            self.assert_no_start(["Permission denied", "pool"])
            done = self.cluster.ctl("start", self.cluster.dir, check=False)
            os.chmod(path, before)
            if mode == 0:  # gclctl gives a directory of its own the right mode
                self.assertEqual(1, done.returncode)
                self.assertIn("Permission denied", done.stderr)
            else:
                self.cluster.stop()

    def test_settings_that_do_not_start(self):
        self.assert_no_start(["gcl.cache_size = 1024kB is too small", "gcl.cache_size to"], "gcl.cache_size=1MB")
        self.assert_no_start(["gcl.node_id is not"], "gcl.node_id=-1")
        self.assert_no_start(["room for nodes 0 to", "not for 40"], "gcl.node_id=40")
        self.assert_no_start(["58 is outside the valid range", "gcl.node_id is not"], "gcl.node_id=58")
        self.assert_no_start(["invalid value for parameter \"gcl.locale\"", "ENCODING/LOCALE"], "gcl.locale=German", hint=False)
        self.assert_no_start(["invalid value for parameter \"gcl.locale\""], "gcl.locale=UTF9/C", hint=False)
        self.assert_no_start(["locale=UTF8/de_DE.UTF-8", "locale=UTF8/C.UTF-8"], "gcl.locale=UTF8/de_DE.UTF-8")
        self.assert_no_start(["absolute path"], "gcl.pool=pool", hint=False)
        self.assert_no_start(["absolute path"], "gcl.pool_file=saved", hint=False)
        self.assert_no_start(["at most 1024 processes"], "max_connections=2000", "gcl.cache_size=64MB")
        self.assert_no_start(["gcl must be first in shared_preload_libraries"], "shared_preload_libraries=pg_stat_statements,gcl")
        self.assert_no_start(["wal_level"], "wal_level=minimal", "max_wal_senders=0", hint=False)
        self.assert_no_start(["replication slot", "Set max_replication_slots"], "max_replication_slots=0")

    def test_a_node_id_that_is_served_already(self):
        self.cluster.start(1)
        self.assert_no_start(["node 1 is in use by process", "gcl.node_id of its own"], "gcl.node_id=1", k=2)
        self.assertEqual(["1000"], self.cluster.sql(1, "SELECT count(*) FROM t"))

    def test_settings_by_sql(self):
        self.cluster.start()
        one = self.cluster.session(1)
        for name in ("pool", "pool_file", "locale", "node_id", "cache_size"):
            self.assert_refused(one, "55P02", "without restarting", f"SET gcl.{name} = '1'")
        for name, value in (("cache_size", "tiny"), ("cache_size", "1kB"), ("node_id", "58"), ("node_id", "one"),
                            ("locale", "C"), ("pool", "here/pool")):
            self.assert_refused(one, "22023", f"gcl.{name}", f"ALTER SYSTEM SET gcl.{name} = '{value}'")
        self.assert_refused(one, "42602", "gcl", "SET gcl.chache_size = '1GB'")

    def test_a_database_of_another_locale(self):
        self.cluster.start()
        for k, locales in ((1, ("C", "C.UTF-8")), (2, ("C", "C"))):
            for name, locale in zip(("other", "mixed"), locales):
                self.cluster.sql(k, "SET gcl.local_administration = on;"
                                    f"CREATE DATABASE {name} TEMPLATE template0 LOCALE '{locale}'")

        def on(k, name):
            session = Session(self.cluster.dsn(k).replace("dbname=postgres", f"dbname={name}"))
            self.addCleanup(session.close)
            return session

        self.assert_refused(on(1, "other"), "55000", '"UTF8/C", the pool has "UTF8/C.UTF-8"', "CREATE EXTENSION gcl")
        self.assert_refused(on(1, "mixed"), "55000", "primary 2", "CREATE EXTENSION gcl")
        self.assertEqual(["0"], on(1, "mixed").run("SELECT count(*) FROM pg_extension WHERE extname = 'gcl'"))

    def test_without_preload(self):
        log = open(f"{self.cluster.dir}/node1/log", "a", encoding="utf-8")
        self.addCleanup(log.close)
        program = next(os.path.join(root, "postgres") for root, _, files in os.walk(self.cluster.dir + "/prefix")
                       if "postgres" in files)
        data = f"{self.cluster.dir}/node1/data"
        server = subprocess.Popen([program, "-D", data, "-c", "shared_preload_libraries="], stdout=log, stderr=log, cwd=data,
                                  **account())
        try:
            eventually(lambda: subprocess.run(["pg_isready", "-q", "-d", self.cluster.dsn(1)], check=False).returncode == 0, 30)
            self.cluster.sql(1, "CREATE DATABASE plain")
            session = Session(self.cluster.dsn(1).replace("dbname=postgres", "dbname=plain"))
            self.addCleanup(session.close)
            self.assert_refused(session, "55000", "Add gcl to shared_preload_libraries", "CREATE EXTENSION gcl")
            self.assert_refused(self.cluster.session(1), "55000", "shared_preload_libraries", "SELECT count(*) FROM t")
        finally:
            server.send_signal(2)
            server.wait(30)

    def test_tables_of_descriptors_that_are_full(self):
        """A process that cannot tell whether a primary lives does not take it for dead."""
        self.cluster.start()
        message_workers = [self.cluster.workers(k)["gcl message worker"] for k in (1, 2)]
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        for pid in message_workers:
            subprocess.run(["prlimit", "--pid", str(pid), "--nofile=3:"], check=True, **account())
        for limit in (4, 5, 6, 7, 9, 64):
            seen = subprocess.run(["prlimit", f"--nofile={limit}", GCLCTL, "status", self.cluster.dir], text=True,
                                  capture_output=True, timeout=60, check=False)
            said = seen.stdout + seen.stderr
            self.assertNotIn("FENCED", said)
            self.assertNotRegex(said, r"primary \d .*down")
            if "pool   " in said and "in use" not in said:
                self.assertIn("Too many open files", said)
            self.assertEqual([["1000"]] * 2, self.cluster.everywhere("SELECT count(*) FROM t"))
        self.assertEqual(0, seen.returncode, said)
        for pid in message_workers:
            subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={soft}:"], check=True, **account())

    def test_a_pool_that_cannot_be_saved(self):
        """A disk that is full at a clean stop: files of the workers that save may not grow to the pool's size."""
        self.cluster.start()
        for k in (1, 2):
            message_worker = self.cluster.workers(k)["gcl message worker"]
            subprocess.run(["prlimit", "--pid", str(message_worker), f"--fsize={20 << 20}"], check=True, **account())
        self.cluster.sql(1, "CREATE TABLE more (i int) USING gcl; INSERT INTO more VALUES (7)")
        os.mkdir(self.saved + ".next.new")  # and gclctl, which tries again, meets it, too
        done = self.cluster.ctl("stop", self.cluster.dir, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("could not be saved", done.stderr)
        self.assertIn("gclctl stop again", done.stderr)
        logs = "".join(self.log(k) for k in (1, 2))
        self.assertRegex(logs, "could not save it: cannot .* pool file")
        self.assertIn("NOT SAVED", self.cluster.ctl("status", self.cluster.dir, check=False).stdout)
        self.cluster.start()  # it can be used meanwhile
        self.assertEqual([["7"]] * 2, self.cluster.everywhere("SELECT * FROM more"))
        done = self.cluster.ctl("stop", self.cluster.dir, check=False)
        self.assertEqual(1, done.returncode)
        os.rmdir(self.saved + ".next.new")
        self.assertIn("the pool is saved", self.cluster.stop().stdout)
        os.remove(self.pool)  # as after a reboot
        self.cluster.start()
        self.assertEqual([["7"]] * 2, self.cluster.everywhere("SELECT * FROM more"))
        self.cluster.sql(2, "DROP TABLE more")


class FullPool(Refusals):
    """53100 for the statement, and the cluster goes on; room comes back."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, pool="64MB", cache="8MB", settings=("autovacuum=off",)))
        self.one, self.two, self.three = (self.cluster.session(k) for k in (1, 2, 3))

    def fill(self, session, table, rows=2000, text=900):
        """Inserts until there is no room; returns how many rows went in."""
        total = 0
        while True:
            try:
                session.run(f"INSERT INTO {table} SELECT {total} + i, repeat('x', {text}) FROM generate_series(1, {rows}) i", 60)
                total += rows
            except SqlError as error:
                self.assertEqual("53100", error.state, error)
                if rows == 1:
                    return total
                rows = max(1, rows // 10)

    def test_room_comes_back(self):
        for session, name in ((self.one, "a"), (self.two, "b")):
            session.run(f"CREATE TABLE {name} (i int PRIMARY KEY, t text) USING gcl")
        self.two.run("INSERT INTO b SELECT i, 'b' FROM generate_series(1, 100) i")
        rows = self.fill(self.one, "a")
        self.assertGreater(rows, 10000)
        # A few dozen pages are left of extents that are broken into: too few for this.
        self.assert_refused(self.two, "53100", "None of the pool's", "INSERT INTO a SELECT -i, repeat('y', 900) FROM generate_series(1, 999) i")
        self.assert_refused(self.one, "53100", "gclctl add-memory", "CREATE INDEX ON a (t, i)")
        for session in (self.one, self.two, self.three):  # all else goes on
            self.assertEqual(str(rows), session.one("SELECT count(*) FROM a"))
            session.run("UPDATE b SET t = 'c' WHERE i = 1")
            session.run(f"BEGIN; SELECT 1 FROM a WHERE i = {rows} FOR UPDATE; ROLLBACK")
        # DELETE and VACUUM, each on another primary; room is there for all of them.
        self.three.run(f"DELETE FROM a WHERE i % 2 = 0", 60)
        for session, at in ((self.one, 2), (self.two, 4), (self.three, 6)):
            self.insert_after_vacuum(session, f"INSERT INTO a SELECT i, repeat('y', 900) FROM generate_series({at}, {rows // 4}, 6) i")
        self.check_index("a")
        # TRUNCATE needs new pages before the old ones are free, and DDL needs a place in the log.
        self.two.run("TRUNCATE a", 60)
        self.assertEqual("0", self.one.one("SELECT count(*) FROM a"))
        again = self.fill(self.two, "a")
        self.assertGreater(again, rows * 9 // 10)
        self.three.run("DROP TABLE a", 60)
        self.one.run("CREATE TABLE a (i int PRIMARY KEY, t text) USING gcl")
        self.assertGreater(self.fill(self.three, "a"), rows * 9 // 10)

    def insert_after_vacuum(self, session, sql):
        """VACUUM removes what no snapshot of any primary sees; they tell each other of theirs every few milliseconds."""
        def done():
            self.two.run("VACUUM a", 60)
            try:
                session.run(sql, 60)
            except SqlError as error:
                self.assertEqual("53100", error.state, error)
                return False
            return True

        eventually(done, 30)

    def check_index(self, table):
        for session in (self.one, self.two, self.three):
            by_heap = session.run(f"SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;"
                                  f"SELECT count(*), sum(i) FROM {table} WHERE i > 0")
            by_index = session.run(f"RESET ALL; SET enable_seqscan = off; SELECT count(*), sum(i) FROM {table} WHERE i > 0")
            session.run("RESET ALL")
            self.assertEqual(by_heap, by_index)

    def test_under_load_of_all_primaries(self):
        self.one.run("CREATE TABLE a (i int PRIMARY KEY, t text) USING gcl; CREATE INDEX ON a (t, i)")
        load = """DO $$ DECLARE full_at int := 0; BEGIN
          FOR n IN 1..6000 LOOP
            BEGIN
              INSERT INTO a SELECT {k} + 3 * (n * 50 + j), repeat(chr(97 + j % 26), 300) FROM generate_series(0, 49) j;
            EXCEPTION WHEN disk_full THEN full_at := full_at + 1; EXIT WHEN full_at = 400;
            END;
            COMMIT;
          END LOOP;
          IF full_at < 400 THEN RAISE 'the pool was not full'; END IF;
        END $$"""
        sessions = (self.one, self.two, self.three)
        for k, session in enumerate(sessions):
            session.send(load.format(k=k))
        for session in sessions:
            session.result(120)
        self.check_index("a")
        self.assertEqual(["0"], self.one.run("SELECT count(*) FROM (SELECT i % 3, (i / 3) / 50, count(*) FROM a GROUP BY 1, 2 "
                                             "HAVING count(*) <> 50) x"), "a statement is there whole or not at all")
        self.two.run("DELETE FROM a WHERE i % 3 = 1", 60)
        self.insert_after_vacuum(self.one, "INSERT INTO a SELECT 1 + 3 * (n * 50 + j), repeat(chr(97 + j % 26), 300) "
                                           "FROM generate_series(1, 20) n, generate_series(0, 49) j")
        self.check_index("a")
        self.three.run("DROP TABLE a", 60)
        eventually(lambda: int(self.one.one("SELECT free_pool_pages FROM gcl_stat_space")) > 3000)  # in the background


class NoMemory(Refusals):
    """A server's process that gets no more memory: 53200 for the transaction, and the cluster goes on."""

    # Each update ends a version of the same transaction, which gcl notes in memory; PostgreSQL itself needs none for it.
    # By ctid, so that no update looks at earlier versions.
    LOOP = """DO $$ DECLARE at tid := (SELECT ctid FROM t WHERE i = 1); BEGIN
      FOR n IN 1..{n} LOOP UPDATE t SET v = v + 1 WHERE ctid = at RETURNING ctid INTO STRICT at; END LOOP; END $$"""

    @staticmethod
    def limit(pid, more):
        """Address space: what the process has by now and so many bytes more."""
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            now = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        subprocess.run(["prlimit", "--pid", str(pid), f"--as={now + more}"], check=True, **account())

    def test_a_transaction_of_many_commands(self):
        with Cluster(primaries=2, pool="256MB", cache="32MB") as cluster:
            one, two = cluster.session(1), cluster.session(2)
            one.run("CREATE TABLE t (i int, v int) USING gcl; INSERT INTO t VALUES (1, 0), (2, 0)")
            one.run(self.LOOP.format(n=1000))
            two.run("UPDATE t SET v = v")  # so that the next SELECT, too, comes from the pool
            # PostgreSQL's caches take memory by the half megabyte: they have what the statements below need.
            one.run("BEGIN; UPDATE t SET v = v + 1 WHERE i = 2; SAVEPOINT s; ROLLBACK TO s; ROLLBACK; SELECT * FROM t ORDER BY i")
            self.limit(one.pid(), 256 << 10)
            many = self.LOOP.format(n=1000000)
            words = "this session has none for what its transaction keeps".capitalize()
            self.assert_refused(one, "53200", words, many)
            self.assertEqual(["1|1000", "2|0"], one.run("SELECT * FROM t ORDER BY i"))
            one.run("BEGIN; UPDATE t SET v = v + 1 WHERE i = 2; SAVEPOINT s")
            self.assert_refused(one, "53200", words, many)
            one.run("ROLLBACK TO s; UPDATE t SET v = v + 10 WHERE i = 1; COMMIT")
            for session in (one, two):
                self.assertEqual(["1|1010", "2|1"], session.run("SELECT * FROM t ORDER BY i"))
            two.run("UPDATE t SET v = v + 1")
            self.assertEqual(["1|1011", "2|2"], one.run("SELECT * FROM t ORDER BY i"))


class Rows(Refusals):
    """Tables and keys that are too wide."""

    def test_wide(self):
        with Cluster(primaries=2, pool="64MB", cache="8MB") as cluster:
            one, two = cluster.session(1), cluster.session(2)
            columns = ", ".join(f"c{i} int" for i in range(1600))
            one.run(f"CREATE TABLE wide ({columns}) USING gcl")
            one.run("INSERT INTO wide (c0, c799, c1599) VALUES (1, 2, 3)")
            one.run(f"INSERT INTO wide VALUES ({', '.join(map(str, range(1600)))})")
            self.assertEqual(["0|1|799|1599", "1||2|3"], two.run("SELECT c0, c1, c799, c1599 FROM wide ORDER BY c0"))
            two.run("UPDATE wide SET c1599 = c1599 + 1")
            self.assertEqual(["4", "1600"], one.run("SELECT c1599 FROM wide ORDER BY 1"))
            self.assert_refused(one, "54011", "1600 columns", f"CREATE TABLE wider ({columns}, d int) USING gcl")
            one.run("CREATE TABLE big (" + ", ".join(f"c{i} bigint" for i in range(1600)) + ") USING gcl")
            self.assert_refused(one, "54000", "row is too big", f"INSERT INTO big VALUES ({', '.join(map(str, range(1600)))})")
            one.run("CREATE TABLE k (t text) USING gcl; CREATE INDEX ON k (t)")
            letters = "(SELECT left(string_agg(md5(i::text), ''), {n}) FROM generate_series(1, 300) i)"  # not to be compressed
            self.assert_refused(two, "54000", "index row", f"INSERT INTO k VALUES ({letters.format(n=4000)})")
            self.assert_refused(two, "54000", "index row", f"INSERT INTO k VALUES ({letters.format(n=9000)})")
            two.run(f"INSERT INTO k VALUES ({letters.format(n=2000)})")
            self.assertEqual("1", one.one("SELECT count(*) FROM k"))
            self.assertEqual("0", two.one("SELECT count(*) FROM big"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
