# Layers: folder = namespace = target.

# Adds a folder that is there; a checkout without it configures all the same.
function(gcl_add_folder_if_present folder)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endfunction()

# gcl_add_layer_folder(FOLDER LAYER TARGET): a layer below extension/pg.  It is compiled without exceptions, and is
# checked, when everything is configured, not to see PostgreSQL's headers.
function(gcl_add_layer_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LAYER" "")
  gcl_add_folder_if_present(${folder})
  if(TARGET ${arg_LAYER})
    target_compile_options(${arg_LAYER} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
    target_link_libraries(${arg_LAYER} PUBLIC Threads::Threads)
    if(GCL_SANITIZE)
      gcl_compile_by_folder(${arg_LAYER})
    endif()
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL gcl_forbid_postgres ${arg_LAYER})")
  endif()
endfunction()

# The sources of a folder as one, which compiles in half the time: for builds that nobody debugs.
function(gcl_compile_by_folder target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE -Wno-shadow)  # of one source's names by another's: no matter
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "in_${folder}" group)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

# Fails the configuration if PostgreSQL's include directories reached a layer.  (What a file spells itself, by an
# absolute path say, is caught by tests/tidy.)
function(gcl_forbid_postgres target)
  foreach(property INCLUDE_DIRECTORIES INTERFACE_INCLUDE_DIRECTORIES LINK_LIBRARIES INTERFACE_LINK_LIBRARIES COMPILE_OPTIONS)
    get_target_property(value ${target} ${property})
    if(value MATCHES "postgresql|libpq|PostgreSQL")
      message(FATAL_ERROR "the layer ${target} sees PostgreSQL through ${property}: ${value}")
    endif()
  endforeach()
endfunction()

# headers_alone: compiles every header of the PostgreSQL-free layers by itself.  Not part of `all`; ./check builds it.
function(gcl_add_headers_alone)
  set(sources "")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/coherence/*.hpp
       ${CMAKE_SOURCE_DIR}/bufmgr/*.hpp ${CMAKE_SOURCE_DIR}/extension/engine/*.hpp)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name ${header})
    set(source ${CMAKE_BINARY_DIR}/headers_alone/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"  // once\n#include \"${header}\"  // twice\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_options(headers_alone PRIVATE -fno-exceptions -O0 -g0)
endfunction()

# unified_sources: all sources of a folder of the PostgreSQL-free layers as one, for clang-tidy, which so reads the
# headers once for all of them: a third of the time, and whole folders in sight of its analyzer.  Never linked.  The name
# is the one by which the analyzer knows that what it includes is to be analysed; and no two sources of a folder may
# define the same name.
function(gcl_add_unified_sources)
  set(unified "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/coherence/*.cpp
       ${CMAKE_SOURCE_DIR}/bufmgr/*.cpp ${CMAKE_SOURCE_DIR}/extension/engine/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/examples/")
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(REPLACE "/" "_" name ${folder})
    string(APPEND text_${name} "#include \"${source}\"  // NOLINT(bugprone-suspicious-include)\n")
    list(APPEND names ${name})
  endforeach()
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    set(source ${CMAKE_BINARY_DIR}/unified_sources/UnifiedSource_${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_${name}}" @ONLY)
    list(APPEND unified ${source})
  endforeach()
  add_library(unified_sources OBJECT EXCLUDE_FROM_ALL ${unified})
  target_compile_options(unified_sources PRIVATE -fno-exceptions)
endfunction()
