#include "extension/pg/ddl/replay/role_statement.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "commands/defrem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

struct Flag {
  const char* option;
  const char* word;  // NO before it says the opposite
};
constexpr Flag kFlags[] = {{"superuser", "SUPERUSER"}, {"inherit", "INHERIT"}, {"createrole", "CREATEROLE"},
                           {"createdb", "CREATEDB"},   {"canlogin", "LOGIN"},  {"isreplication", "REPLICATION"},
                           {"bypassrls", "BYPASSRLS"}};
constexpr Flag kLists[] = {{"addroleto", "IN ROLE"}, {"rolemembers", "ROLE"}, {"adminmembers", "ADMIN"}};

constexpr char kHidden[] = "********";

void append_literal_or_null(StringInfo to, const char* value) {
  appendStringInfoString(to, value ? quote_literal_cstr(value) : "NULL");
}

// A user that may write it need not be allowed to read it.
char* verifier_of(const char* role) {
  HeapTuple tuple = SearchSysCache1(AUTHNAME, CStringGetDatum(role));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "gcl: role \"%s\" is not there", role);
  bool none;
  const Datum verifier = SysCacheGetAttr(AUTHNAME, tuple, Anum_pg_authid_rolpassword, &none);
  char* kept = none ? nullptr : TextDatumGetCString(verifier);
  ReleaseSysCache(tuple);
  return kept;
}

void append_roles(StringInfo to, const List* roles) {
  const char* comma = "";
  ListCell* cell;
  foreach (cell, roles) {
    appendStringInfo(to, "%s%s", comma, quote_identifier(get_rolespec_name(lfirst_node(RoleSpec, cell))));
    comma = ", ";
  }
}

void append_option(StringInfo to, DefElem* option, const char* verifier) {
  for (const Flag& flag : kFlags)
    if (strcmp(option->defname, flag.option) == 0)
      return appendStringInfo(to, " %s%s", defGetBoolean(option) ? "" : "NO", flag.word);
  for (const Flag& list : kLists) {
    if (strcmp(option->defname, list.option) != 0) continue;
    appendStringInfo(to, " %s ", list.word);
    return append_roles(to, castNode(List, option->arg));
  }
  if (strcmp(option->defname, "password") == 0) {
    appendStringInfoString(to, " PASSWORD ");
    append_literal_or_null(to, verifier != nullptr ? kHidden : nullptr);
  } else if (strcmp(option->defname, "validUntil") == 0) {
    appendStringInfoString(to, " VALID UNTIL ");
    append_literal_or_null(to, option->arg ? strVal(option->arg) : nullptr);
  } else if (strcmp(option->defname, "connectionlimit") == 0) {
    appendStringInfo(to, " CONNECTION LIMIT %d", defGetInt32(option));
  } else if (strcmp(option->defname, "sysid") != 0) {  // which PostgreSQL ignores
    elog(ERROR, "gcl: unknown option of a role: %s", option->defname);
  }
}

DefElem* password_in(const List* options) {
  ListCell* cell;
  foreach (cell, options)
    if (auto* option = lfirst_node(DefElem, cell); strcmp(option->defname, "password") == 0) return option;
  return nullptr;
}

// A statement that makes or alters a role; `verb` is null of any other.
struct RoleStatement {
  const char* verb = nullptr;
  const char* role = nullptr;
  const List* options = NIL;
};

RoleStatement role_statement(const Node* statement) {
  if (IsA(statement, AlterRoleStmt)) {
    const auto* alter = reinterpret_cast<const AlterRoleStmt*>(statement);
    return {"ALTER ROLE", get_rolespec_name(alter->role), alter->options};
  }
  if (!IsA(statement, CreateRoleStmt)) return {};
  const auto* create = reinterpret_cast<const CreateRoleStmt*>(statement);
  constexpr const char* kVerbs[] = {"CREATE ROLE", "CREATE USER", "CREATE GROUP"};  // by RoleStmtType
  return {kVerbs[create->stmt_type], create->role, create->options};
}

}  // namespace

void hide_password(const Node* statement, DdlRecord* record) {
  const RoleStatement of = role_statement(statement);
  if (password_in(of.options) == nullptr) return;
  record->verifier = verifier_of(of.role);
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfo(&text, "%s %s", of.verb, quote_identifier(of.role));
  ListCell* cell;
  foreach (cell, of.options) append_option(&text, lfirst_node(DefElem, cell), record->verifier);
  record->sql = text.data;
}

void put_password(Node* statement, const DdlRecord* record) {
  if (*record->verifier == '\0') return;
  DefElem* password = password_in(role_statement(statement).options);
  if (password == nullptr) elog(ERROR, "gcl: a DDL record has a verifier, and its statement no password");
  password->arg = reinterpret_cast<Node*>(makeString(record->verifier));
}

}  // namespace gcl
