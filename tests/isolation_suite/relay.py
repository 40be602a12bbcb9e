"""One address for three primaries: isolationtester opens all its sessions with one connection string.

    with Relay(folder, port, {1: (host, port), 2: ..., 3: ...}) as relay:
        relay.begin()                   # the next connection is the first of a spec
        play_one(..., f"host={folder} port={port} ...")

The first connection of a spec, from which isolationtester looks and cleans up, goes to the first primary, as does the first
session; the second session goes to the second primary, and so round.  Bytes pass unread.  A request to cancel, a connection of
its own that names a process and its secret, goes to all primaries: it means something to one of them.
"""
import contextlib
import os
import selectors
import socket
import struct
import threading

CANCEL = 80877102  # the code that begins a request to cancel
CHUNK = 1 << 16


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


class Relay:
    def __init__(self, folder, port, primaries):
        self.path, self.primaries = f"{folder}/.s.PGSQL.{port}", primaries
        self.count = 0

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.acceptor.join()
        os.unlink(self.path)

    def begin(self):
        self.count = 0

    def _next_primary(self):
        index = max(0, self.count - 1) % len(self.primaries)
        self.count += 1
        return self.primaries[index]

    @staticmethod
    def _connect(primary):
        there = socket.socket(socket.AF_UNIX)
        there.connect(primary)
        return there

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # it is closed
                return
            try:
                head = read_exactly(client, 8)
                size, code = struct.unpack("!II", head)
                head += read_exactly(client, size - 8)
                if code == CANCEL:
                    for primary in self.primaries:
                        with contextlib.closing(self._connect(primary)) as there:
                            there.sendall(head)
                            there.recv(1)  # it has been seen to when the server closes
                    client.close()
                    continue
                server = self._connect(self._next_primary())
                server.sendall(head)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    @staticmethod
    def _pass(client, server):
        """Until either side ends."""
        with client, server, selectors.DefaultSelector() as selector, contextlib.suppress(OSError):
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(CHUNK)
                    if not data:
                        return
                    key.data.sendall(data)
