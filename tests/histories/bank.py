"""Money is moved between accounts, by what the server finds there and, where the level keeps that from being lost, by what the client
has read.  A transaction that looks sees all of it."""
from history import MAKE_ROOM, graph_of_registers, judge_graph, repeated

ACCOUNTS, EACH = 240, 1000
TABLES = f"""DROP TABLE IF EXISTS account;
CREATE TABLE account (id int PRIMARY KEY, version int NOT NULL, balance int NOT NULL, pad text NOT NULL) USING gcl;
INSERT INTO account SELECT CASE n % 2 WHEN 0 THEN n / 2 ELSE -n END, 0, {EACH}, repeat('x', 1000) FROM generate_series(0, {2 * ACCOUNTS - 1}) n;
{MAKE_ROOM.format("account")}"""
FINAL = "SELECT id, version, balance FROM account"
ROW = "id, version, balance"


def turn(client):
    chance = client.random
    if chance.random() < 0.06:
        look(client, chance.random() < 0.5)
    elif client.level == "READ COMMITTED" or chance.random() < 0.5:
        move_by_server(client)
    else:
        move_by_client(client)


def look(client, read_only):
    """All accounts in one statement; in several, too, where they have one snapshot."""
    with client.transaction(read_only=read_only) as mine:
        mine.note.found.append(sum(note(mine, mine.run(f"SELECT {ROW} FROM account"))))
        if client.level != "READ COMMITTED":
            step = client.random.choice((80, 120))
            mine.note.found.append(sum(sum(note(mine, mine.run(f"SELECT {ROW} FROM account WHERE id BETWEEN {at} AND {at + step - 1}")))
                                       for at in range(0, ACCOUNTS, step)))


def note(mine, rows):
    mine.note.reads += [(f"account {key}", int(version)) for key, version, _ in rows]
    return [int(balance) for *_, balance in rows]


def write(mine, key, amount):
    (_, version, _), = mine.run(f"UPDATE account SET version = version + 1, balance = {amount} WHERE id = {key} RETURNING {ROW}")
    mine.note.writes.append((f"account {key}", int(version)))


def two_of(chance):
    """In the order of their pages: fewer deadlocks.  Now and then in any."""
    two = chance.sample(range(ACCOUNTS), 2)
    return two if chance.random() < 0.1 else sorted(two)


def move_by_server(client):
    chance = client.random
    with client.transaction() as mine:
        amount = chance.randint(1, 50)
        for key, change in zip(two_of(chance), (-amount, amount)):
            write(mine, key, f"balance + {change}")
        if chance.random() < 0.05:
            mine.roll_back()


def move_by_client(client):
    chance = client.random
    with client.transaction() as mine:
        one, two = two_of(chance)
        amount = chance.randint(1, 50)
        (has, ), (has_too, ) = (note(mine, mine.run(f"SELECT {ROW} FROM account WHERE id = {key}")) for key in (one, two))
        if has < amount:
            mine.roll_back()
        write(mine, one, has - amount)
        write(mine, two, has_too + amount)


def judge(transactions, final, level, wrong):
    graph = graph_of_registers(transactions, {f"account {key}": int(version) for key, version, _ in final}, wrong)
    for one in transactions:
        for looked in one.found:
            if looked != ACCOUNTS * EACH:
                wrong.append(f"money: {one} found {looked} of {ACCOUNTS * EACH}")
    if sum(int(balance) for *_, balance in final) != ACCOUNTS * EACH:
        wrong.append(f"money: in the end there is {sum(int(balance) for *_, balance in final)} of {ACCOUNTS * EACH}")
    if level != "READ COMMITTED":
        repeated(transactions, wrong)
    return judge_graph(graph, transactions, level, wrong)
