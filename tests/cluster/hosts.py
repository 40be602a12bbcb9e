"""A cluster of several hosts, from one file: each host is a network namespace and a directory of its own.

    with Hosts(2) as hosts:                             # one memory node and one primary on each
        hosts.start()
        hosts.sql(1, "SELECT 1")                        # of primary 1
        hosts.ctl(0, "status", hosts.part(0))           # run on host 0
"""
import os
import pathlib
import pwd
import shutil
import subprocess
import threading

import data_directory
import left_behind
from harness import GCLCTL, Session
from network import Network
from network_switch import address

MEMORY_PORT, PEER_PORT, CLIENT_PORT = 7400, 7401, 5432
COMMAND_MAX = 180  # seconds


def plan(shared, hosts, at=address, size="96MB"):
    """The file's text: memory node and primary of each host."""
    lines = ['transport = "tcp"', f'key = "{shared}/cluster.key"', f'saved = "{shared}/pool.saved"', 'cache_size = "16MB"']
    for host in range(hosts):
        lines += ["", "[[memory_node]]", f"number = {host}", f'host = "h{host}"', f'address = "{at(host)}:{MEMORY_PORT}"', f'size = "{size}"',
                  "", "[[primary]]", f"number = {host + 1}", f'host = "h{host}"', f'address = "{at(host)}:{PEER_PORT}"', f"port = {CLIENT_PORT}"]
    return "\n".join(lines) + "\n"


class Hosts:
    """`lookers`: hosts that are part of the network, and have no part of the cluster."""

    def __init__(self, hosts=2, lookers=1, patience=2):
        self.hosts = range(hosts)
        self.folder = pathlib.Path(left_behind.new_dir(data_directory.parent(), GCLCTL))
        self.folder.chmod(0o755)
        self.network = Network(hosts + lookers)
        self.shared = self.folder / "shared"
        self.shared.mkdir(mode=0o700)
        account = pwd.getpwnam("postgres")
        os.chown(self.shared, account.pw_uid, account.pw_gid)
        self.file = self.folder / "cluster.toml"
        self.file.write_text(f"patience = {patience}\n" + plan(self.shared, hosts), "utf-8")

    def __enter__(self):
        try:
            for host in self.hosts:
                self.init(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.network.heal()
            left = [host for host in self.hosts if (self.part(host) / "cluster.conf").exists()]
            for verb in ("stop", "destroy"):
                for host in reversed(left):
                    self.ctl(host, verb, self.part(host), check=verb == "destroy")
        finally:
            self.network.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def part(self, host):
        return self.folder / f"part{host}"

    def pool_dir(self, host):
        """Where its part of the pool lies in memory."""
        values = dict(line.split("=", 1) for line in (self.part(host) / "cluster.conf").read_text("utf-8").splitlines() if "=" in line)
        return pathlib.Path(values["memory_dir"].strip('"')) / f"gcl-{values['id'].strip(chr(34))}"

    def ctl(self, host, *arguments, check=True):
        done = subprocess.run([*self.network.inside(host), GCLCTL, *map(str, arguments)], text=True, capture_output=True, timeout=COMMAND_MAX,
                              check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"gclctl {arguments} on host {host} ended with {done.returncode}:\n{done.stdout}{done.stderr}{self.logs()}")
        return done

    def logs(self):
        text = ""
        for log in sorted(self.folder.glob("part*/*/log")):
            text += f"\n--- {log}\n" + "\n".join(log.read_text("utf-8", "replace").splitlines()[-8:])
        return text

    def init(self, host):
        data = data_directory.path()
        self.ctl(host, "init", self.part(host), "--cluster", self.file, "--host", f"h{host}", "--set", "fsync=off",
                 *(["--data-from", data] if data.exists() else []))

    def start(self, *hosts):
        """All at once: primaries wait for all memory nodes."""
        done = {}
        threads = [threading.Thread(target=lambda host=host: done.update({host: self.ctl(host, "start", self.part(host), check=False)}))
                   for host in hosts or self.hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for host, one in done.items():
            if one.returncode != 0:
                raise RuntimeError(f"start on host {host}:\n{one.stdout}{one.stderr}{self.logs()}")
        return done

    def stop(self, host, check=False):
        return self.ctl(host, "stop", self.part(host), check=check)

    def sql(self, k, text):
        session = Session(self.ctl(k - 1, "dsn", self.part(k - 1), k).stdout.strip())
        try:
            return session.run(text)
        finally:
            session.close()
