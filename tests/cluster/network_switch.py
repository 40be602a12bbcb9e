"""A switch between network namespaces, which delays, drops, reorders and cuts what passes.  network.py starts it.

    python3 network_switch.py HOSTS SEED        as root

Each host is a network namespace of its own, with an interface whose packets come here (a TUN device); so the two sides of a
connection are the kernel's own TCP, and meet retransmissions, backoff and silence as between machines.  The namespaces have no
name: they are reached by /proc/PID/fd/N, and end with the last process in them (tests.killed-leaves-nothing).

The kernel's netem does the same where a kernel has it; a TUN device is in every one.  What a path does is said for one direction:

    up       False: nothing passes, and what is on its way is lost
    delay    seconds
    jitter   seconds, at random on top: packets overtake each other
    loss     the share of packets that are lost
    late     the share of packets that are held up by LATE_BY, and come behind those that were sent after them
    size     the largest packet that passes

First a line of JSON with the descriptors is written; then, for each line that is read, one is written:

    {"set": {"up": false}, "paths": [[0, 1], [1, 0]]}       -> {}
    {"counts": true}                                        -> {"passed": ..., "lost": ..., "late": ...}
    {"path": [0, 1]}                                        -> {"passed": ..., "under_way": ...}
"""
import collections
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import time

NETWORK = "10.77.0."
LATE_BY = 0.005  # seconds
QUEUE_MAX = 20_000  # packets under way; more are lost, as in a switch
TURN = 64  # packets of one host, then the others have theirs
CLONE_NEWNET, PR_SET_TIMERSLACK = 0x40000000, 29
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x891C, 0x8914, 0x1

LIBC = ctypes.CDLL(None, use_errno=True)


def address(host):
    return f"{NETWORK}{host + 1}"


def request(name, rest):
    """A struct ifreq."""
    return struct.pack("16s24s", name.encode(), rest)


def internet(text):
    return struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(text))


def make_host(host):
    """Enters a new namespace.  Returns (the namespace, the packets that are sent in it), as descriptors."""
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace can be made")
    namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
    packets = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(packets, TUNSETIFF, request("net0", struct.pack("H", IFF_TUN | IFF_NO_PI)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFADDR, request("net0", internet(address(host))))
        fcntl.ioctl(any_socket, SIOCSIFNETMASK, request("net0", internet("255.255.255.0")))
        for name in ("lo", "net0"):
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, request(name, struct.pack("H", IFF_UP)))
    return namespace, packets


class Path:
    def __init__(self):
        self.up, self.delay, self.jitter, self.loss, self.late, self.size = True, 0.0, 0.0, 0.0, 0.0, 1 << 16
        self.passed = 0

    def set(self, values):
        for name, value in values.items():
            assert hasattr(self, name), name
            setattr(self, name, value)


class Switch:
    def __init__(self, hosts, seed):
        made = [make_host(host) for host in range(hosts)]
        self.namespaces, self.packets = [one for one, _ in made], [one for _, one in made]
        self.paths = [[Path() for _ in range(hosts)] for _ in range(hosts)]
        self.under_way, self.number = [], 0  # (when it is due, its number, from, to, packet)
        self.random, self.counts = random.Random(seed), collections.Counter()

    def take(self, host):
        for _ in range(TURN):
            try:
                packet = os.read(self.packets[host], 1 << 16)
            except BlockingIOError:
                return
            to = packet[19] - 1 if len(packet) >= 20 and packet[0] >> 4 == 4 else -1
            if 0 <= to < len(self.packets):
                self.pass_on(self.paths[host][to], host, to, packet)

    def pass_on(self, path, host, to, packet):
        chance = self.random.random
        if not path.up or len(packet) > path.size or (path.loss and chance() < path.loss) or len(self.under_way) >= QUEUE_MAX:
            self.counts["lost"] += 1
            return
        wait = path.delay + (path.jitter * chance() if path.jitter else 0.0)
        if path.late and chance() < path.late:
            wait += LATE_BY
            self.counts["late"] += 1
        if wait == 0.0 and not self.under_way:
            self.deliver(path, to, packet)
        else:
            self.number += 1
            heapq.heappush(self.under_way, (time.monotonic() + wait, self.number, host, to, packet))

    def deliver(self, path, to, packet):
        try:
            os.write(self.packets[to], packet)
            path.passed += 1
            self.counts["passed"] += 1
        except OSError:  # its queue is full, or its interface is down
            self.counts["lost"] += 1

    def deliver_due(self):
        now = time.monotonic()
        while self.under_way and self.under_way[0][0] <= now:
            _, _, host, to, packet = heapq.heappop(self.under_way)
            path = self.paths[host][to]
            if path.up:
                self.deliver(path, to, packet)
            else:
                self.counts["lost"] += 1

    def obey(self, line):
        order = json.loads(line)
        for host, to in order.get("paths", ()):
            self.paths[host][to].set(order["set"])
        if "path" in order:
            host, to = order["path"]
            return {"passed": self.paths[host][to].passed, "under_way": sum(one[2:4] == (host, to) for one in self.under_way)}
        return dict(self.counts) if "counts" in order else {}

    def run(self):
        answer({"namespaces": self.namespaces})
        orders = b""
        while True:
            wait = max(0.0, self.under_way[0][0] - time.monotonic()) if self.under_way else None
            ready = select.select([0, *self.packets], [], [], wait)[0]
            self.deliver_due()
            for fd in ready:
                if fd:
                    self.take(self.packets.index(fd))
                    continue
                got = os.read(0, 1 << 16)
                if not got:
                    return
                *lines, orders = (orders + got).split(b"\n")
                for line in lines:
                    answer(self.obey(line))


def answer(what):
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    LIBC.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # delays of some microseconds
    Switch(int(sys.argv[1]), int(sys.argv[2])).run()
