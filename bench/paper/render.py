"""Tables and plots from the results of paper_bench.  The paper's own numbers are those its text gives."""
import statistics

import cells
import plot

READS = cells.READS
NAMES = {95: "95 % reads", 50: "50 % reads", 0: "writes", 100: "reads only"}
# SELCC over each, at 64 threads: 95, 50, 0 % reads.
PAPER_13 = {"SEL": (1.85, 1.26, 1.71), "directory, 1 core": (4.35, 4.64, 1.68), "GAM (SEQ)": (2.84, 4.29, 1.40),
            "GAM (TSO)": (5.57, 6.31, 1.67)}
PAPER_14 = {"SEL": (3.09, None, None), "directory, 1 core": (2.25, 3.42, 1.25), "GAM (SEQ)": (2.03, 3.60, 12.6),
            "GAM (TSO)": (4.74, 5.85, 2.09)}
PAPER_SIZES = {512: 8.82, 1024: 7.70, 2048: 7.11, 4096: 5.81, 8192: 4.30}
PAPER_18 = {"forwarding": (None, None, 17, 40), "batched eviction": (6, 6, 10, 17), "dirty ranges": (None, None, 12, 11)}


class Figures:
    def __init__(self, figures, known):
        self.figures, self.known = figures, known

    def get(self, figure, *key, what="mops"):
        result = self.known.get(self.figures[figure][key], {})
        return result.get(what)

    def ratio(self, figure, key, other, what="mops"):
        a, b = self.get(figure, *key, what=what), self.get(figure, *other, what=what)
        return a / b if a and b else None


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def against(f, figure, paper):
    rows = []
    for rival, theirs in paper.items():
        for reads, their in zip(READS, theirs):
            ours = f.ratio(figure, (reads, "SELCC", 8), (reads, rival, 8))
            rows.append([rival, NAMES[reads], number(their), number(ours)])
    return table(["SELCC over", "", "paper", "here"], rows)


def absolute(f, figure):
    rows = []
    for reads in READS:
        for rival in cells.RIVALS:
            key = (reads, rival, 8)
            rows.append([NAMES[reads], rival] + [number(f.get(figure, *key, what=w), d) for w, d in
                        [("mops", 2), ("p50_us", 1), ("p99_us", 1), ("round_trips", 2), ("messages", 3), ("bytes", 0), ("jain", 4)]])
    return table(["", "64 threads", "Mop/s", "p50 us", "p99 us", "round trips", "messages", "bytes", "Jain"], rows)


def scaling(f):
    rows = []
    for reads in READS:
        for sharing in [0, 30, 60, 100]:
            ops = [f.get("12", reads, sharing, n) for n in [1, 2, 4, 8, 16]]
            grows = f.ratio("12", (reads, sharing, 16), (reads, sharing, 1))
            loses = f.ratio("12", (reads, sharing, 16), (reads, 0, 16))
            paper = {(50, 100): ("10.4", "-38 %"), (0, 100): ("9.83", "-33 %")}.get((reads, sharing), ("-", "-"))
            rows.append([NAMES[reads], f"{sharing} %"] + [number(o) for o in ops]
                        + [paper[0], number(grows), paper[1], "-" if loses is None else f"{100 * (loses - 1):+.0f} %"])
    text = table(["", "shared", "1 node", "2", "4", "8", "16", "16 over 1: paper", "here", "over 0 %: paper", "here"], rows)
    many = [[NAMES[r]] + [number(f.get("many", r, n)) for n in [32, 58]] for r in READS]
    text += "\n" + table(["all shared, Mop/s", "32 nodes", "58"], many)
    counts = [8, 12, 16, 32, 58]
    rows = [[NAMES[r], rival] + [number(f.get("many_skewed", r, rival, n)) for n in counts]
            for r in READS for rival in ["SELCC", "SEL"]]
    return text + "\n" + table(["Zipf 0.99, 4 threads a node, Mop/s", ""] + [f"{n} nodes" for n in counts], rows)


def steps(f):
    """Means, with their standard errors, and what they are of SEL's."""
    def mean(reads, name):
        ops = [f.get("14steps", reads, name, seed) for seed in cells.SEEDS]
        if None in ops:
            return None, None
        return statistics.mean(ops), statistics.stdev(ops) / len(ops) ** 0.5
    rows = []
    for name in cells.STEPS:
        row = [name]
        for reads in READS:
            (ours, error), (sel, _) = mean(reads, name), mean(reads, "SEL")
            row.append("-" if ours is None or sel is None else f"{ours:.2f} ± {error:.2f} ({ours / sel:.2f})")
        rows.append(row)
    return table([f"{len(cells.SEEDS)} seeds, 64 threads, Mop/s (over SEL)"] + [NAMES[r] for r in READS], rows)


