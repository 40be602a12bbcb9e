-- The library and the extension's objects: which version each has, and what is said where they do not fit.
SELECT gcl_version() = extversion AS same, gcl_version() ~ '^\d+\.\d+$' AS a_version FROM pg_extension WHERE extname = 'gcl';
SELECT source, target, path FROM pg_extension_update_paths('gcl') WHERE path IS NOT NULL ORDER BY 1, 2;
CREATE FUNCTION of_another_version(OUT what text, OUT held bigint, OUT more int) RETURNS SETOF record
  AS '$libdir/gcl', 'gcl_stat_held_get' LANGUAGE C STRICT;
SELECT count(*) FROM of_another_version();
DROP FUNCTION of_another_version;
