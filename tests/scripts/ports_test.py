"""No other cluster gets ports reserved for one, and its servers can listen on them."""
import os
import socket
import subprocess
import sys
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
sys.path.insert(0, SCRIPTS)
import ports  # noqa: E402


def listen(port):
    """As a PostgreSQL server does."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


class Ports(unittest.TestCase):
    def test_reservations_at_the_same_time_do_not_overlap(self):
        with ports.Reservation(3) as one, ports.Reservation(3) as two:  # both begin to look at the same place
            self.assertFalse(set(range(one.base, one.base + 3)) & set(range(two.base, two.base + 3)))

    def test_a_server_listens_on_a_reserved_port_again_and_again(self):
        with ports.Reservation(2) as reserved:
            for _ in range(2):
                with listen(reserved.base + 1) as server, socket.create_connection(server.getsockname()) as client:
                    server.accept()[0].close()
                    self.assertEqual(b"", client.recv(1))

    def test_a_port_with_a_server_is_not_reserved(self):
        with ports.Reservation(1) as reserved:
            base = reserved.base
        with listen(base), ports.Reservation(1) as other:
            self.assertNotEqual(base, other.base)

    def test_the_program_holds_them_until_its_input_ends(self):
        holder = subprocess.Popen([sys.executable, os.path.join(SCRIPTS, "ports.py"), "2"], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        base = int(holder.stdout.readline())
        with socket.socket() as other, self.assertRaises(OSError):
            other.bind(("127.0.0.1", base + 1))
        holder.communicate()
        self.assertEqual(0, holder.returncode)
        with socket.socket() as other:
            other.bind(("127.0.0.1", base + 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
