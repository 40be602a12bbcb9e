-- INSERT, UPDATE, DELETE, MERGE, ON CONFLICT, with RETURNING and in CTEs.
CREATE TABLE t (id int PRIMARY KEY, g int, v text);
INSERT INTO t SELECT i, i % 5, 'v' || i FROM generate_series(1, 20) i;
INSERT INTO t VALUES (21, 0, NULL), (22, NULL, 'x') RETURNING *, id + 1 AS next;
INSERT INTO t (v, id) SELECT v || '!', id + 100 FROM t WHERE g = 1 RETURNING id, v;
INSERT INTO t VALUES (1, 1, 'again');
INSERT INTO t VALUES (500, 1, 'in'), (1, 1, 'again');
SELECT count(*) FROM t WHERE id = 500;
UPDATE t SET v = upper(v), g = g + 1 WHERE id BETWEEN 3 AND 5 RETURNING *;
UPDATE t SET (g, v) = (SELECT 99, 'sub' || t.id) WHERE id = 6 RETURNING *;
UPDATE t SET v = o.v FROM t o WHERE o.id = t.id + 1 AND t.id IN (7, 8) RETURNING t.id, t.v, o.id;
-- Every row once, though each update could make the next row fit the condition
UPDATE t SET id = id + 1000 WHERE id < 1000;
SELECT count(*), min(id), max(id) FROM t;
UPDATE t SET id = id - 1000;
UPDATE t SET id = 5 WHERE id = 6;
DELETE FROM t USING (VALUES (101), (106)) x(id) WHERE t.id = x.id RETURNING t.*;
DELETE FROM t WHERE id > 100 RETURNING id;
DELETE FROM t WHERE false;
SELECT id, g, v FROM t ORDER BY id;

-- Changes in CTEs see the time before the statement
WITH gone AS (DELETE FROM t WHERE id = 1 RETURNING *), new AS (INSERT INTO t SELECT id + 50, g, v FROM gone RETURNING *)
  SELECT (SELECT count(*) FROM t WHERE id IN (1, 51)) AS old, new.* FROM new;
WITH up AS (UPDATE t SET v = 'cte' WHERE id = 2 RETURNING id) SELECT t.v FROM t JOIN up USING (id);
WITH RECURSIVE r(id) AS (SELECT 2 UNION ALL SELECT id + 3 FROM r WHERE id < 12),
  up AS (UPDATE t SET g = -1 FROM r WHERE t.id = r.id RETURNING t.id) SELECT * FROM up ORDER BY 1;
SELECT v FROM t WHERE id = 2;

-- The same row twice in one statement: the first change counts
UPDATE t SET v = x.v FROM (VALUES (3, 'once'), (3, 'once')) x(id, v) WHERE t.id = x.id;
SELECT v FROM t WHERE id = 3;

-- ON CONFLICT
INSERT INTO t VALUES (3, 3, 'c') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO t VALUES (3, 3, 'c'), (60, 3, 'new') ON CONFLICT (id) DO UPDATE SET v = t.v || '+' || excluded.v RETURNING *;
INSERT INTO t VALUES (3, 3, 'c') ON CONFLICT (id) DO UPDATE SET v = 'not' WHERE t.g = 12345 RETURNING *;
INSERT INTO t VALUES (3, 3, 'c') ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET g = excluded.g RETURNING *;
INSERT INTO t VALUES (3, 3, 'c') ON CONFLICT (v) DO NOTHING;
INSERT INTO t VALUES (70, 3, 'a'), (70, 3, 'b') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO t VALUES (71, 3, 'a'), (71, 3, 'b') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
CREATE UNIQUE INDEX t_v ON t (lower(v)) WHERE g = 3;
INSERT INTO t VALUES (80, 3, 'A') ON CONFLICT (lower(v)) WHERE g = 3 DO UPDATE SET v = 'met' RETURNING *;
INSERT INTO t VALUES (81, 4, 'met') ON CONFLICT (lower(v)) WHERE g = 3 DO NOTHING RETURNING *;
INSERT INTO t VALUES (82, 3, 'MET');
DROP INDEX t_v;

-- MERGE
CREATE TABLE s (id int, v text);
INSERT INTO s VALUES (3, 'merge'), (4, NULL), (90, 'ninety');
MERGE INTO t USING s ON t.id = s.id
  WHEN MATCHED AND s.v IS NULL THEN DELETE
  WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.v);
SELECT * FROM t WHERE id IN (3, 4, 90) ORDER BY id;
INSERT INTO s VALUES (3, 'twice');
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
SELECT * FROM t WHERE id = 3;

-- Through views
CREATE VIEW tv AS SELECT id, v FROM t WHERE g = 3 WITH CHECK OPTION;
UPDATE tv SET v = 'view' WHERE id = 3 RETURNING *;
SELECT id, v FROM tv ORDER BY id;
INSERT INTO tv VALUES (91, 'x');
DELETE FROM tv WHERE id = 3 RETURNING *;
DROP VIEW tv;

-- Row locks that nobody else wants
BEGIN;
SELECT id FROM t WHERE id < 10 ORDER BY id FOR UPDATE;
SELECT id FROM t WHERE id < 10 ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;
SELECT t.id FROM t JOIN s USING (id) ORDER BY id FOR UPDATE OF t NOWAIT;
UPDATE t SET v = 'after lock' WHERE id = 7;
SELECT id, v FROM t WHERE id = 7 FOR UPDATE;
COMMIT;
SELECT id, v FROM t WHERE id = 7;
DROP TABLE t, s;
