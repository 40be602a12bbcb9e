"""PostgreSQL as Debian ships it, without gcl, in a directory of its own: what gcl is compared with.

    with PlainServer(settings=("fsync=on",)) as server:
        subprocess.run(["pgbench", "-i", server.dsn])
    with Cluster(primaries=1) as cluster, PlainServer(like=cluster) as server: ...      # the settings of its primary 1
"""
import os
import pathlib
import re
import shutil
import subprocess

from data_directory import PG_BIN, account, initdb
from harness import new_dir


class PlainServer:
    port = 5432  # only the name of the socket: its directory has no other

    def __init__(self, settings=(), like=None):
        self.settings = ["fsync=off", "autovacuum=off", *settings]
        if like:
            self.settings = [line for line in (pathlib.Path(like.dir) / "node1/data/gcl.conf").read_text("utf-8").splitlines()
                             if not re.match(r"shared_preload_libraries|gcl\.|port|unix_socket_directories|listen_addresses|#", line)]

    def __enter__(self):
        self.dir = self.socket_dir = new_dir()
        self.dsn = f"host={self.socket_dir} port={self.port} user=postgres dbname=postgres"
        try:
            if os.geteuid() == 0:
                shutil.chown(self.dir, "postgres", "postgres")
            initdb(PG_BIN, f"{self.dir}/data")
            with open(f"{self.dir}/data/postgresql.conf", "a", encoding="utf-8") as conf:
                conf.write("\n".join([*self.settings, f"port = {self.port}", f"unix_socket_directories = '{self.socket_dir}'",
                                      "listen_addresses = ''", ""]))
            self.pg_ctl("-l", f"{self.dir}/log", "start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if os.path.exists(f"{self.dir}/data/postmaster.pid"):
            self.pg_ctl("-m", "immediate", "stop")
        shutil.rmtree(self.dir, ignore_errors=True)

    def pg_ctl(self, *arguments):
        done = subprocess.run([PG_BIN / "pg_ctl", "-D", f"{self.dir}/data", "-w", "-s", *arguments], text=True, cwd="/", check=False,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **account())
        if done.returncode != 0:
            raise RuntimeError(f"pg_ctl {arguments[-1]} ended with {done.returncode}:\n{done.stderr}")
