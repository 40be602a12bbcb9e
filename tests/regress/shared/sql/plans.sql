-- Scans by row id, by sample, in parallel; EXPLAIN; prepared plans.
CREATE TABLE p (id int PRIMARY KEY, v int, t text);
INSERT INTO p SELECT i, i % 100, 't' || i FROM generate_series(1, 10000) i;
ANALYZE p;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE v = 5;
EXPLAIN (COSTS OFF) UPDATE p SET v = 1 WHERE id = 5;
EXPLAIN (COSTS OFF) DELETE FROM p WHERE ctid = '(0,1)';
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT count(*) FROM p WHERE id < 100;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) UPDATE p SET v = v WHERE id < 3;
-- A row by its id, now and after an update
CREATE TABLE one (id int, v text);
INSERT INTO one VALUES (1, 'a'), (2, 'b');
SELECT v FROM one WHERE ctid = (SELECT ctid FROM one WHERE id = 2);
SELECT v FROM one WHERE ctid IN (SELECT ctid FROM one) ORDER BY v;
SELECT v FROM one WHERE ctid = '(4000000,1)';
SELECT v FROM one WHERE ctid = '(0,0)';
SELECT count(*) FROM one a JOIN one b ON a.ctid = b.ctid;
WITH old AS (SELECT ctid AS c FROM one WHERE id = 1), up AS (UPDATE one SET v = 'A' WHERE id = 1 RETURNING ctid AS c)
  SELECT old.c = up.c FROM old, up;
SELECT v, ctid = currtid2('one', ctid) FROM one ORDER BY v;
-- Samples: of all, of none, repeatable
SELECT count(*) FROM p TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM p TABLESAMPLE BERNOULLI (0);
SELECT count(*) BETWEEN 4000 AND 6000 FROM p TABLESAMPLE BERNOULLI (50) REPEATABLE (1);
SELECT count(*) < 10000 FROM p TABLESAMPLE SYSTEM (50) REPEATABLE (3);
SELECT (SELECT sum(id) FROM p TABLESAMPLE BERNOULLI (10) REPEATABLE (7)) = (SELECT sum(id) FROM p TABLESAMPLE BERNOULLI (10) REPEATABLE (7));
-- Parallel
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM p;
SELECT count(*), sum(v) FROM p;
SELECT v % 3 AS g, count(*), max(t) FROM p GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM p a JOIN p b USING (id) WHERE a.v < 50;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(*), sum(v) FROM p WHERE id BETWEEN 100 AND 9000;
SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
SELECT count(*), sum(v) FROM p WHERE id BETWEEN 100 AND 9000;
RESET enable_seqscan; RESET enable_indexscan; RESET enable_indexonlyscan;
SELECT t FROM p WHERE v = 3 ORDER BY id DESC LIMIT 3;
BEGIN;
UPDATE p SET v = 1000 WHERE id <= 10;
SELECT count(*) FROM p WHERE v = 1000;
ROLLBACK;
SELECT count(*) FROM p WHERE v = 1000;
CREATE FUNCTION slow_sum() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT sum(v) FROM p';
SELECT slow_sum();
CREATE INDEX p_v ON p (v);
SELECT count(*) FROM p WHERE v = 17;
RESET ALL;
-- Prepared statements: custom plans, then a generic one, then a changed table
PREPARE q(int) AS SELECT count(*), min(t) FROM p WHERE id < $1;
EXECUTE q(10); EXECUTE q(20); EXECUTE q(30); EXECUTE q(40); EXECUTE q(50); EXECUTE q(60); EXECUTE q(0);
PREPARE ins(int, text) AS INSERT INTO p (id, t) VALUES ($1, $2) RETURNING *;
EXECUTE ins(20001, 'x');
EXECUTE ins(20001, 'x');
ALTER TABLE p ADD COLUMN n int DEFAULT 5;
EXECUTE ins(20002, 'y');
EXECUTE q(10);
PREPARE del(int[]) AS DELETE FROM p WHERE id = ANY ($1) RETURNING id;
EXECUTE del('{20001,20002,20003}');
DEALLOCATE ALL;
-- Statistics
ANALYZE p;
SELECT attname, n_distinct, null_frac FROM pg_stats WHERE tablename = 'p' AND attname <> 't' ORDER BY 1;
SELECT reltuples, relkind FROM pg_class WHERE relname = 'p';
DROP FUNCTION slow_sum; DROP TABLE p, one;
