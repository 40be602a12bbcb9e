"""What people see: gcl_stat_* for this primary and for all, numbers that can be known asserted exactly."""
import os
import pathlib
import re
import signal
import unittest

from harness import Cluster, SqlError, eventually

OPERATING = pathlib.Path(__file__).parents[2] / "docs" / "OPERATING.md"


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(entry))
        except OSError:
            pass
    return found


class Stopped:
    """All processes of a primary stand still."""

    def __init__(self, cluster, k, only=None):
        pid = cluster.postmaster(k)
        self.pids = only or [pid, *children(pid)]

    def __enter__(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)


def records(session, sql):
    """Rows as dictionaries."""
    return [dict(pair.split("=", 1) for pair in row.split("|")) for row in session.run(
        f"SELECT string_agg(key || '=' || coalesce(value, ''), '|') FROM ({sql}) s, jsonb_each_text(to_jsonb(s)) GROUP BY s.*::text")]


class Views(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, pool="128MB", cache="16MB", settings=("autovacuum=off",)))
        cls.one, cls.two, cls.three = (cls.cluster.session(k) for k in (1, 2, 3))

    def fresh(self, session):
        """Waits until what `session` sees of all primaries was sampled after now."""
        now = session.one("SELECT clock_timestamp()")
        eventually(lambda: session.run(f"SELECT 1 FROM gcl_stat_cluster WHERE sampled_at IS NULL OR sampled_at < '{now}'") == [])

    def test_all_primaries_from_each_and_messages_sent_are_messages_received(self):
        self.one.run("CREATE TABLE sums (id int PRIMARY KEY, n int) USING gcl; INSERT INTO sums SELECT i, 0 FROM generate_series(1, 500) i")
        for i in range(10):
            for session in (self.one, self.two, self.three):
                session.run(f"UPDATE sums SET n = n + 1 WHERE id % 50 = {i}")
        sums = """SELECT sum(value) FILTER (WHERE counter LIKE 'peer%sent'), sum(value) FILTER (WHERE counter LIKE 'peer%received'),
                         sum(value) FILTER (WHERE counter LIKE 'grant%sent'), sum(value) FILTER (WHERE counter LIKE 'grant%received'),
                         sum(value) FILTER (WHERE counter ~ '^(done|dropped)_sent'),
                         sum(value) FILTER (WHERE counter ~ '^(done|dropped)_received') FROM gcl_stat_cluster_counters"""

        def balanced():
            # No session works; what the workers do by themselves may fall between two samples.
            self.fresh(self.two)
            sent, received, pages, landed, done, heard = map(int, self.two.one(sums).split("|"))
            self.assertGreater(sent, 60)
            self.assertGreater(pages, 30)
            return (sent, pages, done) == (received, landed, heard)

        eventually(balanced)
        for session in (self.one, self.two, self.three):
            self.fresh(session)  # each sees itself as it is, and the others by their samples
            self.assertEqual(["1|live", "2|live", "3|live"], session.run("SELECT node, state FROM gcl_stat_cluster ORDER BY node"))
            eventually(lambda s=session: s.run("SELECT string_agg(stale::text::char, '|') FROM gcl_stat_cluster") == ["f|f|f"])
            self.assertEqual([], session.run("""SELECT node, mini_transactions, frames, free_frames, redo_ring_bytes, redo_ring_used, status_words,
                status_words_used FROM gcl_stat_cluster WHERE NOT (mini_transactions > 0 AND frames = 2048 AND free_frames < 2048
                AND redo_ring_used BETWEEN 0 AND redo_ring_bytes AND status_words_used BETWEEN 0 AND status_words)"""))
        # This primary's row is what gcl_stat_node says.
        alike = """SELECT c.mini_transactions = n.mini_transactions AND c.pages_received = n.pages_received
            FROM gcl_stat_cluster c, gcl_stat_node n WHERE c.this AND c.node = n.node"""
        eventually(lambda: self.one.one(alike) == "t")  # if no worker does something between the one and the other

    def test_the_page_that_two_primaries_write_in_turns_is_the_hottest(self):
        self.one.run("CREATE TABLE duel (n int) USING gcl; INSERT INTO duel VALUES (0)")
        self.one.run("CREATE TABLE calm (n int) USING gcl; INSERT INTO calm VALUES (0)")
        for session in (self.one, self.two):
            session.run("SELECT gcl_stat_reset_hot_pages()")
        for _ in range(30):
            self.one.run("UPDATE duel SET n = n + 1")
            self.two.run("UPDATE duel SET n = n + 1")
        self.two.run("SELECT * FROM calm")
        hottest = self.one.run("""SELECT relname, kind, block = (SELECT (ctid::text::point)[0] FROM duel), pages_sent >= 30, pages_received >= 29, requests_sent >= 29,
            requests_received >= 30, missed_max, this FROM gcl_stat_hot_pages WHERE node = 1 LIMIT 1""")
        self.assertEqual(["duel|rows|t|t|t|t|t|0|t"], hottest)
        # Both sides count alike: what one sent, the other received; a third primary sees the same.
        both = """SELECT sum(pages_sent) FILTER (WHERE node = 1) = sum(pages_received) FILTER (WHERE node = 2),
            sum(pages_received) FILTER (WHERE node = 1) = sum(pages_sent) FILTER (WHERE node = 2),
            sum(requests_sent) FILTER (WHERE node = 1) = sum(requests_received) FILTER (WHERE node = 2)
            FROM gcl_stat_hot_pages WHERE relname = 'duel' AND kind = 'rows'"""

        def alike():
            self.fresh(self.three)
            return self.three.run(both) == ["t|t|t"]

        eventually(alike)  # the samples of both are of different moments
        self.assertEqual(["duel|rows|f"], self.three.run(
            "SELECT relname, kind, this FROM gcl_stat_hot_pages WHERE node = 2 ORDER BY messages DESC LIMIT 1"))
        self.assertEqual(["0"], self.one.run("SELECT count(*) FROM gcl_stat_hot_pages WHERE node = 1 AND relname = 'calm' AND kind = 'rows' AND messages > 10"))
        self.one.run("SELECT gcl_stat_reset_hot_pages()")
        self.assertEqual(["0"], self.one.run("SELECT count(*) FROM gcl_stat_hot_pages WHERE node = 1 AND relname = 'duel'"))
        # An index's pages have its name.
        self.one.run("CREATE TABLE keyed (k int PRIMARY KEY) USING gcl")
        for i in range(20):
            (self.one if i % 2 else self.two).run(f"INSERT INTO keyed VALUES ({i})")
        self.assertEqual(["keyed_pkey|index leaf"], self.one.run(
            "SELECT relname, kind FROM gcl_stat_hot_pages WHERE node = 1 AND relname LIKE 'keyed%' AND kind ~ 'index' LIMIT 1"))

    def test_ddl_that_waits_for_a_stopped_primary_says_for_whom(self):
        self.assertEqual([], self.two.run("SELECT * FROM gcl_stat_ddl"))
        self.one.run("CREATE ROLE nosy; GRANT SELECT ON gcl_stat_ddl TO nosy; GRANT EXECUTE ON FUNCTION gcl_stat_ddl_get TO nosy")
        self.addCleanup(lambda: self.one.run("ROLLBACK; DROP OWNED BY nosy; DROP ROLE nosy"))
        coordinator = self.cluster.session(1)
        self.addCleanup(coordinator.close)
        pid = coordinator.pid()
        coordinator.run("BEGIN")
        coordinator.run("CREATE TABLE slow (i int) USING gcl")
        self.assertEqual(["1|statement|CREATE TABLE slow (i int) USING gcl|2|done|", "1|statement|CREATE TABLE slow (i int) USING gcl|3|done|"],
                         self.two.run("SELECT author_node, phase, what, node, answer, awaited_for FROM gcl_stat_ddl ORDER BY node"))
        with Stopped(self.cluster, 3):
            coordinator.send("ALTER TABLE slow ADD COLUMN j int")
            awaited = "SELECT author_node, author_pid, node, answer, awaited_for > '100 ms' FROM gcl_stat_ddl ORDER BY node"
            for session in (self.one, self.two):
                eventually(lambda s=session: s.run(awaited) == [f"1|{pid}|2|done|", f"1|{pid}|3|awaited|t"])
            event = f"SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {pid}"
            eventually(lambda: self.one.one(event) == "LWLock|GclDdlAnswers")  # but for the moments of its heartbeat
            # What is asked is hidden from users who may not see others' queries.
            self.assertEqual(["<insufficient privilege>"], self.one.run(
                "BEGIN; SET LOCAL ROLE nosy; SELECT DISTINCT what FROM gcl_stat_ddl; ROLLBACK"))
            # A primary that stands still is seen to.
            eventually(lambda: self.one.run("SELECT node, stale FROM gcl_stat_cluster ORDER BY node") == ["1|f", "2|f", "3|t"], 60)
            shown = self.cluster.ctl("status", self.cluster.dir, check=False).stdout
            self.assertRegex(shown, r"DDL: primary 3 has not answered for \d+ s \(\w+\)\n +primary 3 says nothing since \d+ s\n")
        coordinator.result()
        coordinator.run("ROLLBACK")
        eventually(lambda: self.two.run("SELECT * FROM gcl_stat_ddl") == [])
        eventually(lambda: self.one.run("SELECT node, stale FROM gcl_stat_cluster ORDER BY node") == ["1|f", "2|f", "3|f"])

    def test_ddl_with_a_password_is_shown_without_it(self):
        coordinator = self.cluster.session(1)
        self.addCleanup(coordinator.close)
        for statement in ("CREATE ROLE keeper LOGIN PASSWORD 'in clear' CONNECTION LIMIT 3", "ALTER ROLE keeper PASSWORD 'in clear' NOLOGIN"):
            coordinator.run(f"BEGIN; {statement}")
            verifier = coordinator.one("SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper'")
            self.assertTrue(verifier.startswith("SCRAM-SHA-256$"))
            for session in (self.one, self.two, self.three):
                self.assertEqual([statement.replace("in clear", "********")], session.run("SELECT DISTINCT what FROM gcl_stat_ddl"))
                self.assertEqual([], session.run("SELECT query FROM pg_stat_activity WHERE query LIKE '%SCRAM-SHA-256$%' AND pid <> pg_backend_pid()"))
            coordinator.run("COMMIT")
            self.assertEqual(verifier, self.three.one("SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper'"))
        coordinator.run("BEGIN; ALTER ROLE keeper PASSWORD NULL")
        self.assertEqual(["ALTER ROLE keeper PASSWORD NULL"], self.two.run("SELECT DISTINCT what FROM gcl_stat_ddl"))
        coordinator.run("COMMIT; DROP ROLE keeper")

    def test_where_each_primary_is_in_the_ddl_log_and_what_failed_there(self):
        before = int(self.one.one("SELECT entries FROM gcl_stat_ddl_log WHERE node = 1"))
        self.one.run("CREATE TABLE logged (i int) USING gcl")
        self.two.run("DROP TABLE logged")
        eventually(lambda: [f"{n}|serving|{before + 2}|{before + 2}|0" for n in (1, 2, 3)] == self.three.run(
            "SELECT node, state, position, entries, behind FROM gcl_stat_ddl_log ORDER BY node"))
        self.two.run("CREATE SCHEMA clash; CREATE TABLE clash.here (i int) USING heap")
        with self.assertRaises(SqlError):
            self.one.run("CREATE TABLE clash.here (i int) USING gcl")
        error = "SELECT last_error FROM gcl_stat_ddl_log WHERE node = 2 AND last_error IS NOT NULL"
        eventually(lambda: self.one.run(error) == ['database "postgres": relation "here" already exists'])
        self.assertEqual("t", self.one.one("SELECT last_error_at > now() - interval '1 min' FROM gcl_stat_ddl_log WHERE node = 2"))
        self.two.run("DROP TABLE clash.here; DROP SCHEMA clash")

    def test_who_holds_the_horizon(self):
        self.one.run("CREATE TABLE horizon (i int) USING gcl; INSERT INTO horizon VALUES (1)")
        holder = self.cluster.session(2)
        pid = holder.pid()
        holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.run("SELECT * FROM horizon")
        for _ in range(20):
            self.one.run("UPDATE horizon SET i = i + 1")
        seen = "SELECT node, pid, bound_behind >= 20, transaction_start < now() FROM gcl_stat_horizon WHERE holds"
        for session in (self.one, self.three, self.two):
            self.fresh(session)
            eventually(lambda s=session: s.run(seen) == [f"2|{pid}|t|t"])
        holder.run("COMMIT")
        eventually(lambda: self.one.run("SELECT 1 FROM gcl_stat_horizon WHERE node = 2 AND pid IS NOT NULL") == [])

    def test_the_pools_pages_and_whose_they_are(self):
        pool = "SELECT kind, pages FROM gcl_stat_pool"

        def use():
            return {row.split("|")[0]: int(row.split("|")[1]) for row in self.one.run(pool)}

        # What other tests have dropped is given back in the background.
        freed = "SELECT held FROM gcl_stat_held WHERE what = 'relations to be freed'"
        for session in (self.one, self.two, self.three):
            eventually(lambda s=session: s.one(freed) == "0")
        before = {}

        def all_alike():
            before.clear()
            before.update(use())
            return self.one.one("SELECT pool_pages, free_pool_pages FROM gcl_stat_space") == f"{sum(before.values())}|{before['free']}"

        eventually(all_alike)
        self.assertEqual(128, before["kept"])
        self.assertGreater(before["maps"], 1)
        self.one.run("CREATE TABLE roomy (id int PRIMARY KEY, t text, u text) USING gcl; ALTER TABLE roomy ALTER u SET STORAGE EXTERNAL")
        made = use()
        self.one.run("CREATE SEQUENCE roomy_seq")
        self.assertEqual(made["sequence"] + 1, use()["sequence"])
        self.one.run("INSERT INTO roomy SELECT i, repeat('x', 500), repeat('y', 9000) FROM generate_series(1, 600) i")
        filled = use()
        self.assertEqual(sum(before.values()), sum(filled.values()))
        for kind in ("table", "index", "TOAST"):
            self.assertGreater(filled[kind], made[kind], kind)
        grown = sum(filled[k] - before[k] for k in ("table", "index", "TOAST", "sequence", "other"))
        self.assertEqual(before["free"] - filled["free"], grown)
        self.assertLess(abs(filled["other"] - before["other"]), 20)  # the DDL log, pages that indexes keep for later
        # The header, a map page, and 64 single pages as they are used; then extents of 64.
        self.assertEqual("t|48", self.one.one("SELECT pages = used_pages, pages - 2 FROM gcl_stat_relations WHERE relname = 'roomy'"))
        self.assertEqual("t|2", self.one.one("""SELECT pages BETWEEN used_pages AND used_pages + 63, pages % 64 FROM gcl_stat_relations
            WHERE kind = 'TOAST' AND pages > 2 AND relname NOT LIKE '%index'"""))
        self.assertEqual("t", self.one.one("""SELECT used_pages = 2 + pg_relation_size('roomy') / 8192 FROM gcl_stat_relations
            WHERE relname = 'roomy'"""))
        self.assertEqual("t", self.one.one("""SELECT pages = pg_relation_size('roomy_pkey') / 8192 FROM gcl_stat_relations
            WHERE relname = 'roomy_pkey'"""))
        locker = self.cluster.session(1)
        locker.run("BEGIN; LOCK TABLE roomy")  # no view waits for it
        self.assertEqual("0", self.one.one("SELECT count(*) FROM gcl_stat_relations WHERE relname = 'roomy'"))
        locker.run("ROLLBACK")
        self.one.run("DROP TABLE roomy; DROP SEQUENCE roomy_seq")
        eventually(lambda: all(use()[k] == before[k] for k in ("table", "index", "TOAST", "sequence")))

    def test_a_session_that_waits_for_a_page_says_so(self):
        self.one.run("CREATE TABLE far (n int) USING gcl; INSERT INTO far VALUES (0)")
        self.three.run("UPDATE far SET n = 1")
        waiter = self.cluster.session(2)
        pid = waiter.pid()
        waiter.run("SELECT count(*) FROM gcl_stat_node")  # its session is there
        self.three.run("UPDATE far SET n = 2")
        with Stopped(self.cluster, 3):
            waiter.send("SELECT n FROM far")
            event = f"SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {pid}"
            eventually(lambda: self.two.run(event) == ["LWLock|GclPeer"])
            self.assertEqual("t", self.two.one("SELECT stale IS NOT NULL FROM gcl_stat_cluster WHERE node = 3"))
        self.assertEqual(["2"], waiter.result())
        eventually(lambda: self.two.run(event) == ["Client|ClientRead"])

    def test_rights_are_what_the_document_says(self):
        rows = {}
        with open(OPERATING, encoding="utf-8") as file:
            table = file.read().split("## Rights on views and functions", 1)[1].split("| --- | --- | --- |\n", 1)[1].split("\n\n", 1)[0]
        for line in table.splitlines():
            who, views, functions = line.strip("|").split("|")
            who = {"everybody": "PUBLIC", "superusers": "-"}.get(re.match(r"\W*(\w+)", who).group(1), re.match(r"\W*(\w+)", who).group(1))
            rows.update({name: who for name in re.findall(r"`(\w+)`", views + functions)})
        of_extension = "d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gcl') AND d.deptype = 'e' AND d.objid = o.oid"
        granted = f"""SELECT name, coalesce(string_agg(CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END || CASE is_grantable WHEN true THEN '*' ELSE '' END,
                                       ',') FILTER (WHERE grantee <> owner), '-') FROM (
            SELECT o.proname AS name, o.proowner AS owner, coalesce(o.proacl, acldefault('f', o.proowner)) AS acl FROM pg_proc o, pg_depend d
              WHERE d.classid = 'pg_proc'::regclass AND {of_extension}
            UNION ALL SELECT o.relname, o.relowner, coalesce(o.relacl, acldefault('r', o.relowner)) FROM pg_class o, pg_depend d
              WHERE d.classid = 'pg_class'::regclass AND o.relkind = 'v' AND {of_extension}) o, aclexplode(acl) GROUP BY 1"""
        for session in (self.one, self.two):
            self.assertEqual(rows, dict(row.split("|") for row in session.run(granted)))

    def test_who_may_look(self):
        public = ("gcl_stat_node", "gcl_stat_cluster", "gcl_stat_cluster_counters", "gcl_stat_horizon", "gcl_stat_ddl_log", "gcl_stat_ddl_log_kept", "gcl_stat_held", "gcl_in_doubt")
        views = self.one.run("SELECT viewname FROM pg_views WHERE viewname LIKE 'gcl_%' ORDER BY 1")
        self.one.run("CREATE ROLE visitor; CREATE ROLE monitor IN ROLE pg_monitor")
        self.addCleanup(lambda: self.one.run("RESET ROLE; DROP ROLE visitor, monitor"))
        for view in views:
            look = f"SET ROLE visitor; SELECT count(*) FROM {view}"
            if view in public:
                self.one.run(look)
            else:
                self.refused(look)
            self.one.run(f"SET ROLE monitor; SELECT count(*) FROM {view}; RESET ROLE")
        for call in ("gcl_stat_waits_get()", "gcl_stat_ddl_get()", "gcl_ddl_locks_get()", "gcl_stat_pages_get()", "gcl_ddl_fingerprint()", "gcl_check_preloaded()",
                     "gcl_check('pg_class')"):
            self.refused(f"SET ROLE visitor; SELECT {call}")
        for role in ("visitor", "monitor"):
            self.refused(f"SET ROLE {role}; SELECT gcl_stat_reset_hot_pages()")
        # Whose snapshot it is, is a matter of sessions.
        reader = self.cluster.session(2)
        self.addCleanup(reader.close)
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        pid = reader.pid()
        whose = "SELECT pid, transaction_start IS NULL FROM gcl_stat_horizon WHERE node = 2"
        eventually(lambda: self.one.run(f"SET ROLE monitor; {whose}") == [f"{pid}|f"])
        self.assertEqual(["|t"], self.one.run(f"SET ROLE visitor; {whose}"))

    def refused(self, sql):
        with self.assertRaises(SqlError) as caught:
            self.one.run(sql)
        self.assertEqual("42501", caught.exception.state)

    def test_every_view_and_function_has_a_comment(self):
        self.assertEqual([], self.one.run("""SELECT c.relname FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass
            AND d.objid = c.oid AND d.deptype = 'e' WHERE c.relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NULL"""))

    def test_sizes_and_buffers_are_true(self):
        self.one.run("CREATE TABLE sized (id int PRIMARY KEY, t text) USING gcl")
        self.one.run("INSERT INTO sized SELECT i, repeat('x', 1000) FROM generate_series(1, 700) i; ANALYZE sized")
        pages = int(self.one.one("SELECT pg_relation_size('sized') / 8192"))
        self.assertIn(pages, range(100, 117))  # 7 rows a page, taken in steps of 8
        for session in (self.two, self.three):
            self.assertEqual(str(pages), session.one("SELECT pg_relation_size('sized') / 8192"))
        self.assertEqual("t", self.one.one("""SELECT pg_total_relation_size('sized') = pg_table_size('sized') + pg_indexes_size('sized')"""))
        whole = self.one.one("SELECT pg_size_pretty(pg_table_size('sized'))")  # with its TOAST table
        self.assertEqual([f"gcl|{whole}"], ["|".join(row.split("|")[5:7]) for row in self.one.run(r"\dt+ sized")])


