-- gcl_check(): nothing where nothing is wrong, what is wrong where a function has changed, and who may.
CREATE TABLE account (id int PRIMARY KEY, owner text, balance numeric, note text) USING gcl;
CREATE INDEX account_owner ON account (owner COLLATE "C" DESC, balance);
CREATE INDEX account_balance ON account (balance) INCLUDE (owner);
CREATE INDEX account_rich ON account (id) WHERE balance > 500;
CREATE INDEX account_upper ON account (upper(owner));
INSERT INTO account SELECT i, 'owner ' || i % 50, i, repeat(md5(i::text), i % 100) FROM generate_series(1, 2000) i;
UPDATE account SET note = NULL WHERE id % 7 = 0;
UPDATE account SET balance = NULL, owner = NULL WHERE id % 11 = 0;
DELETE FROM account WHERE id BETWEEN 300 AND 900;
SELECT * FROM gcl_check('account');
SELECT * FROM gcl_check('account', true);
VACUUM account;
SELECT * FROM gcl_check('account', heapallindexed => true);

-- indexes that were built from the table, of several levels, and then lose pages
CREATE TABLE built (id int, k text) USING gcl;
INSERT INTO built SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 20000) i;
CREATE INDEX built_k ON built (k, id);
CREATE UNIQUE INDEX built_id ON built (id) WITH (fillfactor = 30);
SELECT * FROM gcl_check('built', true);
DELETE FROM built WHERE id BETWEEN 3000 AND 12000;
VACUUM built;
SELECT * FROM gcl_check('built', true);
DROP TABLE built;

-- within a transaction that has changed the table, rolled back some of it, and has a cursor on it
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM account;
FETCH 1 FROM c \g /dev/null
UPDATE account SET balance = balance + 1 WHERE id < 100;
SAVEPOINT s;
DELETE FROM account WHERE id < 50;
INSERT INTO account SELECT i FROM generate_series(5000, 5100) i;
ROLLBACK TO s;
SELECT * FROM gcl_check('account', true);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM account;
SELECT * FROM gcl_check('account', true);
COMMIT;

-- columns that came and went, tables without columns or rows
ALTER TABLE account ADD COLUMN extra int DEFAULT 7, DROP COLUMN note;
INSERT INTO account VALUES (7000, 'last', 1, 2);
SELECT * FROM gcl_check('account', true);
CREATE TABLE nothing () USING gcl;
INSERT INTO nothing DEFAULT VALUES;
SELECT * FROM gcl_check('nothing', true);
CREATE TABLE empty (id int UNIQUE DEFERRABLE) USING gcl;
SELECT * FROM gcl_check('empty', true);
TRUNCATE account;
SELECT * FROM gcl_check('account', true);
SELECT * FROM gcl_check(NULL);

-- an index whose function says something else than when the rows came
CREATE FUNCTION rate(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 * 2; END';
CREATE TABLE rated (id int) USING gcl;
CREATE INDEX rated_rate ON rated (rate(id));
CREATE INDEX rated_some ON rated (id) WHERE rate(id) > 2;
INSERT INTO rated VALUES (1), (2), (3);
SELECT * FROM gcl_check('rated', true);
CREATE OR REPLACE FUNCTION rate(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 5 - $1; END';
SELECT relation, block, item, sqlstate, message FROM gcl_check('rated', true);
SELECT count(*) FROM gcl_check('rated');
DROP INDEX rated_rate, rated_some;
CREATE INDEX rated_rate ON rated (rate(id));
CREATE INDEX rated_some ON rated (id) WHERE rate(id) > 2;
SELECT * FROM gcl_check('rated', true);

-- functions of indexes run as the table's owner, who cannot make more of it
CREATE ROLE check_owner;
GRANT CREATE ON SCHEMA public TO check_owner;
SET ROLE check_owner;
CREATE TABLE trap (id int) USING gcl;
CREATE FUNCTION who(int) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE 'as %, path %', current_user, current_setting('search_path'); RETURN 'x'; END $$;
CREATE INDEX trap_who ON trap (who(id));
INSERT INTO trap VALUES (1);
RESET ROLE;
SELECT * FROM gcl_check('trap', true);
SELECT current_user = session_user, current_setting('search_path');
CREATE OR REPLACE FUNCTION who(int) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN PERFORM public.grab(); RETURN 'x'; END $$;
SET ROLE check_owner;
CREATE FUNCTION grab() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET ROLE NONE; END $$;
RESET ROLE;
SELECT * FROM gcl_check('trap', true);
CREATE OR REPLACE FUNCTION grab() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET SESSION AUTHORIZATION DEFAULT; END $$;
SELECT * FROM gcl_check('trap', true);
CREATE OR REPLACE FUNCTION grab() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE t (); END $$;
SELECT * FROM gcl_check('trap', true);
CREATE OR REPLACE FUNCTION grab() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE check_owner SUPERUSER; END $$;
SELECT * FROM gcl_check('trap', true);
CREATE OR REPLACE FUNCTION grab() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET search_path = public; END $$;
SELECT * FROM gcl_check('trap', true);
SELECT current_user = session_user, current_setting('search_path');
SELECT * FROM gcl_check('trap');

-- who may
SET ROLE check_owner;
SELECT * FROM gcl_check('trap');
RESET ROLE;
GRANT EXECUTE ON FUNCTION gcl_check TO check_owner;
SET ROLE check_owner;
SELECT * FROM gcl_check('rated', true);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION gcl_check FROM check_owner;

-- what is no gcl table
CREATE TABLE local (id int PRIMARY KEY) USING heap;
SELECT * FROM gcl_check('local');
SELECT * FROM gcl_check('rated_rate');
SELECT * FROM gcl_check('pg_class');
CREATE VIEW seen AS SELECT 1 AS one;
SELECT * FROM gcl_check('seen');
CREATE TABLE parts (id int) PARTITION BY LIST (id);
SELECT * FROM gcl_check('parts');
SELECT k.* FROM pg_class c JOIN pg_am a ON a.oid = c.relam CROSS JOIN LATERAL gcl_check(c.oid) k
  WHERE a.amname = 'gcl' AND c.relkind = 'r';

SELECT gcl_version() = extversion FROM pg_extension WHERE extname = 'gcl';
DROP TABLE trap, rated, account, nothing, empty;
DROP TABLE local, parts;
DROP VIEW seen;
DROP FUNCTION who, grab, rate;
REVOKE CREATE ON SCHEMA public FROM check_owner;
DROP ROLE check_owner;
