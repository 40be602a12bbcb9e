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

CREATE FUNCTION gcl_stat_members(OUT node int, OUT state text, OUT pid int, OUT incarnation bigint, OUT this boolean)
  RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_cluster AS SELECT * FROM gcl_stat_members();
COMMENT ON VIEW gcl_stat_cluster IS 'the primaries of the pool';

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

-- DDL on every primary (extension/pg/ddl)

CREATE FUNCTION gcl_ddl_fingerprint() RETURNS text
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_ddl_fingerprint() IS
  'digest of the catalog rows of all gcl tables and their indexes, OIDs included; equal on all primaries';

CREATE FUNCTION gcl_ddl_lock_holder(OUT node int, OUT pid int, OUT since timestamptz) RETURNS record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

CREATE VIEW gcl_ddl_lock AS
  SELECT h.node, h.pid, h.since FROM gcl_ddl_lock_holder() h WHERE h.node IS NOT NULL;
COMMENT ON VIEW gcl_ddl_lock IS 'the session, on any primary, whose transaction holds the DDL lock of the cluster';
