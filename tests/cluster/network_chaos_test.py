"""The chaos of chaos_test.py in a network that is cut and slow at random, too: hosts that are network namespaces (network.py).

Environment: as of chaos_test.py.
"""
import random
import threading
import time
import unittest

import chaos_test
import network
from network import MEMORY, NetworkCluster

CUT_MAX = 6.0  # seconds: longer than the lease, and than it takes to be dead


class NetworkChaos(chaos_test.Chaos):
    @staticmethod
    def make_cluster(memory_nodes, **how):
        assert memory_nodes
        return NetworkCluster(**how)  # of one memory node

    def cut(self, chance, k):
        """Some of its paths, for a while."""
        net = self.cluster.network
        other = chance.choice([host for host in net.hosts if host != k])
        what, paths = chance.choice((
            ("all", [path for host in net.hosts if host != k for path in net.between(k, host)]), ("memory", net.between(k, MEMORY)),
            (f"host {other}", net.between(k, other)), (f"to {other}", [(k, other)]), (f"from {other}", [(other, k)])))
        seconds = chance.random() * CUT_MAX

        def join():
            time.sleep(seconds)
            with self.orders:
                net.paths(paths, up=True)

        with self.orders:
            net.paths(paths, up=False)
        self.standing.append(threading.Thread(target=join))
        self.standing[-1].start()
        return f"{what}, {seconds:.1f} s"

    def slow(self, chance, _):
        """All paths, until the end of the round."""
        how = {"delay": chance.random() * 0.005, "jitter": chance.random() * 0.002, "loss": chance.random() * 0.02}
        with self.orders:
            self.cluster.network.every(**how)
        return "all"

    KINDS = {**chaos_test.Chaos.KINDS, cut: 8, slow: 2}

    def setUp(self):
        self.orders = threading.Lock()  # of the switch: one at a time
        super().setUp()

    def heal(self, chance: random.Random):
        for thread in self.standing:
            thread.join()
        self.cluster.network.heal()
        super().heal(chance)


if __name__ == "__main__":
    network.look()
    unittest.main(verbosity=2)
