"""Foreign keys: parents are deleted while children come.  Nobody ever sees a child without its parent, nor does one stay."""
from history import committed

PARENTS = 200
CHILDREN = ("child", "cascading")
TABLES = f"""DROP TABLE IF EXISTS child, cascading, parent;
CREATE TABLE parent (id int, pad text NOT NULL, PRIMARY KEY (id) INCLUDE (pad)) USING gcl;
CREATE TABLE child (id int, parent int NOT NULL REFERENCES parent, pad text NOT NULL, PRIMARY KEY (id) INCLUDE (pad)) USING gcl;
CREATE TABLE cascading (id int, parent int NOT NULL REFERENCES parent ON DELETE CASCADE, pad text NOT NULL, PRIMARY KEY (id) INCLUDE (pad)) USING gcl;
CREATE INDEX ON child (parent) INCLUDE (pad); CREATE INDEX ON cascading (parent) INCLUDE (pad);
ALTER TABLE parent ALTER pad SET STORAGE PLAIN; ALTER TABLE child ALTER pad SET STORAGE PLAIN; ALTER TABLE cascading ALTER pad SET STORAGE PLAIN;
INSERT INTO parent SELECT id, repeat('x', 1000) FROM generate_series(1, {PARENTS}) id"""
FINAL = "SELECT 'child', id, parent FROM child UNION ALL SELECT 'cascading', id, parent FROM cascading UNION ALL SELECT 'parent', id, id FROM parent"
LEFT_ALONE = " UNION ALL ".join(f"SELECT c.id FROM {table} c LEFT JOIN parent p ON p.id = c.parent WHERE p.id IS NULL" for table in CHILDREN)
REFUSED = ("23503", "23505")  # no such parent, or it has children; it is there already


def turn(client):
    chance = client.random
    parent, what, table = chance.randint(1, PARENTS), chance.random(), chance.choice(CHILDREN)
    if what < 0.03:
        return look(client)
    with client.transaction(expected=REFUSED) as mine:
        if what < 0.4:
            mine.run(f"INSERT INTO {table} VALUES ({mine.note.name}, {parent}, repeat('x', 1000))")
            mine.note.writes.append((table, mine.note.name))
        elif what < 0.6:
            mine.run(f"INSERT INTO parent VALUES ({parent}, repeat('x', 1000))")
        elif what < 0.8:
            gone = mine.run(f"DELETE FROM child WHERE parent = {parent} RETURNING id")
            mine.note.writes += [("gone", int(key)) for key, in gone]
            mine.run(f"DELETE FROM parent WHERE id = {parent}")
        else:
            mine.run(f"DELETE FROM parent WHERE id = {parent}")
        if chance.random() < 0.05:
            mine.roll_back()
    return None


def look(client):
    """In one statement at all levels; in two, where they have one snapshot."""
    with client.transaction(read_only=client.random.random() < 0.5) as mine:
        mine.note.found += [key for key, in mine.run(LEFT_ALONE)]
        if client.level != "READ COMMITTED":
            table = client.random.choice(CHILDREN)
            named = {parent: key for key, parent in mine.run(f"SELECT id, parent FROM {table}")}
            there = {parent for parent, in mine.run("SELECT id FROM parent")}
            mine.note.found += [key for parent, key in named.items() if parent not in there]


def judge(transactions, final, _, wrong):
    for one in committed(transactions):
        wrong += [f"orphan: {one} saw {key} without its parent" for key in one.found]
    parents = {key for table, key, _ in final if table == "parent"}
    came = {(table, str(key)) for one in committed(transactions) for table, key in one.writes}
    for table, key, parent in final:
        if table != "parent" and parent not in parents:
            wrong.append(f"orphan: in the end {table} {key} is without its parent {parent}")
        if table != "parent" and (table, key) not in came:
            wrong.append(f"phantom: nobody committed {table} {key}")
    gone = {key for table, key in came if table == "gone"}
    stays = {key for table, key in came if table == "child"} - gone
    if lost := stays - {key for table, key, _ in final if table == "child"}:
        wrong.append(f"lost: children {sorted(lost)}")
