-- What gcl tables cannot do yet is refused, with SQLSTATE and hint: the README's table "Not yet", row by row.
SET default_table_access_method = gcl;
\set VERBOSITY default
CREATE TABLE r (id int PRIMARY KEY, v text, n int);
INSERT INTO r VALUES (1, 'one', 1), (2, 'two', 2);
CREATE TABLE local (id int PRIMARY KEY) USING heap;
INSERT INTO local VALUES (1);

\echo SERIALIZABLE, with local tables
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM r, local;
\echo :SQLSTATE
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE r SET n = 5 WHERE id = 9;
INSERT INTO local VALUES (2);
\echo :SQLSTATE
ROLLBACK;

\echo EXPLAIN ANALYZE of what makes a table
EXPLAIN (ANALYZE, COSTS off) CREATE TABLE made AS SELECT 1 AS a;
\echo :SQLSTATE
EXPLAIN (ANALYZE off, COSTS off) CREATE TABLE made AS SELECT 1 AS a;
EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) CREATE TABLE made USING heap AS SELECT 1 AS a;
DROP TABLE made;

\echo foreign keys
CREATE TABLE f (id int REFERENCES r) USING heap;
\echo :SQLSTATE
CREATE TABLE f (id int REFERENCES local);
\echo :SQLSTATE
ALTER TABLE r ADD FOREIGN KEY (n) REFERENCES local (id);
\echo :SQLSTATE
ALTER TABLE local ADD FOREIGN KEY (id) REFERENCES r (id);
\echo :SQLSTATE

\echo sequences
CREATE SEQUENCE everybodys;
CREATE UNLOGGED SEQUENCE unlogged;
CREATE TABLE locals (id serial) USING heap;
CREATE TABLE f (id int DEFAULT nextval('unlogged'));
\echo :SQLSTATE
ALTER TABLE r ADD COLUMN s int DEFAULT nextval('locals_id_seq');
\echo :SQLSTATE
ALTER SEQUENCE everybodys SET UNLOGGED;
\echo :SQLSTATE
DROP SEQUENCE everybodys, unlogged;
\echo :SQLSTATE
DROP TABLE locals; DROP SEQUENCE unlogged; DROP SEQUENCE everybodys;

\echo large keys, and large values of a column that must not leave its row
CREATE TABLE f (id int, v text);
ALTER TABLE f ALTER v SET STORAGE PLAIN;
INSERT INTO f VALUES (1, repeat('x', 9000));
\echo :SQLSTATE
DROP TABLE f;
CREATE INDEX r_v ON r (v);
\set VERBOSITY terse
INSERT INTO r SELECT 3, string_agg(md5(i::text), ''), 0 FROM generate_series(1, 100) i;
\set VERBOSITY default
\echo :SQLSTATE
DROP INDEX r_v;

\echo index types
CREATE INDEX ON r USING hash (id);
\echo :SQLSTATE
CREATE INDEX ON r USING brin (id);
\echo :SQLSTATE
CREATE INDEX ON r USING gin (to_tsvector('simple', v));
\echo :SQLSTATE
CREATE INDEX CONCURRENTLY ON r (n);
\echo :SQLSTATE
REINDEX TABLE r;
\echo :SQLSTATE
REINDEX INDEX r_pkey;
\echo :SQLSTATE
CREATE TABLE f (id int, EXCLUDE USING btree (id WITH =));
\echo :SQLSTATE

\echo storage
CREATE UNLOGGED TABLE f (id int);
\echo :SQLSTATE
CREATE TEMP TABLE f (id int) USING gcl;
\echo :SQLSTATE
CLUSTER r USING r_pkey;
\echo :SQLSTATE
VACUUM FULL r;
\echo :SQLSTATE
ALTER TABLE r SET TABLESPACE pg_default;
\echo :SQLSTATE
ALTER TABLE r SET UNLOGGED;
\echo :SQLSTATE
ALTER TABLE r SET ACCESS METHOD heap;
\echo :SQLSTATE
ALTER TABLE local SET ACCESS METHOD gcl;
\echo :SQLSTATE

\echo transactions
BEGIN;
UPDATE r SET n = 9;
PREPARE TRANSACTION 'x';
\echo :SQLSTATE
ROLLBACK;

\echo DDL
PREPARE one AS SELECT 1 AS id;
CREATE TABLE f AS EXECUTE one;
\echo :SQLSTATE
CREATE MATERIALIZED VIEW f AS SELECT 1 AS id;
\echo :SQLSTATE
CREATE TABLE f (id int) PARTITION BY RANGE (id);
CREATE TABLE f1 PARTITION OF f FOR VALUES FROM (1) TO (2) USING heap;
\echo :SQLSTATE
DROP TABLE f;
CREATE TABLE f () INHERITS (r) USING heap;
\echo :SQLSTATE
DROP TABLE r, local;
\echo :SQLSTATE

\echo and nothing of it happened
\d r
SELECT * FROM r ORDER BY id;
DROP TABLE r;
DROP TABLE local;
