-- btree indexes of every form, and the plans that use them.
CREATE TABLE t (id int PRIMARY KEY, a int, b text, c numeric, d date);
INSERT INTO t SELECT i, i % 10, 'b' || lpad((i % 100)::text, 3, '0'), CASE WHEN i % 4 > 0 THEN i / 4.0 END, date '2020-01-01' + i % 365 FROM generate_series(1, 2000) i;
CREATE INDEX t_ab ON t (a, b DESC);
CREATE INDEX t_c_first ON t (c NULLS FIRST);
CREATE INDEX t_c_desc ON t (c DESC NULLS LAST);
CREATE INDEX t_expr ON t ((a * 100 + id % 7), lower(b));
CREATE INDEX t_part ON t (d) WHERE a = 3;
CREATE UNIQUE INDEX t_incl ON t (id) INCLUDE (b);
CREATE INDEX t_pattern ON t (b text_pattern_ops);
VACUUM ANALYZE t;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE a = 3 AND b > 'b090' ORDER BY b DESC;
SELECT id, b FROM t WHERE a = 3 AND b > 'b090' AND id < 500 ORDER BY b DESC, id;
SELECT id, b FROM t WHERE a = 3 AND b BETWEEN 'b013' AND 'b043' AND id < 300 ORDER BY b, id;
EXPLAIN (COSTS OFF) SELECT c FROM t ORDER BY c NULLS FIRST LIMIT 5;
SELECT c FROM t ORDER BY c NULLS FIRST OFFSET 498 LIMIT 5;
EXPLAIN (COSTS OFF) SELECT c FROM t ORDER BY c DESC NULLS LAST LIMIT 5;
SELECT c FROM t ORDER BY c DESC NULLS LAST LIMIT 5;
SELECT c FROM t ORDER BY c DESC NULLS LAST OFFSET 1497 LIMIT 5;
SELECT c FROM t ORDER BY c NULLS LAST LIMIT 3;
SELECT count(*) FROM t WHERE c IS NULL;
SELECT count(*) FROM t WHERE c IS NOT NULL AND c < 10;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE a * 100 + id % 7 = 305 AND lower(b) = 'b033';
SELECT id FROM t WHERE a * 100 + id % 7 = 305 AND lower(b) = 'b033' ORDER BY id;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE d = '2020-01-14' AND a = 3;
SELECT id FROM t WHERE d = '2020-01-14' AND a = 3 ORDER BY id;
SELECT count(*) FROM t WHERE b LIKE 'b01%';
-- Arrays, row comparison, backward, both ends
SELECT id FROM t WHERE id IN (5, 1999, 7, 7, 3000, NULL) ORDER BY id;
SELECT id FROM t WHERE id = ANY ('{10,9,8}') ORDER BY id DESC;
SELECT count(*) FROM t WHERE (a, b) > (7, 'b050');
SELECT id FROM t WHERE (id, a) >= (1995, 0) ORDER BY id;
SELECT id FROM t WHERE id > 1990 ORDER BY id DESC LIMIT 3;
SELECT min(id), max(id), min(c), max(c), min(b), max(d) FROM t;
SELECT count(*) FROM t WHERE id > 100 AND id <= 200 AND id <> 150;
SELECT count(*) FROM t WHERE id > 5 AND id < 3;
SELECT count(*) FROM t WHERE id = NULL;
SELECT count(*) FROM t WHERE id >= 10.5;
-- Index-only
SELECT id, b FROM t WHERE id BETWEEN 98 AND 103 ORDER BY id;
EXPLAIN (COSTS OFF) SELECT a, b FROM t WHERE a = 2 ORDER BY a, b DESC LIMIT 3;
SELECT a, b FROM t WHERE a = 2 ORDER BY a, b DESC LIMIT 3;
SELECT DISTINCT a FROM t ORDER BY a;
-- Merge join on two indexes: mark and restore
SET enable_hashjoin = off; SET enable_nestloop = off;
SELECT count(*), sum(x.id) FROM t x JOIN t y ON x.c = y.c AND x.id < 300;
SELECT count(*) FROM (SELECT a FROM t WHERE id < 50 ORDER BY a) x JOIN (SELECT a FROM t ORDER BY a) y USING (a);
RESET enable_hashjoin; RESET enable_nestloop; RESET enable_sort;
-- Bitmaps
DROP INDEX t_part;
SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE a = 3 AND c < 100;
SELECT count(*) FROM t WHERE a = 3 AND c < 100;
SELECT count(*), sum(id) FROM t WHERE a = 3 OR id BETWEEN 1 AND 10 OR c IS NULL;
SELECT count(*) FROM t WHERE b = 'b033' AND (a = 3 OR a = 4);
SET work_mem = '64kB';
SELECT count(*), sum(id) FROM t WHERE id > 3;
RESET work_mem;
RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_seqscan;
-- After changes every index answers as a sequential scan does
UPDATE t SET a = a + 1, b = 'u' || id WHERE id % 3 = 0;
DELETE FROM t WHERE id % 7 = 0;
UPDATE t SET c = NULL WHERE id % 11 = 0;
CREATE TABLE answers (q text, how text, n bigint, s numeric);
DO $$
DECLARE q text; how text;
BEGIN
  FOREACH how IN ARRAY ARRAY['enable_indexscan', 'enable_bitmapscan', 'enable_seqscan'] LOOP
    PERFORM set_config(s, (s = how)::text, false) FROM unnest(ARRAY['enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan', 'enable_seqscan']) s;
    IF how = 'enable_indexscan' THEN SET enable_indexonlyscan = on; END IF;
    FOREACH q IN ARRAY ARRAY['a = 3', 'a BETWEEN 2 AND 5', 'a = 4 AND b > ''u1''', 'c IS NULL', 'c < 70', 'id > 1000', 'd = ''2020-01-14'' AND a = 3',
        'lower(b) = ''u300'' AND a * 100 + id % 7 BETWEEN 0 AND 2000', 'b LIKE ''u1%''', 'id IN (1, 3, 7, 9)'] LOOP
      EXECUTE format('INSERT INTO answers SELECT %L, %L, count(*), sum(id) FROM t WHERE %s', q, how, q);
    END LOOP;
  END LOOP;
