"""Workloads that conflict, for serializable.py: pgbench's scripts and tables.

Whether the rows of two transactions meet is known by how the keys are chosen.  In a workload that is `apart` they never do: each client
(:client_id + :base, its number among all of them) has rows of its own.  So each of its waits and aborts is a false conflict.
"""
import os

CLIENTS = 12
ME = "\\set me :client_id + :base\n"


class Workload:
    """`scripts`: [(text, weight)].  `table`: one of its tables."""

    def __init__(self, name, tables, scripts, table, apart=False):
        self.name, self.tables, self.scripts, self.table, self.apart = name, tables, scripts, table, apart

    def arguments(self, folder):
        """Of pgbench, once the scripts lie in `folder`."""
        found = []
        for number, (text, weight) in enumerate(self.scripts):
            path = os.path.join(folder, f"{self.name}{number}")
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            found += ["-f", f"{path}@{weight}"]
        return found


HOT_INSERT = Workload(
    "hot-insert", "DROP TABLE IF EXISTS hot; CREATE TABLE hot (id bigserial PRIMARY KEY, v int)",
    [("INSERT INTO hot (v) VALUES (:client_id);\n", 1)], "hot", apart=True)

SIBENCH = Workload(
    "sibench", "DROP TABLE IF EXISTS sib; CREATE TABLE sib (id int PRIMARY KEY, v int); INSERT INTO sib SELECT i, 0 FROM generate_series(1, 100) i",
    [("SELECT min(v) FROM sib;\n", 1), ("\\set id random(1, 100)\nUPDATE sib SET v = v + 1 WHERE id = :id;\n", 1)], "sib")


def skew(name, choice, pairs, apart):
    """Each reads a pair of rows and changes one of them; all rows are on one page or two."""
    tables = (f"DROP TABLE IF EXISTS pair; CREATE TABLE pair (id int PRIMARY KEY, v int); "
              f"INSERT INTO pair SELECT i, 0 FROM generate_series(0, {2 * pairs - 1}) i")
    text = (choice + "\\set one 2 * :pair\n\\set two :one + 1\n\\set id :one + random(0, 1)\nBEGIN;\n"
            "SELECT sum(v) FROM pair WHERE id IN (:one, :two);\nUPDATE pair SET v = v + 1 WHERE id = :id;\nCOMMIT;\n")
    return Workload(name, tables, [(text, 1)], "pair", apart)


def tpcc(name, choice, warehouses, apart):
    """New orders and payments of TPC-C, with less columns, items and customers."""
    tables = f"""DROP TABLE IF EXISTS warehouse, district, customer, stock, orders, line, history;
CREATE TABLE warehouse (w int PRIMARY KEY, ytd bigint NOT NULL);
CREATE TABLE district (w int, d int, next_o int NOT NULL, ytd bigint NOT NULL, PRIMARY KEY (w, d));
CREATE TABLE customer (w int, d int, c int, balance bigint NOT NULL, data text NOT NULL, PRIMARY KEY (w, d, c));
CREATE TABLE stock (w int, i int, quantity int NOT NULL, data text NOT NULL, PRIMARY KEY (w, i));
CREATE TABLE orders (w int, d int, o int, c int NOT NULL, PRIMARY KEY (w, d, o));
CREATE TABLE line (w int, d int, o int, n int, i int NOT NULL, PRIMARY KEY (w, d, o, n));
CREATE TABLE history (w int NOT NULL, d int NOT NULL, c int NOT NULL, amount int NOT NULL);
INSERT INTO warehouse SELECT w, 0 FROM generate_series(0, {warehouses - 1}) w;
INSERT INTO district SELECT w, d, 0, 0 FROM generate_series(0, {warehouses - 1}) w, generate_series(0, 9) d;
INSERT INTO customer SELECT w, d, c, 0, repeat('c', 300) FROM generate_series(0, {warehouses - 1}) w, generate_series(0, 9) d, generate_series(0, 99) c;
INSERT INTO stock SELECT w, i, 0, repeat('s', 200) FROM generate_series(0, {warehouses - 1}) w, generate_series(0, 999) i"""
    new_order = (choice + "\\set d random(0, 9)\n\\set c random(0, 99)\nBEGIN;\n"
                 "UPDATE district SET next_o = next_o + 1 WHERE w = :w AND d = :d RETURNING next_o AS o \\gset\n"
                 "SELECT balance FROM customer WHERE w = :w AND d = :d AND c = :c;\nINSERT INTO orders VALUES (:w, :d, :o, :c);\n"
                 + "".join(f"\\set i random({n} * 200, {n} * 200 + 199)\nUPDATE stock SET quantity = quantity - 1 WHERE w = :w AND i = :i;\n"
                           f"INSERT INTO line VALUES (:w, :d, :o, {n}, :i);\n" for n in range(5)) + "COMMIT;\n")
    payment = (choice + "\\set d random(0, 9)\n\\set c random(0, 99)\nBEGIN;\nUPDATE warehouse SET ytd = ytd + 1 WHERE w = :w;\n"
               "UPDATE district SET ytd = ytd + 1 WHERE w = :w AND d = :d;\n"
               "UPDATE customer SET balance = balance - 1 WHERE w = :w AND d = :d AND c = :c;\n"
               "INSERT INTO history VALUES (:w, :d, :c, 1);\nCOMMIT;\n")
    return Workload(name, tables, [(new_order, 1), (payment, 1)], "stock", apart)


WORKLOADS = (
    HOT_INSERT, SIBENCH,
    skew("skew-apart", ME + "\\set pair :me\n", CLIENTS, True), skew("skew", f"\\set pair random(0, {CLIENTS - 1})\n", CLIENTS, False),
    tpcc("tpcc-apart", ME + "\\set w :me\n", CLIENTS, True), tpcc("tpcc", f"\\set w random(0, {CLIENTS - 1})\n", CLIENTS, False))
