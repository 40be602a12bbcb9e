-- gcl 1.1: gcl_check(), gcl_version(), what primaries left in doubt, backups, memory nodes
\echo Use "ALTER EXTENSION gcl UPDATE TO '1.1'" to load this file. \quit

CREATE FUNCTION gcl_version() RETURNS text
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gcl_version() IS 'version of the library that this server has loaded';

-- Damage, without stopping anybody

CREATE FUNCTION gcl_check(target regclass, heapallindexed boolean DEFAULT false, OUT relation regclass,
    OUT memory_node int, OUT page bigint, OUT block bigint, OUT item int, OUT sqlstate text, OUT message text)
  RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION gcl_check(regclass, boolean) IS
  'what is wrong with a gcl table, its indexes and its TOAST relation: no rows if nothing is';

REVOKE ALL ON FUNCTION gcl_check(regclass, boolean) FROM PUBLIC;

-- Primaries that died

CREATE FUNCTION gcl_in_doubt_get(OUT node int, OUT id bigint, OUT xid xid8) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_in_doubt AS SELECT * FROM gcl_in_doubt_get();
COMMENT ON VIEW gcl_in_doubt IS
  'transactions of primaries that are away, which changed gcl tables and others: decided when their primary is back';
GRANT SELECT ON gcl_in_doubt TO PUBLIC;

CREATE FUNCTION gcl_resolve_in_doubt(node int, id bigint, commit boolean) RETURNS void
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_resolve_in_doubt(int, bigint, boolean) IS
  'that transaction of gcl_in_doubt is to be committed, or rolled back, because its primary is lost';
REVOKE ALL ON FUNCTION gcl_resolve_in_doubt(int, bigint, boolean) FROM PUBLIC;

-- Backups: a cut through the logs of all primaries (gclctl backup)

CREATE FUNCTION gcl_hold_commits(most_ms int) RETURNS pg_lsn
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_hold_commits(int) IS
  'commits of this primary wait until gcl_release_commits(), so long at most; its log has all that anybody has seen up to the position returned';

CREATE FUNCTION gcl_release_commits() RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION gcl_release_commits() IS 'ends what gcl_hold_commits() began in this session; false: it was over before';

REVOKE ALL ON FUNCTION gcl_hold_commits(int), gcl_release_commits() FROM PUBLIC;

-- Memory nodes

CREATE FUNCTION gcl_stat_memory_nodes_get(OUT memory_node int, OUT pages bigint, OUT address text, OUT state text,
    OUT error text, OUT started_at timestamptz, OUT links bigint, OUT batches bigint, OUT operations bigint,
    OUT bytes_in bigint, OUT bytes_out bigint, OUT user_time float8, OUT system_time float8) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE VIEW gcl_stat_memory_nodes AS SELECT * FROM gcl_stat_memory_nodes_get();
COMMENT ON VIEW gcl_stat_memory_nodes IS
  'the pool''s memory nodes; of those that a daemon serves, what it has done since it was started';
REVOKE ALL ON FUNCTION gcl_stat_memory_nodes_get() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gcl_stat_memory_nodes_get() TO pg_stat_scan_tables;
GRANT SELECT ON gcl_stat_memory_nodes TO pg_stat_scan_tables;
