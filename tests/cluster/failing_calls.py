"""Calls of the C library on files of a cluster that fail in programs that it runs (tests/io_errors/failing_calls.hpp).

    calls = FailingCalls(test, "postgres")          # or gclctl, gcl_memnode
    cluster.environment = calls.environment         # before they are started
    with calls.failing(f"{cluster.dir}/pool.saved.journal", 3):    # the third call on a file whose path begins so
        ...
    calls.where()                                   # which it was; "": fewer were made

Environment: GCL_FAILING_CALLS_LIBRARY, the shim.
"""
import contextlib
import ctypes
import mmap
import os
import shutil

import data_directory
import left_behind
from harness import GCLCTL

LIBRARY = os.environ["GCL_FAILING_CALLS_LIBRARY"]
EIO = 5


class Plan(ctypes.Structure):
    """As failing_calls.hpp has it."""
    _fields_ = [("count", ctypes.c_uint64), ("fails_at", ctypes.c_uint64), ("goes_on", ctypes.c_uint32), ("begun", ctypes.c_uint32),
                ("error", ctypes.c_int), ("below", ctypes.c_char * 256), ("call", ctypes.c_char * 32), ("file", ctypes.c_char * 512)]


class FailingCalls:
    def __init__(self, test, program):
        place = left_behind.new_dir(data_directory.parent(), GCLCTL)
        test.addCleanup(shutil.rmtree, place, ignore_errors=True)
        os.chmod(place, 0o755)
        with open(f"{place}/plan", "w+b") as file:
            file.truncate(mmap.PAGESIZE)
            memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        os.chmod(f"{place}/plan", 0o666)  # the servers' account writes there
        self.plan = Plan.from_buffer(memory)
        self.plan.error = EIO
        self.environment = {"LD_PRELOAD": shutil.copy(LIBRARY, place), "GCL_FAILING_CALLS": f"{place}/plan", "GCL_FAILING_PROGRAM": program}

    @contextlib.contextmanager
    def failing(self, below, number, goes_on=False):
        """`number`: of the call, 0: none; `goes_on`: and all behind it."""
        self.plan.below, self.plan.goes_on = below.encode(), int(goes_on)
        self.plan.count, self.plan.fails_at, self.plan.call, self.plan.file = 0, number, b"", b""
        self.plan.begun = 1
        try:
            yield
        finally:
            self.plan.begun = 0

    def count(self):
        return self.plan.count

    def where(self):
        return self.call() and f"{self.call()} number {self.plan.fails_at} of {self.file()}"

    def call(self):
        return self.plan.call.decode()

    def file(self):
        return self.plan.file.decode()
