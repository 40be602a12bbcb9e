-- COPY in and out, in its formats; errors name the line and leave nothing.
CREATE TABLE cp (id int PRIMARY KEY, v text, n numeric, b bool DEFAULT true);
COPY cp FROM stdin;
1	one	1.5	t
2	\N	\N	f
3	tab\there\\	-7	\N
\.
COPY cp (id, v) FROM stdin WITH (FORMAT csv, HEADER, NULL 'nil');
id,v
4,"quoted, with ""quotes"""
5,nil
6,
7,"two
lines"
\.
SELECT * FROM cp ORDER BY id;
COPY cp FROM stdin (DELIMITER '|');
8|eight|8|t
1|one|1|t
\.
COPY cp FROM stdin;
9	nine	x	t
\.
COPY cp FROM stdin;
9	nine
\.
COPY cp FROM stdin WHERE id % 2 = 0;
10	ten	10	t
11	eleven	11	t
12	twelve	12	f
\.
COPY cp TO stdout;
COPY (SELECT id, v FROM cp WHERE id > 3 ORDER BY id DESC) TO stdout WITH (FORMAT csv, HEADER, FORCE_QUOTE (v));
COPY cp (v, id) TO stdout WITH (NULL '<>', DELIMITER ';');
COPY (DELETE FROM cp WHERE id = 12 RETURNING *) TO stdout;
-- Many rows at once, into indexes, in the transaction that made the table
BEGIN;
CREATE TABLE cp2 (id int, v text);
CREATE INDEX ON cp2 (v);
\copy (SELECT i, md5(i::text) FROM generate_series(1, 5000) i) TO PROGRAM 'cat >/dev/null'
INSERT INTO cp2 SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
COPY cp2 FROM PROGRAM 'seq -f "%.0f:from program" 5001 9000' WITH (DELIMITER ':');
COMMIT;
SELECT count(*), count(DISTINCT v), sum(id) FROM cp2;
SELECT count(*) FROM cp2 WHERE v = 'from program';
SELECT id FROM cp2 WHERE v = md5('77');
COPY cp2 FROM PROGRAM 'seq -f "%.0f:x" 1 3000; echo bad' WITH (DELIMITER ':');
SELECT count(*) FROM cp2 WHERE v = 'x';
-- FREEZE in the transaction of a TRUNCATE
BEGIN;
TRUNCATE cp2;
COPY cp2 FROM stdin WITH (FREEZE);
1	frozen
2	frozen
\.
COMMIT;
SELECT * FROM cp2 ORDER BY id;
COPY cp2 FROM stdin WITH (FREEZE);
3	not
\.
SELECT count(*) FROM cp2;
DROP TABLE cp, cp2;
