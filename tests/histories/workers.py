"""Processes that play a workload on all primaries at once, each with a connection of its own.

    with Workers(dsns, 12) as workers:                      # worker n has a session of primary n % len(dsns)
        notes = workers.play("bank", "SERIALIZABLE", 5000, 60.0, seed)

One process could not keep several servers busy.  A failure of one worker ends the play of all, and play() raises it.
"""
import importlib
import multiprocessing
import random
import traceback

from client import Client
from libpq import Connection

ALLOWANCE = 120.0  # seconds that the slowest worker may need for its last turn: a hang ends earlier by itself (libpq.py)


def work(dsn, number, pipe, total, failed):
    """A worker's life: plays what it is told, until the pipe is closed."""
    try:
        connection = Connection(dsn)
        connection.run("SET deadlock_timeout = '20ms'")
        while True:
            workload, level, count, seed = pipe.recv()
            chance = random.Random(f"{seed}/{workload}/{level}/{number}")
            client = Client(connection, number, level, chance)
            module = importlib.import_module(workload)
            while total.value < count and not failed.is_set():
                before = len(client.notes)
                module.turn(client)
                with total.get_lock():
                    total.value += len(client.notes) - before
            pipe.send(client.notes)
    except EOFError:
        pass
    except BaseException:  # pylint: disable=broad-except
        failed.set()
        pipe.send(traceback.format_exc())


class Workers:
    def __init__(self, dsns, count):
        context = multiprocessing.get_context("spawn")
        self.total, self.failed = context.Value("q", 0), context.Event()
        self.pipes, self.processes = [], []
        for number in range(count):
            mine, theirs = context.Pipe()
            process = context.Process(target=work, args=(dsns[number % len(dsns)], number, theirs, self.total, self.failed), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(ALLOWANCE)
            if process.is_alive():
                process.kill()
                process.join()

    def play(self, workload, level, transactions, seconds, seed):
        """At least so many transactions, or as many as there are within `seconds`; and what was noted of each."""
        self.total.value = 0
        for pipe in self.pipes:
            pipe.send((workload, level, transactions, seed))
        notes, wrong = [], []
        for at, pipe in enumerate(self.pipes):
            if not pipe.poll(seconds if at == 0 else ALLOWANCE):
                self.total.value = transactions  # time is up: each ends with the turn that it is in
                if not pipe.poll(ALLOWANCE):
                    wrong.append(f"worker {at} does not end")
                    continue
            got = pipe.recv()
            if isinstance(got, str):
                wrong.append(got)
            else:
                notes += got
        if wrong:
            raise AssertionError("\n".join(wrong))
        return notes
