"""Two sets of servers that are told the same: a stock PostgreSQL server with heap tables, and three primaries with gcl tables."""
import unittest

from runner import Servers

from harness import Cluster  # isort: skip
from plain_server import PlainServer  # isort: skip


class SideBySide(unittest.TestCase):
    options = ""  # of every session

    @classmethod
    def setUpClass(cls):
        plain = cls.enterClassContext(PlainServer())
        cluster = cls.enterClassContext(Cluster(primaries=3, settings=("autovacuum=off",)))
        cls.one = Servers([plain.dsn], cls.options)
        cls.addClassCleanup(cls.one.close)
        cls.several = Servers([cluster.dsn(k) for k in (1, 2, 3)], f"{cls.options} -c default_table_access_method=gcl")
        cls.addClassCleanup(cls.several.close)
