#include "extension/pg/runtime/database_locale.hpp"

#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/runtime/settings.hpp"

extern "C" {
#include "catalog/pg_collation.h"
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "utils/pg_locale.h"
}

namespace gcl {

namespace {

// ENCODING/COLLATE, ENCODING/COLLATE,CTYPE when they differ, and ENCODING/icu:LOCALE,COLLATE for one of ICU.
const char* database_locale() {
  const char* collate = GetConfigOption("lc_collate", false, false);
  const char* ctype = GetConfigOption("lc_ctype", false, false);
  const char* icu = "";
#ifdef USE_ICU
  if (default_locale.provider == COLLPROVIDER_ICU) icu = psprintf("icu:%s,", default_locale.info.icu.locale);
#endif
  const bool alike = strcmp(collate, ctype) == 0;
  return psprintf("%s/%s%s%s%s", GetDatabaseEncodingName(), icu, collate, alike ? "" : ",", alike ? "" : ctype);
}

// C.UTF-8 and C.utf8 are one locale.
bool same_locale(const char* a, const char* b) {
  for (;; ++a, ++b) {
    while (*a == '-') ++a;
    while (*b == '-') ++b;
    if (pg_ascii_tolower(static_cast<unsigned char>(*a)) != pg_ascii_tolower(static_cast<unsigned char>(*b)))
      return false;
    if (*a == '\0') return true;
  }
}

}  // namespace

bool has_pools_locale() noexcept {
  static enum { kUnknown, kTheSame, kAnother } known = kUnknown;
  if (MyDatabaseId == InvalidOid) return true;
  if (known == kUnknown) known = same_locale(database_locale(), settings.locale) ? kTheSame : kAnother;
  return known == kTheSame;
}

void require_database_locale() {
  if (has_pools_locale()) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("this database cannot have gcl tables: its locale is not the pool's"),
          errdetail("The database has \"%s\", the pool has \"%s\" (gcl.locale): primaries could sort differently.",
                    database_locale(), settings.locale),
          errhint("Make a database with the pool's encoding and locale, with TEMPLATE template0."));
}

int pool_encoding() {
  char name[NAMEDATALEN];
  strlcpy(name, settings.locale, sizeof name);
  if (char* slash = strchr(name, '/')) *slash = '\0';
  return pg_char_to_encoding(name);
}

}  // namespace gcl
