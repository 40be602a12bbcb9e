"""Write skew: of two on call one may go if the other stays.  Each looks at both, and changes itself alone."""
from history import MAKE_ROOM, graph_of_registers, judge_graph, repeated

SHIFTS = 120
TABLES = f"""DROP TABLE IF EXISTS doctor;
CREATE TABLE doctor (id int PRIMARY KEY, shift int NOT NULL, version int NOT NULL, on_call bool NOT NULL, pad text NOT NULL) USING gcl;
CREATE INDEX ON doctor (shift);
INSERT INTO doctor SELECT CASE n % 2 WHEN 0 THEN n / 2 ELSE -n END, n / 4, 0, true, repeat('x', 1000) FROM generate_series(0, {4 * SHIFTS - 1}) n;
{MAKE_ROOM.format("doctor")}"""
FINAL = "SELECT id, version, on_call FROM doctor"
# Both doctors of a shift: by their keys, or by what they have in common.
LOOKS = ("SELECT id, version, on_call FROM doctor WHERE id IN ({one}, {two})",
         "SELECT id, version, on_call FROM doctor WHERE shift = {shift}")


def turn(client):
    chance = client.random
    shift = chance.randrange(SHIFTS)
    ids = (2 * shift, 2 * shift + 1)
    read_only = chance.random() < 0.1
    with client.transaction(read_only=read_only) as mine:
        rows = mine.run(chance.choice(LOOKS).format(one=ids[0], two=ids[1], shift=shift))
        on_call = {int(key): state == "t" for key, _, state in rows}
        mine.note.reads += [(f"doctor {key}", int(version)) for key, version, _ in rows]
        mine.note.found.append(sum(on_call.values()))
        me = chance.choice(ids)
        if not read_only and not (on_call[me] and sum(on_call.values()) < 2):
            (version, ), = mine.run(f"UPDATE doctor SET on_call = {not on_call[me]}, version = version + 1 WHERE id = {me} RETURNING version")
            mine.note.writes.append((f"doctor {me}", int(version)))
            if chance.random() < 0.05:
                mine.roll_back()


def judge(transactions, final, level, wrong):
    graph = graph_of_registers(transactions, {f"doctor {key}": int(version) for key, version, _ in final}, wrong)
    if level == "SERIALIZABLE":
        wrong += [f"skew: {one} found nobody on call" for one in transactions if one.found == [0]]
        on_call = {int(key) // 2 for key, _, state in final if state == "t"}
        wrong += [f"skew: in the end nobody is on call in shift {shift}" for shift in set(range(SHIFTS)) - on_call]
    if level != "READ COMMITTED":
        repeated(transactions, wrong)
    return judge_graph(graph, transactions, level, wrong)