def fairness(f):
    rows = []
    for gamma in ["0", "256", "inf"]:
        rows.append([f"gamma {gamma}"] + [number(f.get("15a", gamma, what=w), d) for w, d in
                    [("mops", 3), ("slowest", 3), ("jain", 4), ("p99_us", 1)]])
    text = table(["one page, writes, 8 x 8 threads", "Mop/s", "slowest over fastest node", "Jain", "p99 us"], rows)
    rows = []
    for name in [*cells.MECHANISMS, "claim, gamma 16", "claim, gamma 16, one thread a node"]:
        ops = f.get("15b", name, what="by_node")
        if ops:
            rows.append([name, ops[0], sum(ops[1:]) // (len(ops) - 1), number(ops[0] * (len(ops) - 1) / max(1, sum(ops[1:])), 3)])
    return text + "\n" + table(["one writer, seven readers", "writer", "a reader", "writer over reader"], rows)


def remote(f):
    rows = []
    for name in [f"{rival}, {cores}" for rival in cells.REMOTE.values() for cores in ["none", "1 core", "8 cores"]]:
        rows.append([name] + [f"{number(f.get('16', r, name))} ({number(f.ratio('16', (r, 'SELCC'), (r, name)))})" for r in READS])
    rows.append(["SELCC"] + [number(f.get("16", r, "SELCC")) for r in READS])
    return table(["Mop/s (SELCC over it)"] + [NAMES[r] for r in READS], rows)


def ablation(f):
    rows, before = [], None
    for step in ["none", "forwarding", "batched eviction", "dirty ranges"]:
        row = [step]
        for i, reads in enumerate([100] + READS):
            gain = f.ratio("18", (reads, step), (reads, before)) if before else None
            theirs = PAPER_18.get(step, (None,) * 4)[i]
            row.append(number(f.get("18", reads, step)) if gain is None else
                       f"{100 * (gain - 1):+.0f} % ({'-' if theirs is None else f'+{theirs} %'})")
        rows.append(row)
        before = step
    return table(["with, one after the other: gain (paper's)"] + [NAMES[r] for r in [100] + READS], rows)


def sensitivity(f):
    rows = []
    for name, _ in cells.variations():
        row = [name]
        for rival in ["SEL", "directory, 1 core"]:
            row += [number(f.ratio("constants", (name, r, "SELCC"), (name, r, rival))) for r in READS]
        row.append(number(f.get("constants", name, 0, "SEL")))
        rows.append(row)
    return table(["SELCC over"] + [f"SEL, {NAMES[r]}" for r in READS] + [f"directory, {NAMES[r]}" for r in READS]
                 + ["SEL, writes, Mop/s"], rows)


def sizes(f):
    rows = [[f"{gcl} B", number(theirs), number(f.get("13sizes", gcl))] for gcl, theirs in PAPER_SIZES.items()]
    return table(["page", "paper, Mop/s", "here"], rows)


def plots(f, folder):
    for figure, title in {"13": "Figure 13: uniform, 50 % repeated, 8 nodes", "14": "Figure 14: Zipf 0.99, 8 nodes"}.items():
        panels = [(NAMES[r], [8, 16, 32, 64], {p: [f.get(figure, r, p, t) for t in [1, 2, 4, 8]] for p in cells.RIVALS})
                  for r in READS]
        (folder / f"paper_{figure}.svg").write_text(plot.svg(title, panels, list(cells.RIVALS), "threads", "Mop/s"))
    names = {f"{s} % shared": s for s in [0, 30, 60, 100]}
    panels = [(NAMES[r], [1, 2, 4, 8, 16], {n: [f.get("12", r, s, k) for k in [1, 2, 4, 8, 16]] for n, s in names.items()})
              for r in READS]
    (folder / "paper_12.svg").write_text(plot.svg("Figure 12: SELCC, uniform", panels, list(names), "nodes", "Mop/s"))
    gammas = ["0", "256", "inf"]
    nodes = {f"gamma {g}": f.get("15a", g, what="by_node") or [0] * 8 for g in gammas}
    (folder / "paper_15a.svg").write_text(plot.svg("Figure 15a: one page, writes: operations of each node",
                                          [("", list(range(8)), nodes)], list(nodes), "node", "operations"))
    panels = []
    for name in cells.MECHANISMS:
        line = f.get("15b", name, what="timeline") or []
        line = line[:: max(1, len(line) // 40)]
        labels = [i if i % 10 == 0 else "" for i in range(len(line))] or [0]
        panels.append((name, labels, {"writer": [w for w, _ in line], "a reader": [r for _, r in line]}))
    (folder / "paper_15b.svg").write_text(plot.svg("Figure 15b: one writer, seven readers, over time", panels,
                                          ["writer", "a reader"], "time", "operations so far"))
    kinds = ["SELCC", "directory, none", "directory, 1 core", "directory, 8 cores"]
    panels = [("", [NAMES[r] for r in READS], {k: [f.get("16", r, k) for r in READS] for k in kinds})]
    (folder / "paper_16.svg").write_text(plot.svg("Figure 16: remote processors", panels, kinds, "", "Mop/s"))
    steps = ["none", "forwarding", "batched eviction", "dirty ranges"]
    panels = [("", steps, {NAMES[r]: [f.get("18", r, s) for s in steps] for r in [100] + READS})]
    (folder / "paper_18.svg").write_text(plot.svg("Figure 18: parts of SELCC, one after the other", panels,
                                         [NAMES[r] for r in [100] + READS], "", "Mop/s"))


def write(figures, known, folder):
    f = Figures(figures, known)
    parts = [
        ("Figure 12: nodes and sharing", scaling(f)),
        ("Figure 13: locality", against(f, "13", PAPER_13) + "\n" + absolute(f, "13") + "\n" + sizes(f)),
        ("Figure 14: skew", against(f, "14", PAPER_14) + "\n" + absolute(f, "14") + "\n" + steps(f)),
        ("Figure 15: fairness", fairness(f)),
        ("Figure 16: remote processors", remote(f)),
        ("Figure 18: parts", ablation(f)),
        ("When a constant is another", sensitivity(f)),
    ]
    text = "".join(f"## {title}\n\n{part}\n" for title, part in parts)
    (folder / "paper.md").write_text("# Written by bench/paper/run.py\n\n" + text.rstrip("\n") + "\n")
    plots(f, folder)
