"""A cluster over tcp, each of whose parts has a network namespace of its own, and the network between them.

    if __name__ == "__main__":
        network.look()                                  # ends the program, and says why, where there can be no namespaces
        unittest.main()

    with NetworkCluster(primaries=3) as cluster:        # as Cluster; clients connect by sockets in the file system
        cluster.network.cut(2, MEMORY)                  # both directions; 1..3 are primaries
        cluster.network.paths([(2, 1)], up=False)       # one direction: what 2 sends to 1 is lost
        cluster.network.every(delay=0.001, loss=0.01)
        cluster.network.heal()
"""
import contextlib
import itertools
import json
import os
import pwd
import re
import subprocess
import sys
import time

import left_behind
from harness import SEED, TRANSPORT, Cluster, Hang, SqlError, eventually
from network_switch import address
from processes import runs

MEMORY = 0  # the memory node's host; primary K is host K
WHOLE = {"up": True, "delay": 0.0, "jitter": 0.0, "loss": 0.0, "late": 0.0, "size": 1 << 16}
CONNECT_MAX = 5  # seconds
ENDED_AFTER = 5.0  # seconds; a server that does not run then has not begun to
START_MAX = 60.0  # seconds until a primary serves
SKIPPED = 77  # to ctest
SWITCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "network_switch.py")


def look():
    """Whether the machine can do it: it takes root, network namespaces and TUN devices."""
    try:
        if os.geteuid() != 0:
            raise RuntimeError("it takes root")
        Network(2).close()
    except (OSError, RuntimeError) as error:
        print(f"skipped: no network of namespaces can be made here: {error}", file=sys.stderr)
        sys.exit(SKIPPED)


