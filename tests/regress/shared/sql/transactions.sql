-- Savepoints, exceptions, isolation, DDL that is rolled back.
CREATE TABLE x (id int PRIMARY KEY, v text);
INSERT INTO x VALUES (1, 'one'), (2, 'two');
BEGIN;
INSERT INTO x VALUES (3, 'three');
SAVEPOINT a;
UPDATE x SET v = 'a' WHERE id = 1;
SAVEPOINT b;
DELETE FROM x WHERE id = 2;
INSERT INTO x VALUES (4, 'four');
SELECT * FROM x ORDER BY id;
ROLLBACK TO b;
SELECT * FROM x ORDER BY id;
INSERT INTO x VALUES (4, 'again');
RELEASE a;
SELECT * FROM x ORDER BY id;
COMMIT;
SELECT * FROM x ORDER BY id;
BEGIN;
SAVEPOINT s;
INSERT INTO x VALUES (1, 'duplicate');
SELECT 1;
ROLLBACK TO s;
UPDATE x SET v = 'after error' WHERE id = 1;
SAVEPOINT s;
UPDATE x SET v = 'undone' WHERE id = 1;
ROLLBACK TO s;
UPDATE x SET v = v || '!' WHERE id = 1;
SAVEPOINT s;
UPDATE x SET v = v || '!' WHERE id = 1;
RELEASE s;
COMMIT;
SELECT * FROM x WHERE id = 1;
BEGIN;
DELETE FROM x;
INSERT INTO x VALUES (1, 'new one');
ROLLBACK;
SELECT count(*) FROM x;
-- Delete and insert again under one key, in one transaction
BEGIN;
DELETE FROM x WHERE id = 1;
INSERT INTO x VALUES (1, 'reborn');
DELETE FROM x WHERE id = 1;
INSERT INTO x VALUES (1, 'reborn twice');
COMMIT;
SELECT * FROM x WHERE id = 1;
-- Many savepoints
DO $$
BEGIN
  FOR i IN 100..300 LOOP
    BEGIN
      INSERT INTO x VALUES (i, 'loop');
      IF i % 3 = 0 THEN RAISE EXCEPTION 'no'; END IF;
      UPDATE x SET v = v || i WHERE id = i;
    EXCEPTION WHEN raise_exception THEN
      INSERT INTO x VALUES (i + 1000, 'instead');
    END;
  END LOOP;
END $$;
SELECT v = 'instead' AS instead, count(*), sum(id) FROM x WHERE id >= 100 GROUP BY 1 ORDER BY 1;
DO $$
BEGIN
  INSERT INTO x VALUES (1, 'dup');
EXCEPTION WHEN unique_violation THEN
  RAISE NOTICE 'caught %: %', SQLSTATE, SQLERRM;
  UPDATE x SET v = 'caught' WHERE id = 1;
END $$;
DO $$
BEGIN
  UPDATE x SET id = 2 WHERE id = 1;
EXCEPTION WHEN OTHERS THEN
  RAISE;
END $$;
CREATE FUNCTION nested(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO x VALUES (5000 + n, 'nested');
  IF n > 0 THEN PERFORM nested(n - 1); END IF;
  IF n = 2 THEN RAISE EXCEPTION 'at two'; END IF;
  RETURN n;
EXCEPTION WHEN raise_exception THEN
  RETURN -1;
END $$;
SELECT nested(5);
SELECT id FROM x WHERE v = 'nested' ORDER BY id;
-- COMMIT in procedures
CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR i IN 1..6 LOOP
    INSERT INTO x VALUES (9000 + i, 'step');
    IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
  END LOOP;
  FOR r IN SELECT id FROM x WHERE v = 'step' ORDER BY id LOOP
    UPDATE x SET v = 'stepped' WHERE id = r.id;
    COMMIT;
  END LOOP;
END $$;
CALL steps();
SELECT * FROM x WHERE id > 9000 ORDER BY id;
-- Isolation
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM x WHERE id < 10;
INSERT INTO x VALUES (9, 'rr');
UPDATE x SET v = 'rr too' WHERE id = 9;
SELECT * FROM x WHERE id = 9;
SAVEPOINT a;
DELETE FROM x WHERE id = 9;
ROLLBACK TO a;
SELECT * FROM x WHERE id = 9;
COMMIT;
BEGIN READ ONLY;
SELECT count(*) FROM x WHERE id < 10;
INSERT INTO x VALUES (10, 'ro');
ROLLBACK;
BEGIN ISOLATION LEVEL READ UNCOMMITTED;
UPDATE x SET v = 'ru' WHERE id = 9 RETURNING *;
COMMIT AND CHAIN;
SELECT * FROM x WHERE id = 9;
ROLLBACK AND CHAIN;
ROLLBACK;
-- A statement that fails half way leaves nothing
INSERT INTO x SELECT i, 'half' FROM generate_series(20, 1, -1) i;
UPDATE x SET v = (100 / (id - 9))::text WHERE id < 10;
SELECT count(*) FROM x WHERE v = 'half';
-- DDL with its transaction
BEGIN;
CREATE TABLE y (id int PRIMARY KEY);
INSERT INTO y SELECT generate_series(1, 100);
CREATE INDEX ON y ((id % 10));
SELECT count(*) FROM y WHERE id % 10 = 3;
ROLLBACK;
SELECT * FROM y;
BEGIN;
CREATE TABLE y (id int PRIMARY KEY);
INSERT INTO y SELECT generate_series(1, 100);
SAVEPOINT s;
DROP TABLE y;
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM y;
BEGIN;
TRUNCATE y;
INSERT INTO y VALUES (7);
SELECT * FROM y;
ROLLBACK;
SELECT count(*) FROM y;
BEGIN;
ALTER TABLE y ADD COLUMN z int DEFAULT 3;
SELECT sum(z) FROM y;
SAVEPOINT s;
ALTER TABLE y DROP COLUMN z;
ROLLBACK TO s;
UPDATE y SET z = 4 WHERE id <= 50;
COMMIT;
SELECT z, count(*) FROM y GROUP BY z ORDER BY z;
BEGIN;
DROP TABLE y;
COMMIT;
SELECT * FROM y;
DROP FUNCTION nested; DROP PROCEDURE steps; DROP TABLE x;
