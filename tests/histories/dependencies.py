"""The dependencies of a history's transactions, and the cycles that a level forbids.

    graph = Graph()
    graph.add("a", "b", "ww", "list 7")     # b wrote over what a wrote; wr: b read that; rw: b wrote over what a read
    graph.add_clock({"a": (began, ended), "b": (began, ended)})     # rt: a was told its end before b began
    graph.cycle("REPEATABLE READ")          # None, or a cycle that no execution of the level has, in words

history.order-of-commits: ww, wr and rt lead from a commit to a later one: a writer's rows are locked until its end, a reader sees what
    was committed, and the clients' clock is one.  So no level has a cycle of them.
history.rw-counts: rw alone may lead back in time: from a snapshot to a commit behind it.  How far back a reader's snapshot may be is
    the level.  READ COMMITTED: not before its transaction began, so rw behind rt leads forward.  REPEATABLE READ: not before the
    snapshot that all its reads have; a transaction that is seen, is overwritten, or ended before, was committed before it; so rw
    behind ww, wr and rt leads forward, and only two rw together lead back.  SERIALIZABLE: the transaction is all at one moment
    between its begin and its end; rw leads forward behind anything.
history.cycle-is-anomaly: A cycle of edges that all lead forward, each rw behind one that its level names (BEHIND), is an anomaly.

For REPEATABLE READ that is Cerone's and Gotsman's characterisation of snapshot isolation: ((ww or wr or rt) then at most one rw) has
no cycle.
"""
BEHIND = {"READ COMMITTED": {"rt"}, "REPEATABLE READ": {"rt", "ww", "wr"}, "SERIALIZABLE": {"rt", "ww", "wr", "rw"}}
LEVELS = tuple(BEHIND)


class Graph:
    def __init__(self):
        self.edges = {}  # one -> two -> kind -> why

    def add(self, one, two, kind, why):
        if one != two:
            self.edges.setdefault(one, {}).setdefault(two, {}).setdefault(kind, why)

    def add_clock(self, spans):
        """One node for each end keeps these edges few: as many as there are transactions, not their square."""
        moments = sorted([(began, 0, name) for name, (began, _) in spans.items()] + [(ended, 1, name) for name, (_, ended) in spans.items()])
        last = None
        for number, (_, ends, name) in enumerate(moments):
            if not ends:
                if last is not None:
                    self.add(last, name, "rt", "clock")
                continue
            moment = ("moment", number)
            if last is not None:
                self.add(last, moment, "rt", "clock")
            self.add(name, moment, "rt", "clock")
            last = moment

    def cycle(self, level):
        """Searched among pairs: a transaction, and whether rw counts behind the edge that led there (history.rw-counts)."""
        behind, done, open_at = BEHIND[level], set(), {}

        def next_of(state):
            node, counts = state
            for target, kinds in self.edges.get(node, {}).items():
                for kind in kinds:
                    if kind != "rw" or counts:
                        yield (target, kind in behind), kind

        for root in ((node, counts) for node in self.edges for counts in (False, True)):
            if root in done:
                continue
            path, open_at[root] = [[root, next_of(root), None]], 0
            while path:
                found = next(path[-1][1], None)
                if found is None:
                    done.add(path[-1][0])
                    del open_at[path.pop()[0]]
                    continue
                state, path[-1][2] = found
                if state in open_at:
                    return self._told([(entry[0][0], entry[2]) for entry in path[open_at[state]:]])
                if state not in done:
                    open_at[state] = len(path)
                    path.append([state, next_of(state), None])
        return None

    def _told(self, cycle):
        """[(node, kind of the edge that leaves it)], without the moments."""
        text = []
        for (one, kind), (two, _) in zip(cycle, cycle[1:] + cycle[:1]):
            why = self.edges[one][two][kind]
            if not isinstance(one, tuple):
                text.append(f"{one} -{kind} ({why})->")
        return "a cycle: " + " ".join(text)
