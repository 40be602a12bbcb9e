"""A judge of histories of lists: whether some order of whole transactions explains what each has read.

Transactions append items, each its own name, to lists, and read lists.  A list shows the order of those that appended to it.
So for each list it is known which one wrote after which (ww), whose item a reader saw last (wr), and whose it missed first
(rw); and by the clock, which one ended before another began.  A cycle of these is a history that no order explains.
"""


class Anomaly(AssertionError):
    pass


class Transaction:
    def __init__(self, name, reads, appends, began, ended):
        self.name, self.reads, self.appends, self.began, self.ended = name, reads, appends, began, ended


class History:
    def __init__(self):
        self.transactions = {}

    def add(self, name, reads, appends, began=0.0, ended=0.0):
        """Of one that was committed: name (a string without blanks); reads: key -> items; appends: keys."""
        self.transactions[name] = Transaction(name, reads, appends, began, ended)

    def judge(self, final):
        """`final`: key -> items in the end.  Anomaly: no order explains it."""
        edges = {name: {} for name in self.transactions}

        def before(one, two, why):
            if one != two:
                edges[one].setdefault(two, why)
        for key, items in final.items():
            self._check_list(key, items)
            for one, two in zip(items, items[1:]):
                before(one, two, f"ww on {key}")
        for t in self.transactions.values():
            for key in t.appends:
                if t.name not in final.get(key, []):
                    raise Anomaly(f"the item of {t.name} in list {key} is lost")
            for key, seen in t.reads.items():
                items = final.get(key, [])
                others = [item for item in seen if item != t.name]
                if seen != items[:len(seen)] and others != items[:len(others)]:
                    raise Anomaly(f"{t.name} read {seen} of list {key}, which has {items}")
                if others:
                    before(others[-1], t.name, f"wr on {key}")
                rest = [item for item in items[len(others):] if item != t.name]
                if rest:
                    before(t.name, rest[0], f"rw on {key}")
        self._add_clock(edges)
        self._find_cycle(edges)

    def _check_list(self, key, items):
        if len(set(items)) != len(items):
            raise Anomaly(f"list {key} has an item twice: {items}")
        for item in items:
            if item not in self.transactions:
                raise Anomaly(f"list {key} has the item of {item}, which was not committed")
            if key not in self.transactions[item].appends:
                raise Anomaly(f"list {key} has an item of {item}, which did not write it")

    def _add_clock(self, edges):
        """A transaction that ended before another began comes first.  One node for each moment keeps the edges few."""
        moments = sorted([(t.ended, 0, t.name) for t in self.transactions.values()] +
                         [(t.began, 1, t.name) for t in self.transactions.values()])
        last = None
        for n, (_, begins, name) in enumerate(moments):
            if begins:
                if last is not None:
                    edges[last][name] = "clock"
                continue
            moment = ("moment", n)
            edges[moment] = {}
            if last is not None:
                edges[last][moment] = "clock"
            edges[name][moment] = "clock"
            last = moment

    @staticmethod
    def _find_cycle(edges):
        state, parent = {}, {}
        for root in edges:
            if root in state:
                continue
            stack = [(root, iter(edges[root]))]
            state[root] = "open"
            while stack:
                node, targets = stack[-1]
                for target in targets:
                    if state.get(target) == "open":
                        names = [name for name, _ in stack]
                        cycle = names[names.index(target):] + [target]
                        raise Anomaly("a cycle: " + ", ".join(
                            f"{a} -> {b} ({edges[a][b]})" for a, b in zip(cycle, cycle[1:])))
                    if target not in state:
                        state[target] = "open"
                        parent[target] = node
                        stack.append((target, iter(edges[target])))
                        break
                else:
                    state[node] = "done"
                    stack.pop()
