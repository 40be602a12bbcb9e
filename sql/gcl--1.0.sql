-- gcl 1.0: tables shared by several PostgreSQL primaries through a memory pool
\echo Use "CREATE EXTENSION gcl" to load this file. \quit

CREATE FUNCTION gcl_check_preloaded() RETURNS void
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
SELECT gcl_check_preloaded();

CREATE FUNCTION gcl_tableam_handler(internal) RETURNS table_am_handler
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
CREATE ACCESS METHOD gcl TYPE TABLE HANDLER gcl_tableam_handler;
COMMENT ON ACCESS METHOD gcl IS 'tables shared by all primaries of a memory pool';

-- What is going on

CREATE FUNCTION gcl_stat_node_get(OUT node int, OUT cache_hits bigint, OUT cache_misses bigint, OUT round_trips bigint,
    OUT invalidations_sent bigint, OUT invalidations_received bigint, OUT pages_forwarded bigint,
    OUT pages_received bigint, OUT pages_evicted bigint, OUT mini_transactions bigint, OUT redo_bytes bigint,
    OUT frames bigint, OUT pool_pages bigint, OUT fenced boolean) RETURNS record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_node AS SELECT * FROM gcl_stat_node_get();
COMMENT ON VIEW gcl_stat_node IS 'this primary: its cache, its traffic with the pool and with other primaries';

CREATE FUNCTION gcl_stat_counters(OUT layer text, OUT counter text, OUT value bigint) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_stat_counters() IS 'every counter of this primary, by layer and name';

-- All primaries: this one as it is now, the others as they said last, about once a second

CREATE FUNCTION gcl_stat_primaries(OUT node int, OUT state text, OUT pid int, OUT incarnation bigint, OUT this boolean,
    OUT sampled_at timestamptz, OUT stale boolean,
    OUT cache_hits bigint, OUT cache_misses bigint, OUT round_trips bigint, OUT invalidations_sent bigint,
    OUT invalidations_received bigint, OUT pages_forwarded bigint, OUT pages_received bigint, OUT pages_evicted bigint,
    OUT mini_transactions bigint, OUT redo_bytes bigint, OUT local_waits bigint, OUT peer_waits bigint,
    OUT frames bigint, OUT free_frames bigint, OUT redo_ring_used bigint, OUT redo_ring_bytes bigint,
    OUT status_words_used bigint, OUT status_words bigint, OUT aborted_ids bigint,
    OUT ddl_state text, OUT ddl_position bigint, OUT ddl_entries bigint, OUT ddl_error text,
    OUT ddl_error_at timestamptz,
    OUT bound bigint, OUT bound_behind bigint, OUT oldest_snapshot bigint, OUT oldest_pid int,
    OUT oldest_since timestamptz) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_stat_primaries() IS 'what the views of all primaries are made of';

CREATE VIEW gcl_stat_cluster AS
  SELECT node, state, pid, incarnation, this, sampled_at, stale, cache_hits, cache_misses, round_trips,
         invalidations_sent, invalidations_received, pages_forwarded, pages_received, pages_evicted, mini_transactions,
         redo_bytes, local_waits, peer_waits, frames, free_frames, redo_ring_used, redo_ring_bytes, status_words_used,
         status_words, aborted_ids
  FROM gcl_stat_primaries();
COMMENT ON VIEW gcl_stat_cluster IS
  'the primaries of the pool: cache, traffic, waits, room; sampled_at says when, stale that this is long ago';

CREATE FUNCTION gcl_stat_cluster_counters_get(OUT node int, OUT layer text, OUT counter text, OUT value bigint,
    OUT sampled_at timestamptz) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_cluster_counters AS SELECT * FROM gcl_stat_cluster_counters_get();
COMMENT ON VIEW gcl_stat_cluster_counters IS 'every counter of every primary, by layer and name, since it joined';

CREATE VIEW gcl_stat_horizon AS
  SELECT node, bound, bound_behind, bound = pg_catalog.min(bound) FILTER (WHERE bound > 0) OVER () AS holds, oldest_pid AS pid,
         oldest_since AS transaction_start, sampled_at, stale
  FROM gcl_stat_primaries() WHERE sampled_at IS NOT NULL;
COMMENT ON VIEW gcl_stat_horizon IS
  'what keeps VACUUM from removing rows: the oldest snapshot of each primary, and which of them is the cluster''s';

CREATE VIEW gcl_stat_ddl_log AS
  SELECT node, ddl_state AS state, ddl_position AS position, ddl_entries AS entries,
         greatest(ddl_entries - ddl_position, 0) AS behind, ddl_error AS last_error, ddl_error_at AS last_error_at,
         sampled_at, stale
  FROM gcl_stat_primaries() WHERE sampled_at IS NOT NULL;
