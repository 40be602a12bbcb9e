#include "extension/pg/ddl/objects/meanings.hpp"

#include "extension/pg/ddl/base/ddl_sql.hpp"

extern "C" {
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_cast.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_conversion.h"
#include "catalog/pg_default_acl.h"
#include "catalog/pg_event_trigger.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_transform.h"
#include "catalog/pg_ts_config.h"
#include "catalog/pg_ts_dict.h"
#include "catalog/pg_ts_parser.h"
#include "catalog/pg_ts_template.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
}

namespace gcl {
namespace {

// Each makes one text of the row with the OID $1.  References are written as names: the types reg* do that, with
// schemas and arguments.  Grants are in the order of their text: PostgreSQL's may be that of the roles' OIDs.
struct Meaning {
  Oid catalog;
  const char* query;
};

constexpr const char* kFunction = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(p.proowner),
      (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C")
         FROM pg_catalog.unnest(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) AS x),
      CASE WHEN p.prokind <> 'a' THEN pg_catalog.pg_get_functiondef(p.oid) END,
      p.prorettype::pg_catalog.regtype::pg_catalog.text, p.provolatile, p.proparallel, p.prosecdef, p.proisstrict,
      a.aggkind, a.aggnumdirectargs, a.aggtransfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggfinalfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggcombinefn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggserialfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggdeserialfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggmtransfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggminvtransfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggmfinalfn::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      a.aggfinalextra, a.aggmfinalextra, a.aggfinalmodify, a.aggmfinalmodify,
      a.aggsortop::pg_catalog.regoperator::pg_catalog.text, a.aggtranstype::pg_catalog.regtype::pg_catalog.text, a.aggtransspace,
      a.aggmtranstype::pg_catalog.regtype::pg_catalog.text, a.aggmtransspace, a.agginitval, a.aggminitval
    FROM pg_catalog.pg_proc p LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid WHERE p.oid = $1) AS r)sql";

constexpr const char* kType = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(t.typowner),
      (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C")
         FROM pg_catalog.unnest(coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))) AS x),
      t.typtype, t.typlen, t.typbyval, t.typalign, t.typstorage, t.typcategory, t.typispreferred, t.typdelim, t.typisdefined,
      t.typinput::pg_catalog.text, t.typoutput::pg_catalog.text, t.typreceive::pg_catalog.text, t.typsend::pg_catalog.text,
      t.typmodin::pg_catalog.text, t.typmodout::pg_catalog.text, t.typanalyze::pg_catalog.text, t.typsubscript::pg_catalog.text,
      pg_catalog.format_type(t.typelem, NULL), pg_catalog.format_type(t.typbasetype, t.typtypmod), t.typndims, t.typnotnull,
      t.typcollation::pg_catalog.regcollation::pg_catalog.text, t.typdefault,
      (SELECT pg_catalog.array_agg(c.conname || ' ' || pg_catalog.pg_get_constraintdef(c.oid) ORDER BY c.conname COLLATE pg_catalog."C")
         FROM pg_catalog.pg_constraint c WHERE c.contypid = t.oid),
      (SELECT pg_catalog.array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid),
      pg_catalog.format_type(g.rngsubtype, NULL), o.opcname, g.rngcollation::pg_catalog.regcollation::pg_catalog.text,
      g.rngcanonical::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      g.rngsubdiff::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text
    FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_range g ON g.rngtypid = t.oid
    LEFT JOIN pg_catalog.pg_opclass o ON o.oid = g.rngsubopc WHERE t.oid = $1) AS r)sql";

constexpr const char* kRelation = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT c.relkind, pg_catalog.pg_get_userbyid(c.relowner), c.reloptions,
      (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C") FROM pg_catalog.unnest(c.relacl) AS x),
      CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) END,
      CASE WHEN c.relkind IN ('v', 'c') THEN
        (SELECT pg_catalog.array_agg(a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
           FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) END
    FROM pg_catalog.pg_class c WHERE c.oid = $1) AS r)sql";

