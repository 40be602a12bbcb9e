-- Joins, aggregates, windows, sets: what the executor does over scans of these tables.
CREATE TABLE emp (id int PRIMARY KEY, dept int, boss int, name text, pay numeric);
CREATE TABLE dept (id int PRIMARY KEY, name text);
INSERT INTO dept VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'empty');
INSERT INTO emp SELECT i, CASE WHEN i % 7 > 0 THEN i % 3 + 1 END, NULLIF(i / 2, 0), 'e' || i, (i * 37) % 100 FROM generate_series(1, 15) i;
ANALYZE emp, dept;
\set q 'SELECT e.id, e.name, d.name FROM emp e JOIN dept d ON d.id = e.dept ORDER BY 1'
SET enable_hashjoin = off; SET enable_mergejoin = off;
:q;
SET enable_nestloop = off; SET enable_mergejoin = on;
:q;
SET enable_mergejoin = off; SET enable_hashjoin = on;
:q;
RESET enable_nestloop; RESET enable_mergejoin;
SELECT e.id, d.name FROM emp e LEFT JOIN dept d ON d.id = e.dept AND d.id > 1 WHERE e.id < 8 ORDER BY 1;
SELECT e.id, d.name FROM emp e RIGHT JOIN dept d ON d.id = e.dept ORDER BY 2, 1;
SELECT e.id, d.name FROM emp e FULL JOIN dept d ON d.id = e.dept ORDER BY 2, 1;
SELECT count(*) FROM emp CROSS JOIN dept;
SELECT count(*) FROM emp NATURAL JOIN dept;
SELECT name FROM dept d WHERE EXISTS (SELECT FROM emp WHERE dept = d.id) ORDER BY 1;
SELECT name FROM dept d WHERE NOT EXISTS (SELECT FROM emp WHERE dept = d.id) ORDER BY 1;
SELECT name FROM dept WHERE id NOT IN (SELECT dept FROM emp) ORDER BY 1;
SELECT name FROM dept WHERE id NOT IN (SELECT dept FROM emp WHERE dept IS NOT NULL) ORDER BY 1;
SELECT d.name, top.* FROM dept d LEFT JOIN LATERAL (SELECT name, pay FROM emp WHERE dept = d.id ORDER BY pay DESC LIMIT 2) top ON true ORDER BY d.id, pay DESC;
SELECT a.id, b.id FROM emp a JOIN emp b ON a.pay < b.pay AND a.dept = b.dept WHERE a.id < 4 ORDER BY 1, 2;
SELECT id, (SELECT name FROM emp b WHERE b.id = a.boss) AS boss FROM emp a ORDER BY id;
SELECT id FROM emp WHERE pay > ALL (SELECT pay FROM emp WHERE dept = 1) ORDER BY 1;

-- Aggregates
SELECT dept, count(*), sum(pay), round(avg(pay), 2), min(name), array_agg(id ORDER BY id DESC) FROM emp GROUP BY dept ORDER BY dept;
SELECT dept, count(DISTINCT pay) FILTER (WHERE pay > 20) FROM emp GROUP BY dept HAVING count(*) > 2 ORDER BY 1;
SELECT dept, id % 2 AS odd, sum(pay), grouping(dept, id % 2) FROM emp GROUP BY GROUPING SETS ((dept, id % 2), (dept), ()) ORDER BY 1, 2, 4;
SELECT dept, id % 2, count(*) FROM emp GROUP BY CUBE (dept, id % 2) ORDER BY 1, 2, 3;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY pay), mode() WITHIN GROUP (ORDER BY dept), string_agg(name, ',' ORDER BY id) FROM emp;
SELECT count(*), sum(pay) FROM emp WHERE false;

-- Windows
SELECT id, dept, pay, rank() OVER w, dense_rank() OVER w, row_number() OVER (PARTITION BY dept ORDER BY pay, id), lag(pay) OVER w, sum(pay) OVER w
  FROM emp WINDOW w AS (PARTITION BY dept ORDER BY pay) ORDER BY dept, pay, id;
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), first_value(name) OVER (ORDER BY id DESC), ntile(4) OVER (ORDER BY id),
  count(*) OVER (ORDER BY pay RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) FROM emp ORDER BY id;

-- Sets, order, limit
SELECT id FROM emp UNION SELECT id FROM dept EXCEPT SELECT 15 INTERSECT SELECT id FROM emp ORDER BY 1;
SELECT dept FROM emp UNION ALL SELECT id FROM dept ORDER BY 1 NULLS FIRST LIMIT 5 OFFSET 1;
SELECT DISTINCT ON (dept) dept, id FROM emp ORDER BY dept NULLS FIRST, pay DESC, id;
SELECT pay FROM emp ORDER BY pay DESC FETCH FIRST 3 ROWS WITH TIES;
WITH RECURSIVE chain AS (SELECT id, boss, 0 AS depth FROM emp WHERE boss IS NULL UNION ALL
  SELECT e.id, e.boss, depth + 1 FROM emp e JOIN chain c ON e.boss = c.id) SELECT depth, count(*) FROM chain GROUP BY 1 ORDER BY 1;
WITH m AS MATERIALIZED (SELECT * FROM emp WHERE pay > 50) SELECT count(*), (SELECT max(pay) FROM m) FROM m;
SELECT * FROM (VALUES (1), (2)) v(x) JOIN emp ON emp.id = v.x ORDER BY 1;
SELECT e.* FROM ROWS FROM (generate_series(1, 2)) g(i) JOIN emp e ON e.id = g.i ORDER BY id;
-- Larger than work_mem
SET work_mem = '64kB';
CREATE TABLE many (id int, k int, v text);
INSERT INTO many SELECT i, (i * 7919) % 10007, md5(i::text) FROM generate_series(1, 20000) i;
SELECT count(*), sum(id), min(k), max(k), count(DISTINCT k) FROM many;
SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM many ORDER BY v) s;
SELECT count(*) FROM many a JOIN many b ON a.k = b.k AND a.v = b.v;
SELECT sum(c) FROM (SELECT k, count(*) c FROM many GROUP BY k HAVING count(*) > 1) s;
RESET work_mem;
DROP TABLE emp, dept, many;
