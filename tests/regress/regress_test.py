#!/usr/bin/env python3
"""SQL files through PostgreSQL's pg_regress.

    heap/     what heap tables do: a server with gcl preloaded must answer as one without it
    shared/   what both kinds of table do: heap's answer is the expected one, for heap with gcl and for gcl tables
    gcl/      what is gcl's own: what is refused, what differs; expected/ is read by people

    GCLCTL=build/bin/gclctl tests/regress/regress_test.py [Test...]     or --accept: writes shared/expected from a server
                                                                        without gcl, and gcl/expected
"""
import sys
import unittest

from servers import HERE, Primary, regress
from harness import Cluster
from plain_server import PlainServer

GCL_TABLES = "-c default_table_access_method=gcl"
DIFFERENCES_SHOWN = 150  # lines
SETTINGS = ("autovacuum=off", "max_parallel_workers=4")


class Regress(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=1, settings=SETTINGS))
        cls.primary = Primary(cls.cluster)
        cls.plain = cls.enterClassContext(PlainServer(like=cls.cluster))

    def same(self, *arguments, **options):
        outputs, differences = regress(*arguments, **options)
        self.assertTrue(outputs)
        if differences:
            self.fail("\n".join(differences.splitlines()[:DIFFERENCES_SHOWN]))

    def page_changes(self):
        return int(self.cluster.sql(1, "SELECT mini_transactions FROM gcl_stat_node")[0])

    def test_heap_with_gcl_preloaded_answers_as_heap_without_it(self):
        suite = HERE / "heap"
        expected, _ = regress(self.plain, suite, {})
        for test, text in expected.items():
            self.assertIn("DROP", text, test)  # it ran, to its end
        self.same(self.primary, suite, expected)
        self.cluster.sql(1, "CREATE DATABASE without_the_extension")
        self.same(self.primary, suite, expected, database="without_the_extension")

    def test_heap_answers_as_expected_without_gcl_and_with_it(self):
        suite = HERE / "shared"
        self.same(self.plain, suite, suite / "expected")
        self.same(self.primary, suite, suite / "expected")

    def test_gcl_tables_answer_as_heap_tables(self):
        suite = HERE / "shared"
        before = self.page_changes()
        self.same(self.primary, suite, suite / "expected", options=GCL_TABLES)
        self.assertGreater(self.page_changes() - before, 10000, "the tables were not gcl tables")

    def test_what_is_missing_is_refused(self):
        suite = HERE / "gcl"
        self.same(self.primary, suite, suite / "expected")


def accept():
    with Cluster(primaries=1, settings=SETTINGS) as cluster, PlainServer(like=cluster) as plain:
        for suite, server in ((HERE / "shared", plain), (HERE / "gcl", Primary(cluster))):
            outputs, _ = regress(server, suite, {})
            (suite / "expected").mkdir(exist_ok=True)
            for test, text in outputs.items():
                (suite / "expected" / f"{test}.out").write_text(text, "utf-8")
                print(suite.name, test)


if __name__ == "__main__":
    if sys.argv[1:] == ["--accept"]:
        accept()
    else:
        unittest.main(verbosity=2)
