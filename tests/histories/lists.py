"""List-append: transactions append their names to lists and read lists.  A list tells the order of those that wrote it, and what a
reader saw of it is how it began."""
from history import MAKE_ROOM, committed, judge_graph
from dependencies import Graph

KEYS = 160
TABLES = f"""DROP TABLE IF EXISTS list;
CREATE TABLE list (id int PRIMARY KEY, items int[] NOT NULL, pad text NOT NULL) USING gcl;
INSERT INTO list SELECT CASE n % 2 WHEN 0 THEN n / 2 ELSE -n END, '{{}}', repeat('x', 1000) FROM generate_series(0, {2 * KEYS - 1}) n;
{MAKE_ROOM.format("list")}"""
FINAL = "SELECT id, items FROM list"


def items_of(text):
    return [int(item) for item in text.strip("{}").split(",") if item]


def turn(client):
    """Reads are noted as (list, its items, whether it had been appended to before)."""
    chance = client.random
    with client.transaction() as mine:
        # Few lists, and in the order of their pages: fewer deadlocks.  Now and then in any order.
        keys = chance.sample(range(0, KEYS, KEYS // 8) if chance.random() < 0.5 else range(KEYS), chance.randint(1, 3))
        for key in keys if chance.random() < 0.1 else sorted(keys):
            if chance.random() < 0.5:
                mine.note.writes.append(key)
                rows = mine.run(f"UPDATE list SET items = items || {mine.note.name} WHERE id = {key} RETURNING id, items")
            elif chance.random() < 0.1:
                rows = mine.run(f"SELECT id, items FROM list WHERE id BETWEEN {key} AND {key + 3}")
            else:
                rows = mine.run(f"SELECT id, items FROM list WHERE id = {key}")
            mine.note.reads += [(int(k), items_of(items)) for k, items in rows]
        if chance.random() < 0.05:
            mine.roll_back()


def judge(transactions, final, level, wrong):
    lists = {int(k): items_of(items) for k, items in final}
    names = {one.name: one for one in committed(transactions)}
    graph = Graph()
    for key, items in lists.items():
        if len(set(items)) != len(items):
            wrong.append(f"twice: list {key} is {items}")
        for item in items:
            if item not in names or key not in names[item].writes:
                wrong.append(f"phantom: list {key} has {item}, which did not commit that")
        for one, two in zip(items, items[1:]):
            graph.add(one, two, "ww", f"list {key}")
    for one in names.values():
        for key in one.writes:
            if one.name not in lists[key]:
                wrong.append(f"lost: list {key} lacks {one}")
    for one in transactions:
        _judge_reads(one, lists, level, graph, wrong)
    return judge_graph(graph, transactions, level, wrong)


def _judge_reads(one, lists, level, graph, wrong):
    seen = {}
    for key, items in one.reads:
        others = [item for item in items if item != one.name]
        if one.name in items[:-1]:
            wrong.append(f"behind its own: {one} saw {items[items.index(one.name):]} in list {key}")
        if others != lists[key][:len(others)]:
            wrong.append(f"dirty: {one} saw {others} in list {key}, which is {lists[key]}")
            continue
        if level != "READ COMMITTED" and seen.setdefault(key, others) != others:
            wrong.append(f"unrepeatable: {one} saw {len(seen[key])} and {len(others)} items of list {key}")
        if one.committed:
            if others:
                graph.add(others[-1], one.name, "wr", f"list {key}")
            if behind := [item for item in lists[key][len(others):len(others) + 2] if item != one.name]:
                graph.add(one.name, behind[0], "rw", f"list {key}")
