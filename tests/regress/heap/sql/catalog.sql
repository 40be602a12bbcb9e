-- Commands around tables, and what psql shows of them.
CREATE SCHEMA cat;
SET search_path = cat, public;
CREATE TABLE shown (id int PRIMARY KEY, v varchar(10) DEFAULT 'x' NOT NULL, n numeric(10,2), CHECK (n > 0));
CREATE INDEX shown_v ON shown (v DESC, lower(v)) INCLUDE (n) WHERE n IS NOT NULL;
COMMENT ON COLUMN shown.v IS 'a comment';
\d shown
\d+ shown_v
\di shown*
SELECT pg_get_indexdef('shown_v'::regclass), pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shown'::regclass ORDER BY 2;
SELECT amname, amtype FROM pg_am WHERE amname = 'btree';
SELECT opcname FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcname LIKE 'int%' ORDER BY 1;
SELECT pg_relation_size('shown'), pg_table_size('shown') > 0, pg_indexes_size('shown');
INSERT INTO shown SELECT i, 'v' || i, i FROM generate_series(1, 100) i;
SELECT pg_relation_size('shown'), pg_indexes_size('shown');
SELECT bool_and(indisvalid), count(*) FROM pg_index WHERE indrelid = 'shown'::regclass;
ALTER TABLE shown ADD COLUMN z int, DROP COLUMN n CASCADE, ALTER v TYPE text, ALTER v SET STATISTICS 50;
\d shown
ALTER TABLE shown RENAME TO renamed;
ALTER TABLE renamed SET (fillfactor = 70);
ALTER INDEX shown_pkey RENAME TO renamed_pkey;
ALTER TABLE renamed SET WITHOUT CLUSTER;
CREATE VIEW vw AS SELECT id, v FROM renamed WHERE id > 3;
DROP TABLE renamed;
CREATE OR REPLACE VIEW vw AS SELECT id, v, 1 AS one FROM renamed;
SELECT definition FROM pg_views WHERE viewname = 'vw';
DROP TABLE renamed CASCADE;
CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
CREATE AGGREGATE total (int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
SELECT total(i), f(3) FROM generate_series(1, 3) i;
CREATE OPERATOR CLASS backwards FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 f(int);
CREATE TABLE again (id int, CONSTRAINT again_id UNIQUE (id));
CREATE TABLE again (id int);
CREATE TABLE IF NOT EXISTS again (id int);
CREATE STATISTICS st (dependencies) ON id, (id % 2) FROM again;
ALTER TABLE again ADD COLUMN id int;
ALTER TABLE nowhere ADD COLUMN id int;
DROP INDEX again_id;
SELECT 1 / 0;
SELEC 1;
SELECT nothing FROM again;
CREATE DATABASE regress_other;
DROP DATABASE regress_other;
EXPLAIN (COSTS OFF) SELECT * FROM again WHERE id = 1;
SHOW transaction_isolation;
DO $$ BEGIN CREATE TABLE in_do (id int PRIMARY KEY); INSERT INTO in_do VALUES (1); EXECUTE 'DROP TABLE in_do'; END $$;
CREATE EXTENSION pg_trgm;
CREATE INDEX trgm ON again USING gin ((id::text) gin_trgm_ops);
DROP EXTENSION pg_trgm CASCADE;
CREATE ACCESS METHOD own TYPE INDEX HANDLER bthandler;
DROP ACCESS METHOD own;
RESET search_path;
DROP SCHEMA cat CASCADE;