class Network:
    def __init__(self, hosts):
        self.hosts = range(hosts)
        self.switch = subprocess.Popen([sys.executable, SWITCH, str(hosts), str(SEED)], text=True, bufsize=1,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = self.switch.stdout.readline()
        if not first:
            raise RuntimeError(self.switch.communicate()[1].strip().splitlines()[-1])
        self.namespaces = json.loads(first)["namespaces"]

    def close(self):
        self.switch.stdin.close()
        self.switch.wait()
        self.switch.stdout.close()
        self.switch.stderr.close()

    def inside(self, host):
        """What a command begins with that is to run on that host."""
        return ["nsenter", f"--net=/proc/{self.switch.pid}/fd/{self.namespaces[host]}", "--"]

    def order(self, **what):
        self.switch.stdin.write(json.dumps(what) + "\n")
        return json.loads(self.switch.stdout.readline())

    def paths(self, paths, **how):
        self.order(paths=list(paths), set=how)

    def every(self, **how):
        self.paths(itertools.permutations(self.hosts, 2), **how)

    def heal(self):
        self.every(**WHOLE)

    def between(self, one, *others):
        """Both directions."""
        return [path for other in others for path in ((one, other), (other, one))]

    def cut(self, one, *others):
        self.paths(self.between(one, *others), up=False)

    def cut_from_all(self, one):
        self.cut(one, *(host for host in self.hosts if host != one))

    def path(self, one, other):
        """{"passed": packets so far, "under_way": packets that are delayed}, in one direction."""
        return self.order(path=[one, other])

    def counts(self):
        return {"passed": 0, "lost": 0, "late": 0, **self.order(counts=True)}


class NetworkCluster(Cluster):
    def __init__(self, primaries=3, settings=(), patience=None, **more):
        assert TRANSPORT == "tcp", "GCL_TRANSPORT=tcp is wanted"
        self.patience = ["--patience", str(patience)] if patience else []
        self.network = Network(primaries + 1)
        super().__init__(primaries=primaries, settings=(*settings, f"gcl.memory_nodes={address(MEMORY)}:{{memory_port}}"), patience=patience,
                         **more)
        self.memory_port = self.ports.base + primaries + more.get("spare", 0)
        self.arguments = [argument.format(memory_port=self.memory_port) for argument in self.arguments]

    def __exit__(self, *what):
        try:
            self.network.heal()
            super().__exit__(*what)
        finally:
            self.network.close()

    def run_gclctl(self, arguments, **how):
        """It asks the memory node at its loopback address."""
        if arguments[0] == "start":
            raise AssertionError("start() does, each primary on its own host")
        return super().run_gclctl(arguments, within=self.network.inside(MEMORY), **how)

    def dsn(self, k):
        """A server that cannot join its pool yet takes connections, and says nothing."""
        return super().dsn(k) + f" connect_timeout={CONNECT_MAX}"

    # --- daemons

    def daemon(self, host, program, arguments, log, cwd, pid_file="/dev/null"):
        """Belongs to nobody here: gclctl waits for its end."""
        account = pwd.getpwuid(os.stat(self.dir).st_uid).pw_name
        script = 'echo $$ > "$1"; cd "$2"; exec >> "$3" 2>&1; shift 3; exec "$@"'
        subprocess.run([*self.network.inside(host), "setsid", "--fork", "setpriv", f"--reuid={account}", f"--regid={account}",
                        "--init-groups", "sh", "-c", script, "sh", pid_file, cwd, log, f"{self.dir}/prefix/lib/postgresql/15/bin/{program}",
                        *arguments], check=True, cwd="/", stdin=subprocess.DEVNULL)

    def memory_node(self):
        """Its process; None: it does not run."""
        try:
            with open(f"{self.dir}/memory0/pid", encoding="ascii") as file:
                pid = int(file.read())
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                return pid if file.read() == "gcl_memnode\n" else None
        except (OSError, ValueError):
            return None

    def memory_log(self):
        try:
            with open(f"{self.dir}/memory0/log", encoding="utf-8", errors="replace") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def start_memory_node(self):
        here = f"{self.dir}/memory0"
        if not os.path.exists(here):
            os.mkdir(here, 0o700)
            owner = os.stat(self.dir)
            os.chown(here, owner.st_uid, owner.st_gid)
        listens = [f"{at}:{self.memory_port}" for at in (address(MEMORY), "127.0.0.1")]
        before = len(self.memory_log())
        self.daemon(MEMORY, "gcl_memnode", [f"{self.pool_dir()}/pool", "--saved", f"{self.dir}/pool.saved", "--listen", listens[0],
                                            "--listen", listens[1], "--key", f"{self.dir}/cluster.key", *self.patience],
                    f"{here}/log", here, f"{here}/pid")
        eventually(lambda: re.search(r"listens on 127", self.memory_log()[before:]), START_MAX)

    def start(self, node=None):
        if self.memory_node() is None:
            self.start_memory_node()
        wanted = [node] if node else [k for k in range(1, self.primaries + 1) if not runs(self, k)]
        for k in wanted:
            eventually(lambda k=k: not self.is_used(k), START_MAX)
            with open(f"{self.dir}/node{k}/data/gcl.conf", "r+", encoding="utf-8") as conf:
                line = f"gcl.listen_address = '{address(k)}:0'\n"
                if line not in conf.read():
                    conf.write(line)
            self.daemon(k, "postgres", ["-D", f"{self.dir}/node{k}/data"], f"{self.dir}/node{k}/log", f"{self.dir}/node{k}/data")
        for k in wanted:
            self.wait_for_start(k)

    def wait_for_start(self, k):
        began = time.monotonic()
        while not self.serves(k):
            passed = time.monotonic() - began
            if passed > START_MAX or (passed > ENDED_AFTER and not runs(self, k)):
                raise Hang(f"primary {k} does not start{self.server_errors()}")
            time.sleep(0.05)

    def try_start(self, node):
        with contextlib.suppress(Hang):
            self.start(node)

    def is_used(self, k):
        """Processes of a dead server may be there still."""
        data = f"{self.dir}/node{k}/data"
        return any(pid.isdigit() and left_behind.works_in(int(pid), data) for pid in os.listdir("/proc"))

    def serves(self, k):
        """It answers, and its pool can be used."""
        try:
            return self.sql(k, "SELECT NOT fenced FROM gcl_stat_node") == ["t"]
        except SqlError as error:
            return error.state == "42P01" and not self.extension_made(k)

    def extension_made(self, k):
        return self.sql(k, "SELECT 1 FROM pg_extension WHERE extname = 'gcl'") == ["1"]


if __name__ == "__main__":
    look()