MANY = 10000  # mini-transactions; of a primary that does nothing: a few a second


class Left(unittest.TestCase):
    def test_a_primary_that_left_shows_no_row_and_a_stopped_one_is_stale(self):
        cluster = self.enterContext(Cluster(primaries=2, pool="64MB", cache="8MB"))
        one = cluster.session(1)
        done = "SELECT mini_transactions FROM gcl_stat_cluster WHERE node = 2"
        cluster.sql(2, "CREATE TABLE early (i int) USING gcl; INSERT INTO early SELECT generate_series(1, 30000)")
        eventually(lambda: int((one.run(done) or [0])[0]) > MANY)
        eventually(lambda: one.run("SELECT count(sampled_at) FROM gcl_stat_cluster") == ["2"])
        cluster.stop(2)
        self.assertEqual(["1"], one.run("SELECT node FROM gcl_stat_cluster"))
        self.assertEqual(["1"], one.run("SELECT DISTINCT node FROM gcl_stat_cluster_counters"))
        self.assertEqual(["1"], one.run("SELECT DISTINCT node FROM gcl_stat_hot_pages") or ["1"])
        one.run("CREATE TABLE t (i int) USING gcl")
        cluster.start(2)
        # The new incarnation says nothing of the old one: its counters began again.
        eventually(lambda: one.run("SELECT count(sampled_at) FROM gcl_stat_cluster") == ["2"])
        self.assertLess(int(one.one(done)), MANY)
        eventually(lambda: one.run("SELECT state, behind FROM gcl_stat_ddl_log WHERE node = 2") == ["serving|0"])


