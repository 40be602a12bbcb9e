#!/usr/bin/env python3
"""A cluster test in the guest:  guest_cluster.py SECONDS FILE

initdb takes minutes there, so the data directory that `gclctl init` copies is made here, where the guest looks for it.
"""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))

import data_directory  # noqa: E402

data_directory.ON_DISK = "/var/tmp"  # what parent() says in a guest, whose memory is small

data_directory.make()
try:
    sys.exit(subprocess.run([HERE / "guest.py", "--memory", "4096", "--seconds", sys.argv[1], "--", sys.executable, sys.argv[2]],
                            check=False).returncode)
finally:
    shutil.rmtree(data_directory.path())