constexpr const char* kOperator = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(o.oprowner), o.oprkind, o.oprcanmerge, o.oprcanhash,
      o.oprresult::pg_catalog.regtype::pg_catalog.text, o.oprcom::pg_catalog.regoperator::pg_catalog.text,
      o.oprnegate::pg_catalog.regoperator::pg_catalog.text, o.oprcode::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text,
      o.oprrest::pg_catalog.text, o.oprjoin::pg_catalog.text
    FROM pg_catalog.pg_operator o WHERE o.oid = $1) AS r)sql";

constexpr const char* kOperatorClass = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(o.opcowner), n.nspname, f.opfname, o.opcdefault,
      o.opcintype::pg_catalog.regtype::pg_catalog.text, o.opckeytype::pg_catalog.regtype::pg_catalog.text
    FROM pg_catalog.pg_opclass o JOIN pg_catalog.pg_opfamily f ON f.oid = o.opcfamily
    JOIN pg_catalog.pg_namespace n ON n.oid = f.opfnamespace WHERE o.oid = $1) AS r)sql";

constexpr const char* kCollation = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(c.collowner), c.collprovider, c.collisdeterministic, c.collencoding,
      c.collcollate, c.collctype, c.colliculocale
    FROM pg_catalog.pg_collation c WHERE c.oid = $1) AS r)sql";

constexpr const char* kLanguage = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(l.lanowner), l.lanpltrusted,
      (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C")
         FROM pg_catalog.unnest(coalesce(l.lanacl, pg_catalog.acldefault('l', l.lanowner))) AS x),
      l.lanplcallfoid::pg_catalog.regprocedure::pg_catalog.text, l.laninline::pg_catalog.regprocedure::pg_catalog.text,
      l.lanvalidator::pg_catalog.regprocedure::pg_catalog.text
    FROM pg_catalog.pg_language l WHERE l.oid = $1) AS r)sql";

constexpr const char* kTextSearch = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(c.cfgowner), n.nspname, p.prsname,
      (SELECT pg_catalog.array_agg(m.maptokentype || ' ' || m.mapseqno || ' ' || m.mapdict::pg_catalog.regdictionary ORDER BY m.maptokentype, m.mapseqno)
         FROM pg_catalog.pg_ts_config_map m WHERE m.mapcfg = c.oid)
    FROM pg_catalog.pg_ts_config c JOIN pg_catalog.pg_ts_parser p ON p.oid = c.cfgparser
    JOIN pg_catalog.pg_namespace n ON n.oid = p.prsnamespace WHERE c.oid = $1) AS r)sql";

constexpr const char* kDictionary = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(d.dictowner), n.nspname, t.tmplname, d.dictinitoption
    FROM pg_catalog.pg_ts_dict d JOIN pg_catalog.pg_ts_template t ON t.oid = d.dicttemplate
    JOIN pg_catalog.pg_namespace n ON n.oid = t.tmplnamespace WHERE d.oid = $1) AS r)sql";

constexpr const char* kSchema = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(n.nspowner),
      (SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog."C")
         FROM pg_catalog.unnest(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) AS x)
    FROM pg_catalog.pg_namespace n WHERE n.oid = $1) AS r)sql";

constexpr const char* kRole = R"sql(
  SELECT r::pg_catalog.text FROM (SELECT a.rolsuper, a.rolinherit, a.rolcreaterole, a.rolcreatedb, a.rolcanlogin, a.rolreplication,
      a.rolbypassrls, a.rolconnlimit, a.rolvaliduntil FROM pg_catalog.pg_roles a WHERE a.oid = $1) AS r)sql";