class Schema(unittest.TestCase):
    def test_two_thousand_relations_fit_a_pool_of_64_mb(self):
        """As an application's schema: tables of a few rows, all with keys and TOAST."""
        one = self.enterContext(Cluster(primaries=1, pool="64MB", cache="16MB", settings=("autovacuum=off",))).session(1)
        columns = "".join(f", c{n} int UNIQUE" for n in range(1, 17))
        one.run(f"""DO $$ BEGIN FOR i IN 1..100 LOOP
            EXECUTE format('CREATE TABLE few%s (id int PRIMARY KEY, t text{columns}) USING gcl', i); END LOOP; END $$""", 120)
        pages = """SELECT CASE WHEN relname LIKE 'pg_toast%index' THEN 'TOAST index' ELSE kind END AS what, min(pages), max(pages), count(*)
            FROM gcl_stat_relations GROUP BY what"""
        self.assertEqual({"index|2|2|1700", "table|1|1|100", "TOAST|1|1|100", "TOAST index|2|2|100"}, set(one.run(pages)))
        one.run(f"DO $$ BEGIN FOR i IN 1..100 LOOP EXECUTE format('INSERT INTO few%s VALUES (1, 1{', 1' * 16})', i); END LOOP; END $$", 120)
        # A map page and one of rows.
        self.assertEqual({"index|2|2|1700", "table|3|3|100", "TOAST|1|1|100", "TOAST index|2|2|100"}, set(one.run(pages)))
        self.assertGreater(int(one.one("SELECT pages FROM gcl_stat_pool WHERE kind = 'free'")), 2000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
