"""Two sets of servers that are told the same: a stock PostgreSQL server with heap tables, and three primaries with gcl tables."""
import os
import subprocess
import unittest

from runner import Servers

from harness import Cluster, new_dir  # isort: skip


class PlainServer:
    """PostgreSQL as Debian ships it, in a directory of its own."""

    def __enter__(self):
        self.dir = new_dir()
        self.bin = subprocess.check_output(["pg_config", "--bindir"], text=True).strip()
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            subprocess.run(["chown", "postgres:", self.dir], check=True)
        self.dsn = f"host={self.dir} user=postgres dbname=postgres"
        self.ctl("initdb", "-D", f"{self.dir}/data", "-U", "postgres", "-N", "--locale=C", "-E", "UTF8")
        with open(f"{self.dir}/data/postgresql.conf", "a", encoding="ascii") as conf:
            conf.write(f"unix_socket_directories = '{self.dir}'\nlisten_addresses = ''\nfsync = off\n"
                       "autovacuum = off\n")
        self.ctl("pg_ctl", "-D", f"{self.dir}/data", "-w", "-l", f"{self.dir}/log", "start")
        return self

    def __exit__(self, *_):
        self.ctl("pg_ctl", "-D", f"{self.dir}/data", "-w", "-m", "immediate", "stop")
        subprocess.run(["rm", "-rf", self.dir], check=True)

    def ctl(self, program, *arguments):
        subprocess.run([*self.user, f"{self.bin}/{program}", *arguments], check=True, stdout=subprocess.DEVNULL,
                       cwd=self.dir)


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
