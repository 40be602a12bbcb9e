"""gclctl with another library of gcl beside it, as an administrator has it who built that."""
import os
import re
import shutil
import subprocess

import left_behind
from harness import GCLCTL

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(GCLCTL)))


class Installation:
    """`library`, `scripts`: paths in the build."""

    def __init__(self, test, library, scripts):
        self.dir = left_behind.new_dir("/var/tmp", GCLCTL)
        test.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        for folder in ("bin", "lib", "share"):
            os.mkdir(f"{self.dir}/{folder}")
        for program in (GCLCTL, os.path.join(os.path.dirname(GCLCTL), "gcl_memnode")):
            shutil.copy2(program, f"{self.dir}/bin/{os.path.basename(program)}")
        shutil.copy2(f"{BUILD}/{library}", f"{self.dir}/lib/gcl.so")
        shutil.copytree(f"{BUILD}/{scripts}", f"{self.dir}/share/gcl")
        self.gclctl = f"{self.dir}/bin/gclctl"
        with open(f"{self.dir}/share/gcl/gcl.control", encoding="utf-8") as control:
            self.version = re.search(r"default_version = '(.*)'", control.read()).group(1)

    def ctl(self, *arguments, check=True):
        done = subprocess.run([self.gclctl, *arguments], text=True, capture_output=True, timeout=300, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"gclctl {arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done


def next_installation(test):
    """gcl's next version, which the build makes."""
    return Installation(test, "next/lib/gcl.so", "next/share/gcl")


def former_installation(test):
    """Today's version, but that its logs are of the format before (record_for_log_v3.cpp)."""
    return Installation(test, "former/lib/gcl.so", "share/gcl")
