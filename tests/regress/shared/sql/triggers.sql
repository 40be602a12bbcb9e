-- Triggers: what OLD, NEW and transition tables show; rows that a trigger or a function changes under the running command.
CREATE TABLE t (id int PRIMARY KEY, g int, v text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% % % %: % -> %, there: %', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'INSERT' THEN OLD END,
    CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW END, (SELECT string_agg(id || ':' || v, ' ' ORDER BY id) FROM t);
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  IF TG_WHEN = 'BEFORE' AND TG_LEVEL = 'ROW' THEN
    IF NEW.id < 0 THEN RETURN NULL; END IF;
    NEW.v := NEW.v || '*';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER b AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER c BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON t FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER d AFTER UPDATE OF g ON t FOR EACH ROW WHEN (OLD.g IS DISTINCT FROM NEW.g) EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER e AFTER INSERT OR UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO t VALUES (1, 1, 'one'), (-1, 1, 'dropped'), (2, 1, 'two') RETURNING *;
BEGIN;
UPDATE t SET v = 'first' WHERE id = 1 RETURNING *;
UPDATE t SET v = 'second', g = 2 WHERE id = 1 RETURNING *;
SAVEPOINT s;
UPDATE t SET v = 'undone' WHERE id = 1;
DELETE FROM t WHERE id = 2;
ROLLBACK TO s;
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 3, 'again');
COMMIT;
INSERT INTO t VALUES (2, 5, 'x'), (3, 5, 'three') ON CONFLICT (id) DO UPDATE SET v = excluded.v || '/' || t.v RETURNING *;
INSERT INTO t VALUES (2, 5, 'x') ON CONFLICT DO NOTHING RETURNING *;
MERGE INTO t USING (VALUES (3, 'm'), (4, 'n')) s(id, v) ON s.id = t.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.v);
WITH up AS (UPDATE t SET g = 9 WHERE id = 2 RETURNING *), del AS (DELETE FROM t WHERE id = 4 RETURNING *) SELECT * FROM up UNION ALL SELECT * FROM del ORDER BY 1;
BEGIN;
SET CONSTRAINTS e IMMEDIATE;
UPDATE t SET id = id + 100 WHERE id = 3;
COMMIT;
COPY t FROM stdin;
7	7	copied
8	8	copied too
\.
SET session_replication_role = replica;
DELETE FROM t WHERE id > 6;
RESET session_replication_role;
TRUNCATE t;
DROP TABLE t;

-- Transition tables, with all that one statement does
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE FUNCTION totals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN RAISE NOTICE '% %: old %', TG_NAME, TG_OP, (SELECT string_agg(o::text, ' ' ORDER BY id) FROM o); END IF;
  IF TG_OP <> 'DELETE' THEN RAISE NOTICE '% %: new %', TG_NAME, TG_OP, (SELECT string_agg(n::text, ' ' ORDER BY id) FROM n); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER i AFTER INSERT ON t REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION totals();
CREATE TRIGGER u AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION totals();
CREATE TRIGGER d AFTER DELETE ON t REFERENCING OLD TABLE AS o FOR EACH STATEMENT EXECUTE FUNCTION totals();
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
UPDATE t SET v = upper(v) WHERE id < 3;
UPDATE t SET id = id + 10;
INSERT INTO t VALUES (11, 'x'), (14, 'd') ON CONFLICT (id) DO UPDATE SET v = t.v || excluded.v;
MERGE INTO t USING generate_series(13, 15) i ON id = i WHEN MATCHED AND i = 13 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (i, 'new');
WITH x AS (INSERT INTO t VALUES (20, 'cte') RETURNING *), y AS (UPDATE t SET v = 'y' WHERE id = 11) DELETE FROM t WHERE id = 12;
COPY t FROM stdin;
30	copied
31	\N
\.
DELETE FROM t;
DROP TABLE t;

-- A row changed by a trigger or a function of the very command that is about to change it
CREATE TABLE s (id int PRIMARY KEY, v int);
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  CASE TG_ARGV[0]
    WHEN 'update' THEN UPDATE s SET v = v + 100 WHERE id = OLD.id;
    WHEN 'delete' THEN DELETE FROM s WHERE id = OLD.id;
    WHEN 'next' THEN UPDATE s SET v = v + 100 WHERE id = OLD.id + 1;
    WHEN 'key' THEN UPDATE s SET id = id + 1000 WHERE id = OLD.id;
    ELSE PERFORM 1;
  END CASE;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $$;