END $$;
RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_bitmapscan; RESET enable_seqscan;
SELECT q, min(n) AS n, min(s) AS s, count(DISTINCT (n, s)) AS answers FROM answers GROUP BY q ORDER BY q COLLATE "C";
VACUUM t;
SELECT count(*), sum(id) FROM t WHERE a = 4;
-- Uniqueness
CREATE TABLE u (a int, b int, c int, CONSTRAINT u_ab UNIQUE (a, b), CONSTRAINT u_late UNIQUE (c) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO u VALUES (1, 1, 1), (1, 2, 2), (1, NULL, 3), (1, NULL, 4), (NULL, NULL, NULL), (NULL, NULL, NULL);
INSERT INTO u VALUES (1, 2, 9);
UPDATE u SET b = 1 WHERE b = 2;
UPDATE u SET b = b + 1;
BEGIN;
UPDATE u SET c = c + 1 WHERE c IS NOT NULL;
UPDATE u SET c = 3 WHERE c = 2;
COMMIT;
BEGIN;
INSERT INTO u VALUES (3, 3, 1);
DELETE FROM u WHERE a = 3;
COMMIT;
UPDATE u SET c = c + 1 WHERE c IS NOT NULL;
SELECT * FROM u ORDER BY c, a;
CREATE UNIQUE INDEX u_nulls ON u (b) NULLS NOT DISTINCT;
DELETE FROM u WHERE b IS NULL;
CREATE UNIQUE INDEX u_nulls ON u (b) NULLS NOT DISTINCT;
INSERT INTO u VALUES (5, NULL, NULL);
INSERT INTO u VALUES (6, NULL, NULL);
DELETE FROM u WHERE a = 5;
INSERT INTO u VALUES (6, NULL, NULL);
CREATE UNIQUE INDEX ON u ((a / 1000000));
-- Keys too long, an index of a long key, equal keys over many pages
CREATE TABLE k (v text, w int);
CREATE INDEX ON k (v);
INSERT INTO k SELECT repeat('key', 100) || i % 50, i FROM generate_series(1, 1000) i;
INSERT INTO k SELECT 'same', i FROM generate_series(1, 2000) i;
INSERT INTO k SELECT string_agg(md5(i::text), ''), 0 FROM generate_series(1, 60) i WHERE false;
SET enable_seqscan = off;
SELECT count(*), sum(w) FROM k WHERE v = 'same';
SELECT count(*) FROM k WHERE v LIKE 'key%' AND v > 'key';
SELECT v FROM k ORDER BY v DESC LIMIT 1;
DELETE FROM k WHERE v = 'same' AND w % 2 = 0;
VACUUM k;
INSERT INTO k SELECT 'same', -i FROM generate_series(1, 500) i;
SELECT count(*), sum(w) FROM k WHERE v = 'same';
RESET enable_seqscan;
DROP TABLE t, u, k, answers;

-- a deferred check looks at the row again, with values that lie out of line
CREATE TABLE later (id int, a text, b text);
ALTER TABLE later ALTER a SET STORAGE EXTERNAL;
ALTER TABLE later ADD UNIQUE (a, b) DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO later VALUES (1, repeat('x', 2200), 'k'), (2, repeat('x', 2200), 'k');
DELETE FROM later WHERE id = 1;
COMMIT;
SELECT id, length(a), b FROM later;
\set VERBOSITY sqlstate
BEGIN;
INSERT INTO later VALUES (3, repeat('x', 2200), 'k');
COMMIT;
\set VERBOSITY default

-- an index on few rows says nothing about how many there are
CREATE TABLE many (id int, v int);
INSERT INTO many SELECT i, i FROM generate_series(1, 1000) i;
CREATE INDEX ON many (v) WHERE v = 7;
SELECT reltuples FROM pg_class WHERE relname = 'many';
DROP TABLE later, many;
