-- Values too large for their row: compressed, or out of line; sizes and answers are heap's.
CREATE FUNCTION noise(int, int) RETURNS text IMMUTABLE LANGUAGE sql AS
  $$ SELECT string_agg(md5(($2 * 100000 + i)::text), '') FROM generate_series(1, $1) i $$;
CREATE TABLE v (id int PRIMARY KEY, ext text, main text, extended text, raw bytea, n int DEFAULT 0);
ALTER TABLE v ALTER ext SET STORAGE EXTERNAL, ALTER main SET STORAGE MAIN;
SELECT reltoastrelid <> 0 AS has_toast FROM pg_class WHERE relname = 'v';
-- Each column at each size, compressible and not
INSERT INTO v (id, ext, main, extended)
  SELECT i, repeat('abc', 50 << i), repeat('def', 50 << i), repeat('ghi', 50 << i) FROM generate_series(1, 12) i;
INSERT INTO v (id, ext, extended, raw)
  SELECT 20 + i, noise(30 << i, i), noise(20 << i, i + 50), decode(noise(10 << i, i + 90), 'hex') FROM generate_series(1, 8) i;
INSERT INTO v (id, main) SELECT 40 + i, noise(60 * i, i) FROM generate_series(1, 4) i;
INSERT INTO v (id, main, ext) VALUES (50, noise(300, 7), noise(1, 8));
SELECT id, length(ext), md5(ext), length(main), md5(main), length(extended), md5(extended), md5(raw) FROM v ORDER BY id;
SELECT id, pg_column_size(ext), pg_column_size(main), pg_column_size(extended), pg_column_size(raw), octet_length(raw) FROM v ORDER BY id;
SELECT DISTINCT pg_column_compression(extended) FROM v ORDER BY 1;
-- Slices
SELECT id, substr(ext, 1986, 6), substr(ext, 3977, 2), md5(substr(ext, 1000, 5000)), length(substr(ext, 15000)) FROM v WHERE id > 5 AND ext IS NOT NULL ORDER BY id;
SELECT id, substr(extended, 2000, 9), md5(substr(extended, 100, 3000)), left(extended, 5), right(extended, 5) FROM v WHERE id > 5 AND extended IS NOT NULL ORDER BY id;
SELECT id, substring(raw FROM 5000 FOR 4), get_byte(raw, 4999) FROM v WHERE octet_length(raw) > 5010 ORDER BY id;
-- Updates: of the value, of another column, in place of itself, to null and back
UPDATE v SET n = n + 1;
SELECT sum(n), md5(string_agg(md5(concat(ext, main, extended)), '' ORDER BY id)) FROM v;
UPDATE v SET ext = ext || 'tail', extended = reverse(extended) WHERE id % 2 = 0;
UPDATE v SET ext = ext, extended = extended || '' WHERE id % 2 = 1;
UPDATE v SET raw = NULL, main = noise(200, id) WHERE id > 22;
SELECT id, length(ext), md5(ext), md5(main), md5(extended), raw IS NULL FROM v ORDER BY id;
UPDATE v SET raw = decode(noise(400, id), 'hex') WHERE id > 25;
SELECT id, length(raw), md5(raw) FROM v WHERE id > 25 ORDER BY id;
UPDATE v SET ext = 'short', main = 'short', extended = 'short', raw = 'short' WHERE id = 24;
SELECT ext, main, extended, raw, n FROM v WHERE id = 24;
DELETE FROM v WHERE id % 3 = 0;
SELECT count(*), sum(length(ext)), sum(length(main)), sum(length(extended)), sum(length(raw)) FROM v;
-- What was replaced, deleted or lost is no more; nothing else is missing
SELECT format('SELECT count(DISTINCT chunk_id) FROM %s', reltoastrelid::regclass) AS values_stored FROM pg_class WHERE relname = 'v' \gset
:values_stored;
BEGIN;
INSERT INTO v (id, ext) VALUES (100, noise(300, 1));
SAVEPOINT s;
UPDATE v SET ext = noise(500, id) WHERE id < 30;
DELETE FROM v WHERE id > 20;
SELECT count(*), sum(length(ext)) FROM v;
ROLLBACK TO s;
SELECT count(*), sum(length(ext)), md5(string_agg(md5(ext), '' ORDER BY id)) FROM v;
COMMIT;
BEGIN;
UPDATE v SET ext = 'gone';
ROLLBACK;
SELECT count(*), sum(length(ext)), md5(string_agg(md5(ext), '' ORDER BY id)) FROM v;
:values_stored;
INSERT INTO v (id, ext) VALUES (100, noise(300, 2)) ON CONFLICT DO NOTHING;
INSERT INTO v (id, ext) VALUES (100, noise(300, 2)) ON CONFLICT (id) DO UPDATE SET ext = excluded.ext;
INSERT INTO v (id, ext) VALUES (100, noise(300, 2));
SELECT md5(ext) = md5(noise(300, 2)) FROM v WHERE id = 100;
:values_stored;
DELETE FROM v WHERE id = 100 RETURNING length(ext);
VACUUM v;
:values_stored;
-- Cursors and snapshots see what they saw
BEGIN;
DECLARE c CURSOR FOR SELECT id, length(ext), md5(ext) FROM v WHERE id > 20 ORDER BY id;
FETCH 2 FROM c;
UPDATE v SET ext = 'new' WHERE id > 20;
DELETE FROM v WHERE id = 28;
FETCH ALL FROM c;
ROLLBACK;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id, ext FROM v WHERE id > 20 ORDER BY id;
UPDATE v SET ext = 'new' WHERE id = 22;
COMMIT;
CREATE TABLE held (id int, ext text);
FETCH 1 FROM h \gset held_
SELECT :held_id, length(:'held_ext'), md5(:'held_ext');
CLOSE h;
-- Rows as values, arrays, triggers, PL/pgSQL, sorting, hashing, joins
SELECT id, length((v).ext), length((w.whole).ext) FROM (SELECT id, v, v AS whole FROM v) w WHERE id BETWEEN 5 AND 11 ORDER BY id;
CREATE TABLE wrapped (id int, one v, many text[]);
INSERT INTO wrapped SELECT id, v, ARRAY[ext, extended] FROM v;
DELETE FROM v WHERE id = 11;
SELECT id, md5((one).ext), md5(many[1]), md5(many[2]) FROM wrapped ORDER BY id;
SELECT count(DISTINCT ext), md5(min(ext)), md5(max(ext)) FROM v;
SELECT a.id, b.id FROM v a JOIN v b ON a.ext = b.ext AND a.id <> b.id;
CREATE TABLE seen (op text, old_length int, new_length int);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO seen VALUES (TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN length(OLD.ext) END, CASE WHEN TG_OP <> 'DELETE' THEN length(NEW.ext) END);
    RETURN NULL;
  END $$;
CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON v FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO v (id, ext) VALUES (200, noise(200, 200));
UPDATE v SET ext = ext || ext WHERE id = 200;
UPDATE v SET n = 5 WHERE id = 200;
DELETE FROM v WHERE id = 200;
SELECT * FROM seen;
DROP TRIGGER see ON v;
DO $$
DECLARE r v; t text;
BEGIN
  SELECT * INTO r FROM v WHERE id = 10;
  DELETE FROM v WHERE id = 10;
  COMMIT;
  t := r.ext;
  RAISE NOTICE '% % %', r.id, length(t), md5(r.extended);
END $$;
SELECT id, length(ext) FROM v WHERE id = 8 FOR UPDATE;
-- Compression of the column's method
CREATE TABLE methods (id int, p text COMPRESSION pglz, l text COMPRESSION lz4);
INSERT INTO methods VALUES (1, repeat('pglz', 5000), repeat('lz4', 5000)), (2, repeat(noise(40, 1), 50), repeat(noise(40, 2), 50));
SELECT id, pg_column_compression(p), pg_column_compression(l), pg_column_size(p), md5(p), pg_column_size(l), md5(l), md5(substr(l, 20000, 300)) FROM methods ORDER BY id;
ALTER TABLE methods ALTER p SET COMPRESSION lz4;
UPDATE methods SET p = p || 'x' WHERE id = 2;
SELECT id, pg_column_compression(p), pg_column_compression(l), length(p) FROM methods ORDER BY id;
-- STORAGE PLAIN must fit
CREATE TABLE plain (id int, p text);
ALTER TABLE plain ALTER p SET STORAGE PLAIN;
INSERT INTO plain VALUES (1, repeat('p', 8000));
SELECT length(p), pg_column_size(p) FROM plain;
\set VERBOSITY sqlstate
INSERT INTO plain VALUES (1, repeat('p', 9000));
\set VERBOSITY default
-- Indexes on compressed values, and on what is computed from large ones
CREATE TABLE keyed (id int, k text);
CREATE UNIQUE INDEX keyed_k ON keyed (k);
CREATE INDEX keyed_md5 ON keyed (md5(k));
INSERT INTO keyed SELECT i, repeat('key' || i, 2000) FROM generate_series(1, 20) i;
SET enable_seqscan = off;
SELECT id FROM keyed WHERE k = repeat('key7', 2000);
SELECT id FROM keyed WHERE md5(k) = md5(repeat('key8', 2000));
INSERT INTO keyed VALUES (21, repeat('key7', 2000)) ON CONFLICT DO NOTHING;
UPDATE keyed SET k = repeat('key50', 2000) WHERE id = 5;
SELECT id FROM keyed WHERE k = repeat('key50', 2000);
SELECT id FROM keyed WHERE k = repeat('key5', 2000);
RESET enable_seqscan;
-- The table's life
CREATE TABLE narrow (id int PRIMARY KEY);
INSERT INTO narrow VALUES (1), (2);
SELECT reltoastrelid <> 0 AS has_toast FROM pg_class WHERE relname = 'narrow';
ALTER TABLE narrow ADD COLUMN t text;
SELECT reltoastrelid <> 0 AS has_toast FROM pg_class WHERE relname = 'narrow';
UPDATE narrow SET t = noise(1000, id);
SELECT id, length(t), md5(t) FROM narrow ORDER BY id;
ALTER TABLE narrow ADD COLUMN u text, ADD COLUMN r double precision DEFAULT random();
SELECT id, length(t), md5(t), u, r BETWEEN 0 AND 1 FROM narrow ORDER BY id;
ALTER TABLE narrow ALTER id TYPE bigint, ALTER t TYPE varchar;
SELECT id, length(t), md5(t) FROM narrow ORDER BY id;
ALTER TABLE narrow DROP COLUMN t;
UPDATE narrow SET u = noise(300, 5);
SELECT id, md5(u) FROM narrow ORDER BY id;
SELECT format('SELECT count(DISTINCT chunk_id) FROM %s', reltoastrelid::regclass) AS values_stored FROM pg_class WHERE relname = 'narrow' \gset
:values_stored;
TRUNCATE narrow;
:values_stored;
INSERT INTO narrow (id, u) VALUES (1, noise(300, 1));
:values_stored;
BEGIN;
TRUNCATE narrow;
INSERT INTO narrow (id, u) VALUES (3, noise(400, 3));
SELECT id, md5(u) FROM narrow;
ROLLBACK;
SELECT id, md5(u) FROM narrow;
BEGIN;
CREATE TABLE within (id int, t text);
INSERT INTO within VALUES (1, noise(500, 1));
TRUNCATE within;
INSERT INTO within VALUES (2, noise(500, 2));
COMMIT;
SELECT id, md5(t) FROM within;
CREATE TABLE copied AS SELECT id, ext, extended, raw FROM v WHERE id > 20;
SELECT id, length(ext), md5(ext), md5(extended), md5(raw) FROM copied ORDER BY id;
CREATE TABLE alike (LIKE v INCLUDING ALL);
INSERT INTO alike SELECT * FROM v;
SELECT md5(string_agg(md5(concat(ext, main, extended)), '' ORDER BY id)) = (SELECT md5(string_agg(md5(concat(ext, main, extended)), '' ORDER BY id)) FROM v) FROM alike;
CREATE TEMP TABLE t_heap AS SELECT * FROM alike;
DROP TABLE alike;
SELECT count(*), sum(length(ext)) FROM t_heap;
\copy copied TO PROGRAM 'cat >/dev/null'
CREATE TABLE loaded (id int, ext text);
COPY loaded FROM PROGRAM 'seq 1 60 | awk ''{ printf "%d:", $1; for (i = 1; i <= $1 * 20; ++i) printf "%d,", i * i * $1; print "" }''' WITH (DELIMITER ':');
SELECT count(*), sum(length(ext)), bool_and(ext = (SELECT string_agg((i * i * id)::text || ',', '' ORDER BY i) FROM generate_series(1, id * 20) i)) FROM loaded;
ANALYZE loaded;
SELECT null_frac, avg_width > 0, n_distinct FROM pg_stats WHERE tablename = 'loaded' AND attname = 'ext';
ALTER TABLE loaded SET (toast_tuple_target = 400, toast.autovacuum_enabled = off);
UPDATE loaded SET ext = left(ext, 639) WHERE id < 10;
SELECT id, pg_column_size(ext), pg_column_size(loaded.*) FROM loaded WHERE id < 10 ORDER BY id;
SELECT reloptions FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'loaded');
DROP TABLE v, held, wrapped, seen, methods, plain, keyed, narrow, within, copied, loaded;
DROP TABLE t_heap;
DROP FUNCTION noise, see;
