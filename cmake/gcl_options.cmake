# What every target is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)  # PostgreSQL's headers and our futex calls need the GNU dialect
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # every layer ends up in gcl.so
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# The sources of a folder are compiled as one, which takes half the time, but where somebody steps through them or wants
# one object for one change: the preset debug compiles each source by itself.
set(GCL_COMPILE_BY_FOLDER ON)
if(CMAKE_BUILD_TYPE STREQUAL Debug AND GCL_SANITIZE STREQUAL "")
  set(GCL_COMPILE_BY_FOLDER OFF)
endif()
# Release keeps -g1, so that a core or a profile has names and lines, and leaves NDEBUG to mean "no debug-only assertions".
# All of -g, variables too, is an eighth of the time of compiling; the preset debug has it.
# No other library takes the place of one of our functions (gcl.so is linked with -Bsymbolic): so calls within a folder may
# be inlined, though all is compiled for a library.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG -fno-semantic-interposition")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")

find_program(GCL_CCACHE ccache)
if(GCL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Or it would not keep what was compiled with a precompiled header.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${GCL_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wvla -Werror
                    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
                    -Wno-missing-field-initializers)  # designated initializers leave defaults out on purpose

if(CMAKE_BUILD_TYPE STREQUAL Debug AND GCL_SANITIZE STREQUAL "")
  # With -O1 the compiler takes a std::optional that it cannot follow for one that was never set.  Release looks for them.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
if(NOT GCL_SANITIZE STREQUAL "")
  add_compile_options(-g1)  # stacks have names and lines
endif()
if(GCL_SANITIZE STREQUAL "thread")
  # -O2: as it is shipped; every access that is left costs ten.  -Wno-tsan: the sanitizer does not model atomic_thread_fence;
  # code that needs one says why beside it.
  add_compile_options(-fsanitize=thread -O2 -fno-omit-frame-pointer -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(GCL_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(NOT GCL_SANITIZE STREQUAL "")
  message(FATAL_ERROR "GCL_SANITIZE is address, thread or empty, not ${GCL_SANITIZE}")
endif()

# Every include names its folder from the root: #include "coherence/base/ids.hpp".
include_directories(${CMAKE_SOURCE_DIR})
find_package(Threads REQUIRED)
