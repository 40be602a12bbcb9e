#include "extension/pg/default_method.hpp"

#include "extension/pg/boundary/builtin_patch.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "utils/guc.h"
#include "utils/guc_tables.h"
}

namespace gcl {
namespace {

GucStringCheckHook next_check = nullptr;

bool check(char** value, void** extra, GucSource source) {
  return strcmp(*value, "gcl") == 0 || next_check(value, extra, source);
}

config_string* find_setting(const char* name) {
  config_generic** all = get_guc_variables();
  for (int i = 0; i < GetNumConfigOptions(); ++i)
    if (strcmp(all[i]->name, name) == 0 && all[i]->vartype == PGC_STRING)
      return reinterpret_cast<config_string*>(all[i]);
  return nullptr;
}

}  // namespace

void accept_default_method() {
  config_string* setting = find_setting("default_table_access_method");
  if (setting == nullptr || setting->check_hook == nullptr)
    refuse_server("The setting default_table_access_method is not as expected.");
  next_check = setting->check_hook;
  setting->check_hook = check;
}

}  // namespace gcl
