-- What the server counts of a table and its indexes; what EXPLAIN and ANALYZE say.
SET enable_seqscan = on;
CREATE TABLE s (id int PRIMARY KEY, v int, t text);
CREATE INDEX s_v ON s (v);
INSERT INTO s SELECT i, i % 10, repeat('x', 100) FROM generate_series(1, 1000) i;
ANALYZE s;
CREATE FUNCTION counters(tab text) RETURNS TABLE (seq_scan bigint, seq_tup_read bigint, idx_scan bigint, idx_tup_fetch bigint,
  n_tup_ins bigint, n_tup_upd bigint, n_tup_del bigint, hot bigint) LANGUAGE sql AS
  'SELECT seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd
   FROM pg_stat_user_tables WHERE relname = tab';
SELECT pg_stat_force_next_flush();
SELECT * FROM counters('s');
SELECT count(*) FROM s;
SELECT count(*) FROM s TABLESAMPLE BERNOULLI (100);
SELECT pg_stat_force_next_flush();
SELECT * FROM counters('s');
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count(t) FROM s WHERE id <= 20;
SELECT id FROM s WHERE id IN (3, 5, 5000);
SET enable_bitmapscan = on; SET enable_indexscan = off;
SELECT count(t) FROM s WHERE v = 3;
RESET enable_indexscan; RESET enable_seqscan;
SELECT id FROM s WHERE ctid = (SELECT min(ctid) FROM s WHERE id = 7);
SELECT pg_stat_force_next_flush();
SELECT * FROM counters('s');
SELECT indexrelname, idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE relname = 's' ORDER BY 1;
SET enable_seqscan = off;
UPDATE s SET t = 'y' WHERE id > 995;  -- their page has room
UPDATE s SET v = -1 WHERE id IN (990, 991);
DELETE FROM s WHERE id = 980;
INSERT INTO s VALUES (1000, 1, 'there') ON CONFLICT (id) DO UPDATE SET t = 'was there';
INSERT INTO s VALUES (1000, 1, 'there') ON CONFLICT DO NOTHING;
BEGIN; INSERT INTO s VALUES (2000, 1, 'never'); UPDATE s SET t = 'never' WHERE id = 999; ROLLBACK;
RESET enable_seqscan;
SELECT pg_stat_force_next_flush();
SELECT n_tup_ins, n_tup_upd, n_tup_del, hot FROM counters('s');
SELECT n_live_tup, n_dead_tup, n_mod_since_analyze, n_ins_since_vacuum, vacuum_count, analyze_count, last_analyze IS NOT NULL AS analyzed
  FROM pg_stat_user_tables WHERE relname = 's';
VACUUM ANALYZE s;
SELECT n_live_tup, n_dead_tup, n_mod_since_analyze, n_ins_since_vacuum, vacuum_count, analyze_count, last_vacuum IS NOT NULL AS vacuumed
  FROM pg_stat_user_tables WHERE relname = 's';
-- Pages: looked at, by whom
SELECT pg_stat_force_next_flush();
SELECT heap_blks_hit > 0, idx_blks_hit > 0, heap_blks_read >= 0 FROM pg_statio_user_tables WHERE relname = 's';
SELECT indexrelname, idx_blks_hit > 0 FROM pg_statio_user_indexes WHERE relname = 's' ORDER BY 1;
CREATE FUNCTION blocks(query text, OUT hit bigint, OUT read bigint) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
  hit := plan->0->'Plan'->>'Shared Hit Blocks';
  read := plan->0->'Plan'->>'Shared Read Blocks';
END $$;
SELECT count(*) FROM s;
SELECT hit >= pg_relation_size('s') / 8192 AS all_pages, hit <= pg_relation_size('s') / 8192 + 8 AS no_more, read FROM blocks('SELECT count(t) FROM s');
SELECT hit BETWEEN 2 AND 4 AS few, read FROM blocks('SELECT t FROM s WHERE id = 77');
SELECT hit > 0 AS some, read FROM blocks('UPDATE s SET v = v WHERE id = 77');
SELECT hit, read FROM blocks('SELECT 1');
-- In parallel, too
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
SELECT hit >= pg_relation_size('s') / 8192 AS all_pages FROM blocks('SELECT count(*) FROM s');
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET max_parallel_workers_per_gather;
-- Sizes add up
SELECT pg_total_relation_size('s') = pg_table_size('s') + pg_indexes_size('s') AS total,
  pg_indexes_size('s') = pg_relation_size('s_pkey') + pg_relation_size('s_v') AS indexes, pg_relation_size('s', 'init') AS init,
  pg_relation_size('s') BETWEEN 1000 * 130 AND 40 * 8192 AS table_pages, pg_relation_size('s_pkey') BETWEEN 3 * 8192 AND 8 * 8192 AS index_pages;
-- Small tables are small: for the planner, too
CREATE TABLE tiny (id int PRIMARY KEY, v text);
SELECT pg_relation_size('tiny');
INSERT INTO tiny VALUES (1, 'one');
SELECT pg_relation_size('tiny');
INSERT INTO tiny VALUES (2, 'two');
ANALYZE tiny;
SELECT pg_relation_size('tiny'), relpages, reltuples FROM pg_class WHERE relname = 'tiny';
EXPLAIN SELECT * FROM tiny;
EXPLAIN SELECT * FROM tiny WHERE id = 1;
CREATE TABLE wide (v text);
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
INSERT INTO wide VALUES (repeat('w', 20000));
SELECT pg_relation_size('wide'), pg_table_size('wide') - pg_relation_size('wide') BETWEEN 24576 AND 73728 AS toast;
DROP FUNCTION counters, blocks; DROP TABLE s, tiny, wide;
