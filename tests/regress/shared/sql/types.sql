-- Values of every kind of built-in type go in and come out, NULLs among them.
CREATE TABLE kinds (
  id int PRIMARY KEY, b bool, i2 int2, i8 int8, f4 float4, f8 float8, n numeric(20,5), c "char", ch char(5), vc varchar(8),
  t text, bt bytea, u uuid, d date, ti time, tz timestamptz, ts timestamp, iv interval, ip inet, mac macaddr, bits bit varying,
  js json, jb jsonb, arr int[], tarr text[], rng int4range, mrng int4multirange, p point, bx box, o oid, tsv tsvector, x name);
INSERT INTO kinds VALUES
  (1, true, -32768, 9223372036854775807, 1.5, 2.25, 123456789.12345, 'a', 'ab', 'abcdefgh', 'text', '\xdeadbeef',
   'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-02-29', '12:34:56.789', '2024-02-29 12:00+02', '1999-12-31 23:59:59',
   '1 year 2 mons 3 days 04:05:06', '192.168.0.1/24', '08:00:2b:01:02:03', B'1011', '{"a": [1, 2]}', '{"b": 2, "a": 1}',
   '{1,2,NULL}', '{"x y",NULL,""}', '[1,10)', '{[1,3),[5,7)}', '(1,2)', '((0,0),(1,1))', 42, 'a fat cat'::tsvector, 'name'),
  (2, false, 0, -9223372036854775808, 'NaN', '-Infinity', 'NaN', '', '', '', '', '', NULL, '4713-01-01 BC', '24:00', 'infinity',
   '-infinity', '-1 day', '::1', NULL, B'', 'null', 'null', '{}', '{}', 'empty', '{}', NULL, NULL, 0, '', '');
INSERT INTO kinds (id) VALUES (3);
SET timezone = 'UTC';
\x
SELECT * FROM kinds ORDER BY id;
\x
SELECT id, ch || '|', length(ch), vc = '', t IS NULL, arr[3] IS NULL, array_length(arr, 1) FROM kinds ORDER BY id;
SELECT count(*), count(b), count(arr), count(jb), sum(i2), max(ts), min(n) FROM kinds;
UPDATE kinds SET t = NULL, arr = arr || 7, jb = jb || '{"c": 3}', vc = DEFAULT WHERE id = 1 RETURNING t, arr, jb, vc;
UPDATE kinds SET arr[5] = 9, tarr[2] = 'set' WHERE id = 1 RETURNING arr, tarr;
SELECT id FROM kinds WHERE jb @> '{"a": 1}' OR rng @> 5 ORDER BY id;
SELECT kinds FROM (SELECT id, b, t FROM kinds) kinds ORDER BY id;
SELECT tableoid::regclass, (k).id, k.x FROM kinds k ORDER BY 2;
INSERT INTO kinds (id, vc) VALUES (4, 'nine chars');
INSERT INTO kinds (id, i2) VALUES (4, 40000);
INSERT INTO kinds (id, t) VALUES (NULL, 'x');

-- Rows that differ only in where their NULLs are
CREATE TABLE holes (a int, b text, c int, d text, e int8);
INSERT INTO holes SELECT CASE WHEN i & 1 > 0 THEN i END, CASE WHEN i & 2 > 0 THEN 'b' || i END, CASE WHEN i & 4 > 0 THEN i END,
  CASE WHEN i & 8 > 0 THEN 'd' || i END, CASE WHEN i & 16 > 0 THEN i END FROM generate_series(0, 31) i;
SELECT * FROM holes ORDER BY a NULLS FIRST, b NULLS FIRST, c NULLS FIRST, d NULLS FIRST, e NULLS FIRST;
SELECT count(*) FILTER (WHERE holes IS NULL), count(*) FILTER (WHERE holes IS NOT NULL) FROM holes;

-- Defaults, checks, generated columns
CREATE TABLE rules (
  id int PRIMARY KEY DEFAULT 7, v text NOT NULL DEFAULT 'none', n numeric DEFAULT 1.5 + 2, at date DEFAULT '2001-02-03',
  twice int GENERATED ALWAYS AS (id * 2) STORED, CONSTRAINT small CHECK (id < 100), CHECK (v <> 'bad'));
INSERT INTO rules DEFAULT VALUES RETURNING *;
INSERT INTO rules (id, v) VALUES (8, DEFAULT), (9, 'nine') RETURNING *;
INSERT INTO rules (id) VALUES (100);
INSERT INTO rules (id, v) VALUES (10, 'bad');
INSERT INTO rules (id, v) VALUES (10, NULL);
INSERT INTO rules (id, twice) VALUES (11, 1);
UPDATE rules SET id = id + 10 RETURNING *;
UPDATE rules SET id = 1000;
UPDATE rules SET v = NULL WHERE id = 17;
DELETE FROM rules WHERE id > 17 RETURNING id, twice;
SELECT * FROM rules;

-- A table without columns, and one with many
CREATE TABLE nothing ();
INSERT INTO nothing DEFAULT VALUES;
INSERT INTO nothing DEFAULT VALUES;
SELECT count(*) FROM nothing;
SELECT * FROM nothing;
SELECT format('CREATE TABLE wide (%s)', string_agg(format('c%s int', i), ', ' ORDER BY i)) FROM generate_series(1, 300) i \gexec
INSERT INTO wide (c1, c150, c300) VALUES (1, 150, 300);
INSERT INTO wide (c299) VALUES (299);
UPDATE wide SET c2 = 2 WHERE c1 = 1;
SELECT c1, c2, c150, c299, c300 FROM wide ORDER BY c1;
-- Rows almost as large as a page
CREATE TABLE big (id int PRIMARY KEY, v text);
ALTER TABLE big ALTER v SET STATISTICS 0;
INSERT INTO big SELECT i, repeat(chr(64 + i), 1900) FROM generate_series(1, 20) i;
UPDATE big SET v = v || 'x' WHERE id % 3 = 0;
SELECT id, length(v), md5(v) FROM big ORDER BY id;
DROP TABLE kinds, holes, rules, nothing, wide, big;
