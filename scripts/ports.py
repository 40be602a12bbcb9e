"""Successive ports for a cluster, reserved: two runs at the same time on one machine never get the same ones.

A reservation is a socket bound to the port that never listens.  The next run that wants to reserve the port finds it
bound; the server, which sets SO_REUSEADDR, may listen on it all the same (Linux looks at the option of both sockets).
It holds through stop and start of the server and ends with its process, so there is nothing to clean up.

    with ports.Reservation(3) as reserved: ... reserved.base ...
    python3 ports.py 3        prints the first of three ports and holds them until its standard input ends
"""
import os
import socket
import sys

FIRST, LAST = 20000, 32000  # below the ports that the kernel hands out by itself
STEP = 40


class Reservation:
    """`count` successive ports from `base` on, from now until close()."""

    def __init__(self, count):
        tries = (LAST - FIRST) // STEP
        for step in range(tries):  # runs at the same time begin at different ones
            self.base = FIRST + (os.getpid() + step) % tries * STEP
            self.sockets = []
            try:
                for port in range(self.base, self.base + count):
                    self.sockets.append(socket.socket())
                    self.sockets[-1].bind(("127.0.0.1", port))
            except OSError:
                self.close()
                continue
            for held in self.sockets:  # only now: bound with it, two reservations would not notice each other
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return
        raise RuntimeError(f"no {count} free ports between {FIRST} and {LAST}")

    def close(self):
        for held in self.sockets:
            held.close()
        self.sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    with Reservation(int(sys.argv[1])) as reserved:
        print(reserved.base, flush=True)
        sys.stdin.read()
