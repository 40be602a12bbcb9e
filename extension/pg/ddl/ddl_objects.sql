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