COMMENT ON VIEW gcl_stat_ddl_log IS
  'where each primary is in the log of the cluster''s DDL, and the last error it met when it ran that of another';

CREATE FUNCTION gcl_stat_hot_pages_get(OUT node int, OUT memory_node int, OUT page bigint, OUT relid oid, OUT kind text,
    OUT block bigint, OUT messages bigint, OUT requests_sent bigint, OUT requests_received bigint, OUT pages_sent bigint,
    OUT pages_received bigint, OUT missed_max bigint, OUT this boolean, OUT sampled_at timestamptz)
  RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_hot_pages AS
  SELECT h.node, h.memory_node, h.page, h.relid, c.relname, h.kind, h.block, h.messages, h.requests_sent,
         h.requests_received, h.pages_sent, h.pages_received, h.missed_max, h.this, h.sampled_at
  FROM gcl_stat_hot_pages_get() h LEFT JOIN pg_catalog.pg_class c ON c.oid = h.relid
  ORDER BY h.messages DESC, h.node, h.memory_node, h.page;
COMMENT ON VIEW gcl_stat_hot_pages IS
  'the pages that cost most messages between primaries; of other primaries the ten hottest';

CREATE FUNCTION gcl_stat_reset_hot_pages() RETURNS void
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_stat_reset_hot_pages() IS 'forgets the hot pages of this primary';

CREATE FUNCTION gcl_stat_waits_get(OUT node int, OUT pid int, OUT since timestamptz, OUT waits_for text,
    OUT blocked_by_node int, OUT blocked_by_pid int, OUT works_for_node int, OUT works_for_pid int) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_waits AS SELECT * FROM gcl_stat_waits_get();
COMMENT ON VIEW gcl_stat_waits IS
  'who waits for whom on every primary: a row for each process that waits for a lock and each that it waits for';

CREATE FUNCTION gcl_stat_held_get() RETURNS TABLE (what text, held bigint)
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_held AS SELECT * FROM gcl_stat_held_get();
COMMENT ON VIEW gcl_stat_held IS
  'what the processes of this primary hold now: zero, apart from this query''s own session, when nobody is at work';

CREATE FUNCTION gcl_stat_space_get(OUT frames bigint, OUT free_frames bigint, OUT cached_pages bigint,
    OUT pool_pages bigint, OUT free_pool_pages bigint, OUT status_words bigint) RETURNS record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_space AS SELECT * FROM gcl_stat_space_get();
COMMENT ON VIEW gcl_stat_space IS
  'room: this primary''s cache, the pages of the pool, and the ids of this primary''s transactions not yet let go';

CREATE FUNCTION gcl_stat_pages_get(OUT pages bigint, OUT allocated bigint, OUT free bigint, OUT kept bigint,
    OUT maps bigint) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION gcl_stat_relations_get(OUT relid oid, OUT kind text, OUT pages bigint, OUT used_pages bigint)
  RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_relations AS
  SELECT r.relid, n.nspname AS schemaname, c.relname, r.kind, r.pages, r.used_pages
  FROM gcl_stat_relations_get() r JOIN pg_catalog.pg_class c ON c.oid = r.relid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace;
COMMENT ON VIEW gcl_stat_relations IS
  'pages of the pool by relation of this database; without those that somebody has locked exclusively';

CREATE VIEW gcl_stat_pool AS
  WITH total AS MATERIALIZED (SELECT * FROM gcl_stat_pages_get()),
       own AS MATERIALIZED (SELECT kind, pg_catalog.sum(pages)::bigint AS pages FROM gcl_stat_relations_get() GROUP BY kind)
  SELECT k.kind, coalesce(own.pages, 0) AS pages
  FROM (VALUES ('table'), ('index'), ('TOAST'), ('sequence')) k (kind) LEFT JOIN own ON own.kind = k.kind
  UNION ALL SELECT 'other', allocated - coalesce((SELECT pg_catalog.sum(pages) FROM own), 0)::bigint FROM total
  UNION ALL SELECT v.kind, v.pages FROM total, LATERAL (VALUES ('maps', maps), ('kept', kept), ('free', free)) v (kind, pages);
COMMENT ON VIEW gcl_stat_pool IS
  'what the pool''s pages are used for; together they are all of them';

-- DDL on every primary (extension/pg/ddl)

CREATE FUNCTION gcl_ddl_fingerprint() RETURNS text
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_ddl_fingerprint() IS
  'digest of the catalog rows of all gcl tables and their indexes, OIDs included; equal on all primaries';

