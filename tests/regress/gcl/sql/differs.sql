-- The README's table "What differs from PostgreSQL", as far as one primary shows it.
CREATE TABLE d (id int PRIMARY KEY, v text) USING gcl;
\echo rows live in the pool, large values in a TOAST table that is one of gcl; btree in the catalog
INSERT INTO d SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
SELECT c.relname, amname, relkind, reltoastrelid <> 0 AS has_toast FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid IN ('d'::regclass, 'd_pkey'::regclass) ORDER BY 1;
SELECT amname, relkind FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'd');
SELECT (pg_stat_file(pg_relation_filepath('d'))).size < 16384 AS small_file, pg_relation_size('d') BETWEEN 5000 * 64 AND 1000000 AS pages_counted;
INSERT INTO d SELECT 0, string_agg(md5(i::text), '') FROM generate_series(1, 240) i;
SELECT id, length(v), md5(v) = md5((SELECT string_agg(md5(i::text), '') FROM generate_series(1, 240) i)) AS whole FROM d WHERE id = 0;
INSERT INTO d SELECT -1, repeat('compressed ', 10000);
SELECT length(v), pg_column_size(v) < 8000 FROM d WHERE id = -1;
SELECT pg_table_size('d') - pg_relation_size('d') BETWEEN 8192 AND 200000 AS toast_counted;
INSERT INTO d SELECT -2, string_agg(md5(i::text), '') FROM generate_series(1, 100000) i;
SELECT pg_table_size('d') - pg_relation_size('d') BETWEEN 3200000 AND 4000000 AS toast_counted, pg_total_relation_size('d') - pg_table_size('d') - pg_indexes_size('d') AS rest;
\echo objects without gcl
SET default_table_access_method = gcl;
CREATE TEMP TABLE f (id int);
CREATE TEMP TABLE f2 AS SELECT 1 AS id;
CREATE TABLE h (id int) USING heap;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname IN ('f', 'f2', 'h') ORDER BY 1;
DROP TABLE f, f2, h;
\echo settings
SELECT name, setting FROM pg_settings WHERE name IN ('old_snapshot_threshold', 'max_slot_wal_keep_size') OR name = 'wal_level' AND setting <> 'minimal' ORDER BY 1;
SET synchronous_commit = off;
SELECT pg_current_wal_insert_lsn() AS before \gset
UPDATE d SET v = 'flushed' WHERE id = 1;
SELECT pg_current_wal_flush_lsn() > :'before' AS flushed;
RESET synchronous_commit;
DROP TABLE d;
