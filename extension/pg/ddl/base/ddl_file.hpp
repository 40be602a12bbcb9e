// Small files in <data>/gcl_ddl, written whole.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// Raises what PostgreSQL raises for files.  False: there is none.
bool read_ddl_file(const char* name, void* to, size_t bytes);
void replace_ddl_file(const char* name, const void* from, size_t bytes);  // durable when it returns
void forget_ddl_file(const char* name) noexcept;

}  // namespace gcl
