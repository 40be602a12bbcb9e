"""Predicates: a transaction that finds no booking near a slot of a room books it; one that finds a booking may cancel it.  No constraint
helps: what keeps two bookings apart is that each has read where the other one is."""
from dependencies import Graph
from history import committed, judge_graph

ROOMS, SLOTS, NEAR = 48, 24, 2
BETWEEN = 9  # rooms that nobody books, so that each other one has leaves of its own
TABLES = f"""DROP TABLE IF EXISTS booking;
CREATE TABLE booking (id int, room int NOT NULL, slot int NOT NULL, pad text NOT NULL, wide text NOT NULL) USING gcl;
ALTER TABLE booking ALTER pad SET STORAGE PLAIN, ALTER wide SET STORAGE PLAIN;
CREATE INDEX ON booking (room, slot) INCLUDE (pad);
INSERT INTO booking SELECT -n, n, 0, repeat('x', 1500), '' FROM generate_series(1, {ROOMS * (BETWEEN + 1)}) n WHERE n % {BETWEEN + 1} <> 0"""
FINAL = "SELECT id, room, slot FROM booking WHERE id > 0"
BY_INDEX = "SET LOCAL enable_seqscan = off;"
WHOLE_TABLE = "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;"


def turn(client):
    """Reads are noted as ((room, first slot, last slot), ids); writes as ("insert" or "delete", id, room, slot)."""
    chance = client.random
    room, slot = chance.randrange(ROOMS) * (BETWEEN + 1), chance.randrange(SLOTS)
    read_only = chance.random() < 0.1
    with client.transaction(read_only=read_only) as mine:
        near = (room, slot - NEAR, slot + NEAR)
        how = WHOLE_TABLE if chance.random() < 0.01 else BY_INDEX
        rows = read(mine, how, near)
        if chance.random() < 0.3:
            read(mine, "", near)
        if read_only:
            return
        if not rows:
            mine.run(f"INSERT INTO booking VALUES ({mine.note.name}, {room}, {slot}, repeat('x', 500), repeat('x', 3000))")
            mine.note.writes.append(("insert", mine.note.name, room, slot))
        elif chance.random() < 0.5:
            gone = chance.choice(rows)
            if mine.run(f"DELETE FROM booking WHERE id = {gone[0]} AND room = {gone[1]} AND slot = {gone[2]} RETURNING id"):
                mine.note.writes.append(("delete", *gone))
        if chance.random() < 0.05:
            mine.roll_back()


def read(mine, how, near):
    room, first, last = near
    rows = [tuple(map(int, row)) for row in mine.run(f"{how} SELECT id, room, slot FROM booking WHERE room = {room} AND slot BETWEEN {first} AND {last} AND id > 0")]
    mine.note.reads.append((near, sorted(rows)))
    return rows


def judge(transactions, final, level, wrong):
    booked, cancelled = {}, {}
    for one in committed(transactions):
        for what, key, room, slot in one.writes:
            if what == "insert":
                booked[key] = (one, room, slot)
            elif key in cancelled:
                wrong.append(f"twice: {one} and {cancelled[key]} both deleted {key}")
            else:
                cancelled[key] = one
    there = {int(key) for key, *_ in final}
    if there != set(booked) - set(cancelled):
        wrong.append(f"lost or phantom: {sorted(there ^ (set(booked) - set(cancelled)))}")
    graph = Graph()
    for key, one in cancelled.items():
        if key in booked:
            graph.add(booked[key][0].name, one.name, "ww", f"booking {key}")
    rooms = {}
    for key, (one, room, slot) in booked.items():
        rooms.setdefault(room, []).append((key, one, slot, cancelled.get(key)))
    for one in transactions:
        _judge_reads(one, booked, cancelled, rooms, level, graph, wrong)
    if level == "SERIALIZABLE":
        _judge_pairs("in the end", [tuple(map(int, row)) for row in final], wrong)
    return judge_graph(graph, transactions, level, wrong)


def _judge_pairs(who, rows, wrong):
    for key, room, slot in rows:
        wrong += [f"skew: {who} {key} and {other} are both near {slot} of room {room}" for other, in_room, at in rows
                  if key < other and in_room == room and abs(slot - at) <= NEAR]


def _judge_reads(one, booked, cancelled, rooms, level, graph, wrong):
    """Which booking was seen says who comes before whom.  Where one was not, it may be gone again or not be there yet; the clock tells
    which, or nothing is said."""
    own = {key for what, key, *_ in one.writes}
    seen_before = {}
    for near, rows in one.reads:
        seen = {key for key, *_ in rows} - own
        if level != "READ COMMITTED" and seen_before.setdefault(near, seen) != seen:
            wrong.append(f"unrepeatable: {one} saw {seen_before[near]} and {seen} near {near}")
        if level == "SERIALIZABLE" and one.committed:
            _judge_pairs(one, [row for row in rows if row[0] not in own], wrong)
        for key in seen - set(booked):
            wrong.append(f"dirty: {one} saw {key}, which was not committed")
        if not one.committed:
            continue
        for key in seen & set(booked):
            graph.add(booked[key][0].name, one.name, "wr", f"booking {key}")
            if key in cancelled:
                graph.add(one.name, cancelled[key].name, "rw", f"booking {key}")
        for key, writer, slot, gone in rooms.get(near[0], ()):
            if key in seen or key in own or not near[1] <= slot <= near[2] or writer.began > one.ended or gone and gone.ended < one.began:
                continue
            if gone and writer.ended < one.began:
                graph.add(gone.name, one.name, "wr", f"no booking {key} any more")
            elif not gone or gone.began > one.ended:
                graph.add(one.name, writer.name, "rw", f"no booking {key} yet")