INSERT INTO s SELECT i, i FROM generate_series(1, 4) i;
\set try 'SAVEPOINT x; UPDATE s SET v = v + 1 WHERE id = 1 RETURNING *; ROLLBACK TO x; DELETE FROM s WHERE id = 1 RETURNING *; ROLLBACK TO x; UPDATE s SET v = v + 1; SELECT * FROM s ORDER BY id; ROLLBACK TO x; DELETE FROM s; SELECT * FROM s ORDER BY id; ROLLBACK TO x; MERGE INTO s USING (VALUES (1), (2)) n(i) ON id = i WHEN MATCHED AND i = 1 THEN UPDATE SET v = -v WHEN MATCHED THEN DELETE; SELECT * FROM s ORDER BY id; ROLLBACK TO x; INSERT INTO s VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET v = s.v + excluded.v RETURNING *; SELECT * FROM s ORDER BY id; ROLLBACK;'
CREATE TRIGGER m BEFORE UPDATE OR DELETE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle('update');
BEGIN; :try
DROP TRIGGER m ON s;
CREATE TRIGGER m BEFORE UPDATE OR DELETE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle('delete');
BEGIN; :try
DROP TRIGGER m ON s;
CREATE TRIGGER m BEFORE UPDATE OR DELETE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle('next');
BEGIN; :try
DROP TRIGGER m ON s;
CREATE TRIGGER m BEFORE UPDATE OR DELETE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle('key');
BEGIN; :try
DROP TRIGGER m ON s;
CREATE TRIGGER m AFTER UPDATE OR DELETE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle('update');
BEGIN; :try
DROP TRIGGER m ON s;
CREATE TRIGGER m AFTER UPDATE OR DELETE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle('next');
BEGIN; :try
DROP TRIGGER m ON s;
CREATE FUNCTION bump(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE s SET v = v + 1000 WHERE id = n; RETURN n; END $$;
CREATE FUNCTION gone(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM s WHERE id = n; RETURN n; END $$;
BEGIN;
SAVEPOINT x;
UPDATE s SET v = bump(id);
ROLLBACK TO x;
UPDATE s SET v = bump(id % 4 + 1);
ROLLBACK TO x;
UPDATE s SET v = v + gone(id % 4 + 1) WHERE id < 3;
ROLLBACK TO x;
DELETE FROM s WHERE bump(id) > 0;
ROLLBACK TO x;
DELETE FROM s WHERE gone(id % 4 + 1) > 0;
ROLLBACK TO x;
SELECT id, v FROM s WHERE bump(id) > 0 ORDER BY id FOR UPDATE;
SELECT id, v FROM s WHERE gone(id) > 0 ORDER BY id FOR UPDATE;
SELECT * FROM s ORDER BY id;
ROLLBACK TO x;
SELECT id, v, bump(id), (SELECT v FROM s i WHERE i.id = s.id) FROM s ORDER BY id;
ROLLBACK;
-- A function in the middle of a scan: volatile ones see what was changed before, stable ones what the command sees
CREATE FUNCTION sum_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT sum(v) FROM s';
CREATE FUNCTION sum_then() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(v) FROM s';
CREATE FUNCTION pl_then() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT sum(v) FROM s); END';
BEGIN;
UPDATE s SET v = v * 10 RETURNING id, v, sum_now(), sum_then(), pl_then();
INSERT INTO s SELECT 10 + i, sum_now() FROM generate_series(1, 3) i RETURNING *;
INSERT INTO s SELECT 20 + i, sum_then() FROM generate_series(1, 3) i RETURNING *;
DELETE FROM s WHERE id > 10 RETURNING id, sum_now(), pl_then();
ROLLBACK;
-- Savepoints in triggers, and errors that they catch
CREATE TABLE seen (what text);
CREATE FUNCTION guarded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO seen VALUES ('tried ' || NEW.id);
    UPDATE s SET v = 0 WHERE id = 4;
    IF NEW.id % 2 = 0 THEN RAISE EXCEPTION 'even'; END IF;
  EXCEPTION WHEN raise_exception THEN
    INSERT INTO seen VALUES ('caught ' || NEW.id);
  END;
  NEW.v := NEW.v + 7;
  RETURN NEW;
END $$;
CREATE TRIGGER g BEFORE INSERT OR UPDATE ON s FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION guarded();
INSERT INTO s VALUES (5, 5), (6, 6), (7, 7);
SELECT * FROM s ORDER BY id;
UPDATE s SET v = v + 1 WHERE id IN (2, 6);
UPDATE s SET v = v + 1 WHERE id = 4;
INSERT INTO s VALUES (6, 60), (8, 80) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *;
INSERT INTO s VALUES (9, 9), (6, 6);
SELECT * FROM s ORDER BY id;
SELECT * FROM seen ORDER BY 1;
-- The same row over and over in one transaction, forth and back
DO $$
BEGIN
  FOR i IN 1..60 LOOP
    BEGIN
      UPDATE s SET v = v + 1 WHERE id = 1;
      IF i % 5 = 0 THEN DELETE FROM s WHERE id = 1; INSERT INTO s VALUES (1, i * 100); END IF;
      IF i % 3 = 0 THEN RAISE EXCEPTION 'back'; END IF;
      UPDATE s SET v = v + 1 WHERE id = 1;
    EXCEPTION WHEN raise_exception THEN
      UPDATE s SET v = v + 1000 WHERE id = 1;
    END;
  END LOOP;
END $$;
SELECT * FROM s WHERE id = 1;
DROP TABLE s, seen;
DROP FUNCTION note, totals, meddle, bump, gone, sum_now, sum_then, pl_then, guarded;
