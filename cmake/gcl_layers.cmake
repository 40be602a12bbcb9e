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
    gcl_compile_by_folder(${arg_LAYER})
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL gcl_forbid_postgres ${arg_LAYER})")
  endif()
endfunction()

# The sources of each folder as one, where GCL_COMPILE_BY_FOLDER says so.  No two of them may define the same name.
function(gcl_compile_by_folder target)
  if(NOT GCL_COMPILE_BY_FOLDER)
    return()
  endif()
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

# headers_alone: compiles every header of the PostgreSQL-free layers, and of the tools, by itself: release reads the
# sources of a folder as one, where a header may lean on another's includes.  Not part of `all`; ./check builds it.
function(gcl_add_headers_alone)
  gcl_add_headers_of(headers_alone coherence bufmgr recovery extension/engine)
  target_compile_options(headers_alone PRIVATE -fno-exceptions)
  if(TARGET headers_alone_of_tools)
    add_dependencies(headers_alone headers_alone_of_tools)
  endif()
endfunction()

# gcl_add_headers_of(TARGET FOLDER...)
function(gcl_add_headers_of target)
  set(sources "")
  list(TRANSFORM ARGN REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/\\1/*.hpp" OUTPUT_VARIABLE folders)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${folders})
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name ${header})
    set(source ${CMAKE_BINARY_DIR}/headers_alone/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"  // once\n#include \"${header}\"  // twice\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_options(${target} PRIVATE -O0 -g0)
endfunction()

# clang_tidy, clang_tidy_deep: static analysis of the PostgreSQL-free layers.  Not part of `all`; ./check builds the first,
# ./check slow the second.  All sources of a folder are read as one, so that headers are read once for all of them: a third
# of the time, and whole folders in sight of the analyzer.  The name UnifiedSource is the one by which it knows that what is
# included is to be analysed.  The analyzer follows paths through a function and what is small of those it calls; deep, from
# function to function, which takes six times as long.
function(gcl_add_clang_tidy)
  set(unified "")
  set(results "")
  set(deep_results "")
  set(shallow --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=mode=shallow)
  find_program(GCL_CLANG_TIDY clang-tidy)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/coherence/*.cpp
       ${CMAKE_SOURCE_DIR}/bufmgr/*.cpp ${CMAKE_SOURCE_DIR}/recovery/*.cpp ${CMAKE_SOURCE_DIR}/extension/engine/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/examples/")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/coherence/*.hpp ${CMAKE_SOURCE_DIR}/bufmgr/*.hpp
       ${CMAKE_SOURCE_DIR}/recovery/*.hpp ${CMAKE_SOURCE_DIR}/extension/engine/*.hpp)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(REPLACE "/" "_" name ${folder})
    string(APPEND text_${name} "#include \"${source}\"  // NOLINT(bugprone-suspicious-include)\n")
    list(APPEND sources_${name} ${CMAKE_SOURCE_DIR}/${source})
    list(APPEND names ${name})
  endforeach()
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    set(source ${CMAKE_BINARY_DIR}/unified_sources/UnifiedSource_${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_${name}}" @ONLY)
    foreach(depth "" deep_)
      set(result ${CMAKE_BINARY_DIR}/unified_sources/${name}.${depth}tidy)
      set(arguments ${shallow})
      if(depth)
        set(arguments "")
      endif()
      add_custom_command(OUTPUT ${result}
                         COMMAND ${GCL_CLANG_TIDY} -quiet -p ${CMAKE_BINARY_DIR} ${arguments} ${source}
                         COMMAND ${CMAKE_COMMAND} -E touch ${result}
                         DEPENDS ${source} ${sources_${name}} ${headers} ${CMAKE_SOURCE_DIR}/.clang-tidy
                         COMMENT "clang-tidy: ${name}" VERBATIM)
      list(APPEND ${depth}results ${result})
    endforeach()
    list(APPEND unified ${source})
  endforeach()
  add_library(unified_sources OBJECT EXCLUDE_FROM_ALL ${unified})  # for compile_commands.json; never built
  target_compile_options(unified_sources PRIVATE -fno-exceptions)
  add_custom_target(clang_tidy DEPENDS ${results})
  add_custom_target(clang_tidy_deep DEPENDS ${deep_results})
endfunction()