CREATE FUNCTION gcl_ddl_locks_get(OUT database text, OUT node int, OUT pid int, OUT since timestamptz) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE VIEW gcl_ddl_lock AS SELECT node, pid, since, database FROM gcl_ddl_locks_get();
COMMENT ON VIEW gcl_ddl_lock IS
  'sessions, on any primary, whose transactions hold the DDL lock of a database, or that of the whole cluster (database is null)';

CREATE FUNCTION gcl_stat_ddl_get(OUT author_node int, OUT author_pid int, OUT since timestamptz, OUT database text,
    OUT phase text, OUT what text, OUT asked_at timestamptz, OUT node int, OUT answer text, OUT awaited boolean,
    OUT error text) RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_ddl AS
  SELECT author_node, author_pid, since, database, phase, what, asked_at, node, answer,
         CASE WHEN awaited THEN pg_catalog.clock_timestamp() - asked_at END AS awaited_for, error
  FROM gcl_stat_ddl_get();
COMMENT ON VIEW gcl_stat_ddl IS
  'DDL or LOCK TABLE that is under way, on any primary: what the others are asked, and who has not answered';

CREATE FUNCTION gcl_stat_ddl_log_kept_get(OUT node int, OUT present boolean, OUT applied bigint, OUT entries bigint,
    OUT removed bigint, OUT pages bigint, OUT pages_max bigint) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_ddl_log_kept AS
  SELECT node, present, applied, entries, applied = pg_catalog.min(applied) OVER () AND applied < entries AS holds,
         entries - removed AS kept_entries, pages, pages_max
  FROM gcl_stat_ddl_log_kept_get();
COMMENT ON VIEW gcl_stat_ddl_log_kept IS
  'the primaries that the DDL log is kept for, those that are away too: how far each has applied it, and how long it is';

CREATE FUNCTION gcl_prepare_copy(primary_number int) RETURNS oid
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_prepare_copy(int) IS
  'until the end of the transaction there is no DDL, and a base backup of this primary may become the one of that number';

CREATE FUNCTION gcl_forget_primary(primary_number int) RETURNS void
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_forget_primary(int) IS
  'that primary is not to come back: the DDL log is not kept for it any more';

-- Who may call what (README.md): figures of the primaries are everybody's, as PostgreSQL's own; what tells of sessions,
-- and what looks at pages and so may cost others something, is for the roles that PostgreSQL has for that.

GRANT SELECT ON gcl_stat_node, gcl_stat_cluster, gcl_stat_cluster_counters, gcl_stat_horizon, gcl_stat_ddl_log, gcl_stat_held,
  gcl_stat_ddl_log_kept
  TO PUBLIC;

REVOKE ALL ON FUNCTION gcl_stat_waits_get(), gcl_stat_ddl_get(), gcl_ddl_locks_get() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gcl_stat_waits_get(), gcl_stat_ddl_get(), gcl_ddl_locks_get() TO pg_read_all_stats;
GRANT SELECT ON gcl_stat_waits, gcl_stat_ddl, gcl_ddl_lock TO pg_read_all_stats;

REVOKE ALL ON FUNCTION gcl_stat_hot_pages_get(), gcl_stat_space_get(), gcl_stat_pages_get(), gcl_stat_relations_get(),
  gcl_ddl_fingerprint() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gcl_stat_hot_pages_get(), gcl_stat_space_get(), gcl_stat_pages_get(), gcl_stat_relations_get(),
  gcl_ddl_fingerprint() TO pg_stat_scan_tables;
GRANT SELECT ON gcl_stat_hot_pages, gcl_stat_space, gcl_stat_pool, gcl_stat_relations TO pg_stat_scan_tables;

REVOKE ALL ON FUNCTION gcl_check_preloaded(), gcl_stat_reset_hot_pages(), gcl_prepare_copy(int), gcl_forget_primary(int)
  FROM PUBLIC;

COMMENT ON COLUMN gcl_stat_cluster.sampled_at IS 'when the figures of this row were taken: now for this primary';
COMMENT ON COLUMN gcl_stat_cluster.stale IS 'the figures are older than 5 seconds: the primary stands still, or is very busy';
COMMENT ON COLUMN gcl_stat_hot_pages.missed_max IS
  'messages of this page that may have gone uncounted before it was among the hot ones';
COMMENT ON COLUMN gcl_stat_horizon.bound_behind IS 'commits in the cluster since the oldest snapshot of the primary';
COMMENT ON COLUMN gcl_stat_horizon.holds IS 'whether it is this primary''s bound that VACUUM cannot pass, anywhere';
