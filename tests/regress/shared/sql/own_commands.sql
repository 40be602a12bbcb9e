-- What a transaction sees of its own changes: the commands before the one that looks, whatever became of the rows since.
CREATE TABLE o (id int PRIMARY KEY, n int NOT NULL, v text);
CREATE TABLE seen (at serial PRIMARY KEY, who text, rows int, sum bigint);
CREATE FUNCTION look(who text) RETURNS void LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO seen (who, rows, sum) SELECT look.who, count(*), sum(n) FROM o; END $$;

-- Cursors of one transaction, each older than the next change.
BEGIN;
INSERT INTO o SELECT i, i, repeat('x', 50) FROM generate_series(1, 200) i;
DECLARE made CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET n = n + 1000 WHERE id <= 100;
DECLARE updated CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET v = repeat('y', 700) WHERE id % 2 = 0;
DECLARE widened CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET v = repeat('z', 900), n = n + 10000 WHERE id % 4 = 0;
DECLARE twice CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
DELETE FROM o WHERE id % 3 = 0;
DECLARE fewer CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
SELECT count(*) FROM (SELECT * FROM o WHERE id < 50 FOR UPDATE) l;
UPDATE o SET id = id + 1000;
DECLARE renamed CURSOR FOR SELECT count(*), sum(n), sum(length(v)), min(id) FROM o;
FETCH ALL FROM made;
FETCH ALL FROM updated;
FETCH ALL FROM widened;
FETCH ALL FROM twice;
FETCH ALL FROM fewer;
FETCH ALL FROM renamed;
COMMIT;
SELECT count(*), sum(n), sum(length(v)), min(id) FROM o;

-- The same of rows that were there before, which leave their full pages.
TRUNCATE o;
INSERT INTO o SELECT i, i, repeat('x', 300) FROM generate_series(1, 200) i;
BEGIN;
DECLARE before CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET v = v || 'y';
DECLARE once CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET v = v || v, n = n + 1;
DECLARE twice CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
DELETE FROM o WHERE id > 100;
SELECT count(*), sum(n), sum(length(v)) FROM o;
FETCH ALL FROM before;
FETCH ALL FROM once;
FETCH ALL FROM twice;
ROLLBACK;
SELECT count(*), sum(n), sum(length(v)) FROM o;

-- Savepoints: what is rolled back leaves the row as the command before had it.
BEGIN;
INSERT INTO o SELECT i, i, repeat('x', 300) FROM generate_series(201, 220) i;
DECLARE inserted CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
SAVEPOINT a;
DELETE FROM o WHERE id > 210;
SAVEPOINT b;
UPDATE o SET v = repeat('w', 1200), n = -n WHERE id % 2 = 1;
SAVEPOINT c;
DELETE FROM o WHERE n < 0;
SELECT count(*), sum(n), sum(length(v)) FROM o;
ROLLBACK TO c;
SELECT count(*), sum(n), sum(length(v)) FROM o;
DECLARE at_c CURSOR FOR SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET n = 0;
FETCH ALL FROM at_c;
ROLLBACK TO b;
SELECT count(*), sum(n), sum(length(v)) FROM o;
RELEASE b;
SELECT count(*) FROM (SELECT * FROM o FOR NO KEY UPDATE) l;
ROLLBACK TO a;
SELECT count(*) FROM (SELECT * FROM o FOR UPDATE) l;
SELECT count(*), sum(n), sum(length(v)) FROM o;
UPDATE o SET n = n + 1 WHERE id > 210;
SELECT count(*), sum(n), sum(length(v)) FROM o;
FETCH ALL FROM inserted;
COMMIT;
SELECT count(*), sum(n), sum(length(v)) FROM o;

-- Functions and triggers that change and look in the midst of a command.
CREATE FUNCTION each() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() < 3 AND new.id % 50 = 0 THEN
    PERFORM look(tg_op || ' ' || new.id || ' ' || pg_trigger_depth());
    UPDATE o SET n = n + 1, v = v || repeat('t', 200) WHERE id = new.id + 1;
    PERFORM look('then');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER each AFTER INSERT OR UPDATE ON o FOR EACH ROW EXECUTE FUNCTION each();
BEGIN;
INSERT INTO o SELECT i, i, repeat('x', 300) FROM generate_series(300, 352) i;
UPDATE o SET n = n + 1 WHERE id = 50;
UPDATE o SET n = n + 1 WHERE id = 300;
UPDATE o SET n = n + 1 WHERE id = 350;
INSERT INTO o VALUES (350, 1, 'conflict') ON CONFLICT (id) DO UPDATE SET n = o.n + excluded.n, v = excluded.v;
COMMIT;
DROP TRIGGER each ON o;
SELECT who, rows, sum FROM seen ORDER BY at;
SELECT id, n, length(v) FROM o WHERE id IN (50, 51, 300, 301, 350, 351) ORDER BY id;
CREATE FUNCTION change_and_count(i int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  UPDATE o SET n = n + 1 WHERE id = i;
  RETURN (SELECT sum(n) FROM o);
END $$;
SELECT sum(n), count(change_and_count(id) - n) FROM o;
SELECT sum(n) FROM o;
UPDATE o SET n = change_and_count(id) WHERE id = 7;
CREATE FUNCTION in_vain(i int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM o WHERE id = i;
  RAISE EXCEPTION 'in vain';
EXCEPTION WHEN raise_exception THEN
  RETURN (SELECT sum(n) FROM o WHERE id = i);
END $$;
BEGIN;
INSERT INTO o SELECT i, i, repeat('v', 300) FROM generate_series(400, 420) i;
SELECT sum(in_vain(id)) = sum(n) FROM o;
SELECT sum(n) FROM o WHERE in_vain(id) = n;
COMMIT;

-- A plan for workers, in a transaction that has changed rows.
SET force_parallel_mode = on;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
BEGIN;
SELECT count(*), sum(n) FROM o;
INSERT INTO o SELECT i, i, repeat('p', 300) FROM generate_series(500, 600) i;
UPDATE o SET n = n + 1, v = repeat('q', 400) WHERE id > 550;
DELETE FROM o WHERE id > 590;
SAVEPOINT a;
UPDATE o SET n = 0;
ROLLBACK TO a;
SELECT count(*), sum(n), sum(length(v)) FROM o;
COMMIT;
SELECT count(*), sum(n), sum(length(v)) FROM o;
RESET force_parallel_mode;
DROP FUNCTION look, each, change_and_count, in_vain CASCADE;
DROP TABLE o, seen;
