"""Long fork: writers change a register each, readers look at several.  No two readers see two writers in opposite orders: what they
have seen is a chain."""
from history import MAKE_ROOM, committed, graph_of_registers, judge_graph, repeated

REGISTERS, GROUP = 160, 5
TABLES = f"""DROP TABLE IF EXISTS register;
CREATE TABLE register (id int PRIMARY KEY, version int NOT NULL, pad text NOT NULL) USING gcl;
INSERT INTO register SELECT CASE n % 2 WHEN 0 THEN n / 2 ELSE -n END, 0, repeat('x', 1000) FROM generate_series(0, {2 * REGISTERS - 1}) n;
{MAKE_ROOM.format("register")}"""
FINAL = "SELECT id, version FROM register"


def turn(client):
    chance = client.random
    group = chance.randrange(REGISTERS // GROUP)
    keys = [group + REGISTERS // GROUP * at for at in range(GROUP)]  # far from each other: on different pages
    read_only = chance.random() < 0.1
    with client.transaction(read_only=read_only) as mine:
        if chance.random() < 0.6 and not read_only:
            write(client, mine, chance.choice(keys))
        elif chance.random() < 0.5:
            seen = read(mine, f"SELECT id, version FROM register WHERE id IN ({', '.join(map(str, keys))})")
            mine.note.found.append((group, tuple(version for _, version in sorted(seen))))
        else:
            for key in chance.sample(keys, chance.randint(2, GROUP)):
                read(mine, f"SELECT id, version FROM register WHERE id = {key}")


def write(client, mine, key):
    (version, ), = mine.run(f"UPDATE register SET version = version + 1 WHERE id = {key} RETURNING version")
    mine.note.writes.append((f"register {key}", int(version)))
    if client.random.random() < 0.05:
        mine.roll_back()


def read(mine, sql):
    seen = [(int(key), int(version)) for key, version in mine.run(sql)]
    mine.note.reads += [(f"register {key}", version) for key, version in seen]
    return seen


def judge(transactions, final, level, wrong):
    """What one statement has seen is of one moment at all levels."""
    graph = graph_of_registers(transactions, {f"register {key}": int(version) for key, version in final}, wrong)
    chains = {}
    for one in committed(transactions):
        for group, versions in one.found:
            chains.setdefault(group, {})[versions] = one
    for chain in chains.values():
        ordered = sorted(chain, key=sum)
        for one, two in zip(ordered, ordered[1:]):
            if any(a > b for a, b in zip(one, two)):
                wrong.append(f"fork: {chain[one]} saw {one}, {chain[two]} saw {two}")
    if level != "READ COMMITTED":
        repeated(transactions, wrong)
    return judge_graph(graph, transactions, level, wrong)
