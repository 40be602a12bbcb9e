"""PostgreSQL as Debian ships it, without the extension, in a directory of its own: what gcl is compared with.

    with PlainServer(settings=("fsync=on",)) as server:
        subprocess.run(["pgbench", "-i", server.dsn])
"""
import os
import subprocess

from harness import new_dir


class PlainServer:
    def __init__(self, settings=()):
        self.settings = ("fsync=off", "autovacuum=off", *settings)

    def __enter__(self):
        self.dir = new_dir()
        self.bin = subprocess.check_output(["pg_config", "--bindir"], text=True).strip()
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            subprocess.run(["chown", "postgres:", self.dir], check=True)
        self.dsn = f"host={self.dir} user=postgres dbname=postgres"
        self.ctl("initdb", "-D", f"{self.dir}/data", "-U", "postgres", "-N", "--locale=C", "-E", "UTF8")
        with open(f"{self.dir}/data/postgresql.conf", "a", encoding="ascii") as conf:
            conf.write(f"unix_socket_directories = '{self.dir}'\nlisten_addresses = ''\n")
            conf.writelines(f"{setting}\n" for setting in self.settings)
        self.ctl("pg_ctl", "-D", f"{self.dir}/data", "-w", "-l", f"{self.dir}/log", "start")
        return self

    def __exit__(self, *_):
        self.ctl("pg_ctl", "-D", f"{self.dir}/data", "-w", "-m", "immediate", "stop")
        subprocess.run(["rm", "-rf", self.dir], check=True)

    def ctl(self, program, *arguments):
        subprocess.run([*self.user, f"{self.bin}/{program}", *arguments], check=True, stdout=subprocess.DEVNULL,
                       cwd=self.dir)
