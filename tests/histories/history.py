"""What clients note of their transactions, and the judge of things that have versions.

A register is a row with a number that each writer makes greater by one.  So what a reader has seen says whose it was, and whose it was
not yet: that gives all dependencies (dependencies.py).
"""
import dataclasses

from dependencies import Graph

# SQL: every second row of a table was put there to be deleted.  So updates find room on their page, and need no new entries.
MAKE_ROOM = "DELETE FROM {0} WHERE id < 0; VACUUM {0}"


@dataclasses.dataclass
class Transaction:
    """`name`: no other has it.  `began`: before its first statement was sent; `ended`: after its COMMIT or ROLLBACK was answered, both by
    the clock of the machine.  `reads`, `writes`, and what else it has `found`: as the workload means them; of registers: (key, version)."""
    name: int
    began: float
    ended: float = 0.0
    committed: bool = False
    why_not: str = ""  # SQLSTATE of what ended it; empty: its client wanted that
    reads: list = dataclasses.field(default_factory=list)
    writes: list = dataclasses.field(default_factory=list)
    found: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return f"{self.name} ({'committed' if self.committed else 'rolled back'}, {self.began:.4f} to {self.ended:.4f})"


def committed(transactions):
    return [one for one in transactions if one.committed]


def graph_of_registers(transactions, final, wrong):
    """`final`: {key: version} in the end.  Adds to `wrong` what no level allows."""
    graph, writers = Graph(), {}
    for one in committed(transactions):
        for key, version in one.writes:
            if (key, version) in writers:
                wrong.append(f"lost: {one} wrote version {version} of {key}, and so did {writers[key, version]}")
            writers[key, version] = one
    for key, version in writers:
        if version > final.get(key, 0):
            wrong.append(f"lost: {key} has version {final.get(key, 0)}, and {writers[key, version]} wrote {version}")
    for key, last in final.items():
        for version in range(1, last + 1):
            if (key, version) not in writers:
                wrong.append(f"phantom: nobody committed version {version} of {key}, which has {last}")
            elif (key, version - 1) in writers:
                graph.add(writers[key, version - 1].name, writers[key, version].name, "ww", key)
    for one in transactions:
        mine = set(one.writes)
        for key, version in one.reads:
            if (key, version) in mine:
                continue
            if version > final.get(key, 0):
                wrong.append(f"dirty: {one} read version {version} of {key}, which nobody committed")
            elif one.committed:
                if version > 0 and (key, version) in writers:
                    graph.add(writers[key, version].name, one.name, "wr", key)
                if (key, version + 1) in writers:
                    graph.add(one.name, writers[key, version + 1].name, "rw", key)
    return graph


def repeated(transactions, wrong):
    """In one snapshot a register has one version, until the transaction itself writes it."""
    for one in transactions:
        mine, last = dict(one.writes), {}
        for key, version in one.reads:
            if version not in (last.get(key, version), mine.get(key)):
                wrong.append(f"unrepeatable: {one} saw version {version} of {key} behind {last[key]}")
            last[key] = version


def judge_graph(graph, transactions, level, wrong):
    """Whether the history has a cycle that the level forbids; returns one that SERIALIZABLE would forbid, or None."""
    graph.add_clock({one.name: (one.began, one.ended) for one in committed(transactions)})
    if cycle := graph.cycle(level):
        wrong.append(cycle)
    return cycle if level == "SERIALIZABLE" or cycle else graph.cycle("SERIALIZABLE")
