#!/usr/bin/env python3
"""Runs the paper's matrix in virtual time and writes bench/results/paper*: figures as JSON, tables, plots.

  bench/paper/run.py                 everything (some 380 cells; what bench/results/paper.json has already is not run again)
  bench/paper/run.py --again         everything, from the start
  bench/paper/run.py 13 14           these figures only
  bench/paper/run.py --ends          without what lies between: 2 to 8 nodes, 8 to 32 threads, sharing 30 and 60 %
  bench/paper/run.py --render        tables and plots from bench/results/paper.json
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys

import cells
import render

ROOT = pathlib.Path(__file__).resolve().parents[2]
BETWEEN = ["threads=1 ", "threads=2 ", "threads=4 ", "nodes=2 ", "nodes=4 ", "nodes=8 ", "sharing=30 ", "sharing=60 "]
PROGRAM = ROOT / "build/bin/paper_bench"
RESULTS = ROOT / "bench/results"


def run(cell):
    done = subprocess.run([PROGRAM, *cells.arguments(cell)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr.strip()}


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "paper.json"
    known = json.loads(file.read_text()) if file.exists() and "--again" not in sys.argv else {}
    wanted = []
    for figure, its_cells in cells.cells().items():
        if not names or figure in names:
            wanted += [c for c in its_cells.values() if c not in known]
    if "--ends" in sys.argv:
        wanted = [c for c in wanted if not any(between in c + " " for between in BETWEEN)]
    wanted = list(dict.fromkeys(wanted))
    if "--render" not in sys.argv:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for cell, result in zip(wanted, pool.map(run, wanted)):
                known[cell] = result
                file.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
                if "failed" in result:
                    print(f"{cell}: {result['failed']}", file=sys.stderr)
    render.write(cells.cells(), known, RESULTS)


if __name__ == "__main__":
    main()
