"""A cluster that gclctl restore makes out of a backup, beside the one that the backup is of.

    with Restored(cluster, backup) as other:
        other.sql(2, "SELECT ...")
"""
import os

import left_behind
import ports
from harness import Cluster, new_dir


class Restored(Cluster):
    def __init__(self, of, backup, *options):  # pylint: disable=super-init-not-called
        self.primaries, self.backup, self.options = of.primaries, backup, options
        self.dir = os.path.join(new_dir(), "c")
        os.chmod(os.path.dirname(self.dir), 0o755)
        self.ports = ports.Reservation(self.primaries + 2)  # and of a memory node
        self.sessions, self.first_dsn, self.started = [], "", ()
        self.keep = bool(os.environ.get("KEEP"))
        if self.keep:
            left_behind.keep(os.path.dirname(self.dir))

    def make(self):
        self.ctl("restore", self.backup, self.dir, "--port", str(self.ports.base), *self.options)
        self.start()
