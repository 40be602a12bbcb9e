# PostgreSQL 15: two interface targets, linked by name where they are wanted and nowhere else.
#   gcl::postgres_server   headers of the server, for extension/pg only
#   gcl::libpq             the client library, for tools and tests
find_program(GCL_PG_CONFIG NAMES pg_config PATHS /usr/lib/postgresql/15/bin DOC "pg_config of PostgreSQL 15")
if(NOT GCL_PG_CONFIG)
  message(FATAL_ERROR "pg_config not found: apt-get install postgresql-server-dev-15 libpq-dev")
endif()
foreach(what includedir includedir-server pkglibdir sharedir bindir libdir version)
  execute_process(COMMAND ${GCL_PG_CONFIG} --${what} OUTPUT_VARIABLE value OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "-" "_" variable ${what})
  set(GCL_PG_${variable} ${value})
endforeach()
if(NOT GCL_PG_version MATCHES "PostgreSQL 15\\.")
  message(FATAL_ERROR "PostgreSQL 15 is wanted; ${GCL_PG_CONFIG} says ${GCL_PG_version}")
endif()
if(NOT EXISTS ${GCL_PG_includedir_server}/postgres.h)
  message(FATAL_ERROR "no ${GCL_PG_includedir_server}/postgres.h: apt-get install postgresql-server-dev-15")
endif()

add_library(gcl::postgres_server INTERFACE IMPORTED)
target_include_directories(gcl::postgres_server SYSTEM INTERFACE ${GCL_PG_includedir_server} ${GCL_PG_includedir})
target_compile_definitions(gcl::postgres_server INTERFACE _GNU_SOURCE)

find_library(GCL_LIBPQ pq HINTS ${GCL_PG_libdir} REQUIRED)
add_library(gcl::libpq INTERFACE IMPORTED)
target_include_directories(gcl::libpq SYSTEM INTERFACE ${GCL_PG_includedir})
target_link_libraries(gcl::libpq INTERFACE ${GCL_LIBPQ})
set(gcl_postgres_FOUND TRUE)