constexpr Meaning kMeanings[] = {
    {ProcedureRelationId, kFunction},
    {TypeRelationId, kType},
    {RelationRelationId, kRelation},
    {OperatorRelationId, kOperator},
    {OperatorClassRelationId, kOperatorClass},
    {OperatorFamilyRelationId,
     "SELECT pg_catalog.pg_get_userbyid(f.opfowner) FROM pg_catalog.pg_opfamily f WHERE f.oid = $1"},
    {AccessMethodOperatorRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT m.amoppurpose, m.amopopr::pg_catalog.regoperator::pg_catalog.text, "
     "f.opfname "
     "FROM pg_catalog.pg_amop m LEFT JOIN pg_catalog.pg_opfamily f ON f.oid = m.amopsortfamily WHERE m.oid = $1) AS r"},
    {AccessMethodProcedureRelationId,
     "SELECT m.amproc::pg_catalog.oid::pg_catalog.regprocedure FROM pg_catalog.pg_amproc m WHERE m.oid = $1"},
    {CastRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT c.castfunc::pg_catalog.regprocedure::pg_catalog.text, c.castcontext, "
     "c.castmethod FROM pg_catalog.pg_cast c WHERE c.oid = $1) AS r"},
    {CollationRelationId, kCollation},
    {LanguageRelationId, kLanguage},
    {TransformRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT t.trffromsql::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text, "
     "t.trftosql::pg_catalog.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_transform t WHERE t.oid "
     "= "
     "$1) AS r"},
    {ConversionRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(c.conowner), c.conforencoding, "
     "c.contoencoding, "
     "c.conproc::pg_catalog.text, c.condefault FROM pg_catalog.pg_conversion c WHERE c.oid = $1) AS r"},
    {TSConfigRelationId, kTextSearch},
    {TSDictionaryRelationId, kDictionary},
    {TSParserRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT p.prsstart::pg_catalog.text, p.prstoken::pg_catalog.text, "
     "p.prsend::pg_catalog.text, p.prsheadline::pg_catalog.text, p.prslextype::pg_catalog.text FROM "
     "pg_catalog.pg_ts_parser p WHERE p.oid = $1) AS r"},
    {TSTemplateRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT t.tmplinit::pg_catalog.text, t.tmpllexize::pg_catalog.text FROM "
     "pg_catalog.pg_ts_template t WHERE t.oid = $1) AS r"},
    {StatisticExtRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(s.stxowner), "
     "pg_catalog.pg_get_statisticsobjdef(s.oid), s.stxstattarget FROM pg_catalog.pg_statistic_ext s WHERE s.oid = $1) "
     "AS "
     "r"},
    {EventTriggerRelationId,
     "SELECT r::pg_catalog.text FROM (SELECT pg_catalog.pg_get_userbyid(e.evtowner), e.evtevent, e.evtenabled, "
     "e.evttags, "
     "e.evtfoid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_event_trigger e WHERE e.oid = $1) AS r"},
    {NamespaceRelationId, kSchema},
    {DefaultAclRelationId,
     "SELECT pg_catalog.array_agg(x::pg_catalog.text ORDER BY x::pg_catalog.text COLLATE pg_catalog.\"C\") FROM "
     "pg_catalog.pg_default_acl d, pg_catalog.unnest(d.defaclacl) AS x WHERE d.oid = $1"},
    {AuthIdRelationId, kRole}};

ObjectAddress address_of(const DdlObject& object) {
  ObjectAddress address;
  ObjectAddressSet(address, object.catalog, object.oid);
  return address;
}

}  // namespace

char* name_of(const DdlObject& object) {
  const ObjectAddress address = address_of(object);
  const char* type = getObjectTypeDescription(&address, true);
  const char* name = getObjectIdentity(&address, true);
  return type && name ? psprintf("%s %s", type, name) : nullptr;
}

char* meaning_of(const DdlObject& object) {
  for (const Meaning& meaning : kMeanings)
    if (meaning.catalog == object.catalog) return catalog_text(meaning.query, {oid_argument(object.oid)});
  return nullptr;
}

char* labels_with_oids(Oid type) {
  return catalog_text(
      "SELECT pg_catalog.array_agg(e.oid ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = $1",
      {oid_argument(type)});
}

}  // namespace gcl
