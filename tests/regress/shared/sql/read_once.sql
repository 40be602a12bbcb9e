-- Versions that are found by an index, fetched to be replaced, and compared with what replaces them: what is known of
-- them already is not read again, and must not be older than what happens in between.
CREATE TABLE once (id int PRIMARY KEY, k int, v int, t text);
CREATE INDEX once_k ON once (k);
INSERT INTO once SELECT i, i, 0, 'row ' || i FROM generate_series(1, 20) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- A row that was just found by the index is deleted: its xmax says so.
DELETE FROM once WHERE id = 1 RETURNING id, xmax = 0 AS stays;
-- A row that this transaction has locked, or a savepoint that was rolled back.
BEGIN;
SELECT id FROM once WHERE id = 2 FOR UPDATE;
UPDATE once SET v = v + 1 WHERE id = 2 RETURNING id, v, xmax = 0 AS unlocked;
SAVEPOINT s;
SELECT id FROM once WHERE id = 3 FOR UPDATE;
ROLLBACK TO s;
UPDATE once SET v = v + 1 WHERE id = 3 RETURNING id, v;
UPDATE once SET v = v + 1, k = 100 WHERE id = 3 RETURNING id, v, k;
COMMIT;
-- A row that is joined twice is updated once.
UPDATE once SET v = once.v + 10 FROM (VALUES (4), (4), (5)) AS j (id) WHERE once.id = j.id RETURNING once.id, v;
-- An index column that changes, and one that does not.
UPDATE once SET k = k + 100 WHERE id = 6 RETURNING id, k;
SELECT id FROM once WHERE k = 6;
SELECT id FROM once WHERE k = 106;
UPDATE once SET k = k, t = t || '!' WHERE id = 6 RETURNING id, k, t;
SELECT id, t FROM once WHERE k = 106;

-- A trigger that looks up, and changes, other rows and the row itself.
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM v FROM once WHERE id = new.id + 1;
  IF new.v = 1000 THEN
    UPDATE once SET v = v + 1, k = k + 1000 WHERE id = new.id + 1;
  ELSIF new.v = 2000 THEN
    UPDATE once SET k = k + 1 WHERE id = new.id;
  ELSIF new.v = 3000 THEN
    BEGIN
      UPDATE once SET v = 1 / 0 WHERE id = new.id;
    EXCEPTION WHEN division_by_zero THEN
      new.t = old.t || ' and back';
    END;
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER meddles BEFORE UPDATE ON once FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle();
UPDATE once SET v = 1000 WHERE id = 7 RETURNING id, k, v, t;
SELECT id, k, v FROM once WHERE k = 1008;
UPDATE once SET v = 2000 WHERE id = 9;
UPDATE once SET v = 3000 WHERE id = 10 RETURNING id, k, v, t;
SELECT id, k, v, t FROM once WHERE id BETWEEN 7 AND 10 ORDER BY id;
DROP TRIGGER meddles ON once;

-- By a cursor.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM once WHERE id >= 11 ORDER BY id;
FETCH 2 FROM c;
UPDATE once SET v = v + 5 WHERE id = 12;
UPDATE once SET k = 500 WHERE CURRENT OF c RETURNING id, k, v;
FETCH 1 FROM c;
UPDATE once SET k = 501 WHERE CURRENT OF c RETURNING id, k, v;
COMMIT;
SELECT id, k, v FROM once WHERE k IN (12, 13, 500, 501) ORDER BY id;
DROP TABLE once;
DROP FUNCTION meddle();
