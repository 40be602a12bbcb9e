#!/usr/bin/env python3
"""All cells of txn_bench, two at a time; writes bench/results/txn.md.  A few minutes.

    bench/txn/run.py [build/bin/txn_bench]
"""
import concurrent.futures
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CONTROLS = {"2pl": "2PL", "to": "TO", "occ": "OCC"}
STORES = {"selcc": "SELCC", "sel": "SEL"}
RUN = "warm_up=60 measured=100 frames=6000"
WORK = {
    "new-order": "payments=0 own_warehouses=0",
    "payment": "payments=100 own_warehouses=0",
    "both, one to one": "payments=50 own_warehouses=0",
    "YCSB, 100 % reads, Zipf 0.9": "kind=ycsb reads=100 theta=0.9",
    "YCSB, 95 % reads, Zipf 0.9": "kind=ycsb reads=95 theta=0.9",
    "YCSB, 50 % reads, Zipf 0.9": "kind=ycsb reads=50 theta=0.9",
    "YCSB, 50 % reads, uniform": "kind=ycsb reads=50",
}
NODES = [1, 2, 4, 8]
REMOTE = [0, 10, 20, 50, 100]
LOG = {"no log": 0, "flushes of 20 us": 20_000, "flushes of 100 us": 100_000}
# SERIALIZABLE, as the product does it and as it could: bench/conflicts.py's workloads.  What hardly goes on is cut short.
SERIALIZABLE = {"page-holds": "2PL on pages", "row-holds": "2PL on rows, within a node", "validation": "validation"}
CONFLICTS = {
    "hot-insert (apart)": "kind=hot-insert",
    "sibench": "kind=sibench",
    "skew (apart), by index": "kind=skew apart=1",
    "skew, by index": "kind=skew",
    "skew, by a scan": "kind=skew scans=1",
    "tpcc, each node its own": "kind=tpcc own_warehouses=1",
    "tpcc, any warehouse": "kind=tpcc own_warehouses=0",
}
CUT_SHORT = "limit_ns=200000000 warm_up=30 measured=50 tries=40"


def run(program, cell):
    done = subprocess.run([program, *RUN.split(), *cell.split()], text=True, capture_output=True, timeout=3600)
    if done.returncode != 0:
        sys.exit(f"{cell}: {done.stderr}")
    result = json.loads(done.stdout)
    if not result["ended"] and CUT_SHORT not in cell:
        sys.exit(f"{cell}: the transactions did not end")
    return result


def all_cells():
    for work, arguments in WORK.items():
        for store in STORES:
            for control in CONTROLS:
                yield ("control", work, store, control), f"{arguments} store={store} control={control}"
    for nodes in NODES:
        for control in CONTROLS:
            arguments = f"payments=50 control={control} nodes={nodes} warehouses={8 * nodes}"
            yield ("nodes", nodes, control), f"store=selcc own_warehouses=1 {arguments}"
    for name, ns in LOG.items():
        for remote in REMOTE:
            for store in ("selcc", "partitioned"):
                yield ("remote", name, remote, store), f"store={store} control=2pl payments=0 remote={remote} log_ns={ns}"
    for work, arguments in CONFLICTS.items():
        for control in SERIALIZABLE:
            for nodes in (1, 8):
                for ns in (0, 100_000):
                    cell = f"{arguments} control={control} nodes={nodes} warehouses={8 * nodes} log_ns={ns} {CUT_SHORT}"
                    yield ("serializable", work, control, nodes, ns), cell


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def control_table(results):
    rows = []
    for work in WORK:
        for control, name in CONTROLS.items():
            one, other = (results["control", work, store, control] for store in STORES)
            rows.append([work, name, f"{one['ktps']:.0f}", f"{other['ktps']:.0f}", f"{one['ktps'] / other['ktps']:.2f}",
                         f"{one['aborts']:.2f}", f"{other['aborts']:.2f}", f"{one['round_trips']:.1f}", f"{one['messages']:.1f}"])
    return table(["transactions", "control", "SELCC, thousands a second", "SEL", "ratio", "aborts for a commit, SELCC", "SEL",
                  "round trips, SELCC", "messages"], rows)


def nodes_table(results):
    rows = [[nodes, *(f"{results['nodes', nodes, control]['ktps']:.0f}" for control in CONTROLS)] for nodes in NODES]
    return table(["nodes", *CONTROLS.values()], rows)


def remote_table(results):
    rows = []
    for name in LOG:
        for store, called in {"selcc": "shared", "partitioned": "partitioned, 2PC"}.items():
            rows.append([name, called, *(f"{results['remote', name, remote, store]['ktps']:.0f}" for remote in REMOTE)])
    return table(["", "", *(f"{remote} %" for remote in REMOTE)], rows)


def serializable_table(results):
    rows = []
    for work in CONFLICTS:
        for control, name in SERIALIZABLE.items():
            row = [work, name]
            for nodes in (1, 8):
                no_log, log = (results["serializable", work, control, nodes, ns] for ns in (0, 100_000))
                row += [f"{no_log['ktps']:.1f}", f"{log['ktps']:.1f}"]
                row += [f"{log[what]:.2f}" if log["ended"] else "-" for what in ("aborts", "round_trips", "messages")]
            rows.append(row)
    columns = ("thousands a second, no log", "flushes of 100 us", "aborts for a commit", "round trips", "messages")
    return table(["transactions", "control", *(f"{nodes}: {column}" for nodes in ("1 node", "8 nodes") for column in columns)], rows)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/bin/txn_bench"
    cells = dict(all_cells())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = dict(zip(cells, pool.map(lambda cell: run(program, cell), cells.values())))
    with open(os.path.join(HERE, "..", "results", "txn.md"), "w", encoding="utf-8") as out:
        out.write("# Transactions in virtual time\n\n`bench/txn/run.py` writes this file. Eight nodes of eight threads, but where it says "
                  "otherwise.\n\n## Concurrency control over SELCC, and over SEL\n\n" + control_table(results) +
                  "\n## More nodes: new-order and payment, 8 warehouses a node, thousands a second\n\n" + nodes_table(results) +
                  "\n## Shared, and partitioned: new-order, by the share of transactions that need another node's warehouse, "
                  "thousands a second\n\n" + remote_table(results) +
                  "\n## SERIALIZABLE as the product does it, and by validation: bench/conflicts.py\n\nAborts, round trips and messages: for "
                  "a commit, with flushes of 100 us. A dash: hardly anybody goes on in "
                  "a fifth of a second.\n\n" + serializable_table(results))


if __name__ == "__main__":
    main()
