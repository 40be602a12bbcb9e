"""Partitions in sequence: a client puts the steps of its chain into one partition after the other, each when the last one was
answered; and tokens are moved from partition to partition.  A reader of a step sees all before it, and every token once."""
import dataclasses

from client import WORKERS
from history import committed, graph_of_registers, judge_graph, repeated

PARTS, TOKENS = 6, 24
TABLES = f"""SET default_table_access_method = gcl;
DROP TABLE IF EXISTS step, token;
CREATE TABLE step (part int, chain int, n int, pad text NOT NULL, PRIMARY KEY (chain, n, part)) PARTITION BY LIST (part);
CREATE TABLE token (part int, id int, version int NOT NULL, pad text NOT NULL, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
""" + "".join(f"CREATE TABLE step{part} PARTITION OF step FOR VALUES IN ({part});"
              f"CREATE TABLE token{part} PARTITION OF token FOR VALUES IN ({part});" for part in range(PARTS)) + f"""
INSERT INTO token SELECT id % {PARTS}, id, 0, repeat('x', 500) FROM generate_series(0, {TOKENS - 1}) id"""
FINAL = "SELECT 'step', chain, n FROM step UNION ALL SELECT 'token', id, version FROM token"


def turn(client):
    chance = client.random
    what = chance.random()
    if what < 0.4:
        put(client)
    elif what < 0.7:
        move(client, chance.randrange(TOKENS))
    elif what < 0.95:
        look_back(client, chance.randrange(WORKERS))
    else:
        look_at_tokens(client)


def put(client):
    n = client.kept.get("steps", 0) + 1
    with client.transaction() as mine:
        mine.run(f"INSERT INTO step VALUES ({n % PARTS}, {client.number}, {n}, repeat('x', 200))")
        mine.note.writes.append(("step", client.number, n))
        if client.random.random() < 0.05:
            mine.roll_back()
    if client.notes[-1].committed:
        client.kept["steps"] = n


def move(client, token):
    with client.transaction() as mine:
        rows = mine.run(f"UPDATE token SET part = (part + 1) % {PARTS}, version = version + 1 WHERE id = {token} RETURNING version")
        mine.note.found.append(("tokens", [token] * len(rows), [token]))
        mine.note.writes += [(f"token {token}", int(version)) for version, in rows]


def look_back(client, chain):
    """The last partition first: what is older is looked for later."""
    with client.transaction(read_only=client.random.random() < 0.3) as mine:
        (last, ), = mine.run(f"SELECT coalesce(max(n), 0) FROM step WHERE chain = {chain}")
        found = [int(n) for part in range(PARTS, 0, -1)
                 for n, in mine.run(f"SELECT n FROM step WHERE part = {(int(last) + part) % PARTS} AND chain = {chain}")]
        mine.note.found.append(("chain", chain, int(last), sorted(found)))


def look_at_tokens(client):
    with client.transaction(read_only=client.random.random() < 0.3) as mine:
        rows = [(int(key), int(version)) for key, version in mine.run("SELECT id, version FROM token")]
        mine.note.reads += [(f"token {key}", version) for key, version in rows]
        mine.note.found.append(("tokens", sorted(key for key, _ in rows), list(range(TOKENS))))


def judge(transactions, final, level, wrong):
    steps, told = {}, {}
    for one in transactions:
        for _, chain, n in [write for write in one.writes if write[0] == "step"]:
            if one.committed:
                told.setdefault(chain, []).append((one.ended, n))
    for _, chain, n in [row for row in final if row[0] == "step"]:
        steps.setdefault(int(chain), []).append(int(n))
    for chain in set(steps) | set(told):
        if sorted(steps.get(chain, [])) != sorted(n for _, n in told.get(chain, [])):
            wrong.append(f"lost or phantom: steps of chain {chain}")
    for one in committed(transactions):
        for kind, *found in one.found:
            if kind == "tokens" and found[0] != found[1]:
                wrong.append(f"token: {one} saw {found[0]} of {found[1]}")
            if kind == "chain":
                _judge_chain(one, *found, level, told, wrong)
    registers = {f"token {key}": int(version) for kind, key, version in final if kind == "token"}
    if len(registers) != TOKENS or len(registers) != sum(1 for row in final if row[0] == "token"):
        wrong.append(f"token: in the end there are {len(registers)} of {TOKENS}")
    moves = [dataclasses.replace(one, writes=[write for write in one.writes if write[0] != "step"]) for one in transactions]
    graph = graph_of_registers(moves, registers, wrong)
    if level != "READ COMMITTED":
        repeated(moves, wrong)
    return judge_graph(graph, transactions, level, wrong)


def _judge_chain(one, chain, last, found, level, told, wrong):
    before = max((n for ended, n in told.get(chain, ()) if ended < one.began), default=0)
    if last < before:
        wrong.append(f"stale: {one} saw {last} of chain {chain}, which was at {before} before")
    if missing := set(range(1, last + 1)) - set(found):
        wrong.append(f"gap: {one} saw {last} of chain {chain} without {sorted(missing)}")
    if level != "READ COMMITTED" and found != list(range(1, last + 1)):
        wrong.append(f"unrepeatable: {one} saw {last} of chain {chain} and then {found[-3:]}")
