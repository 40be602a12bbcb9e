# gcl_add_test(NAME target [SOURCES files...] [LINK targets...] LABELS labels... [TIMEOUT seconds] [WHOLE])
#
# A Google Test program.  Creates `target` from SOURCES unless the caller did; registers every TEST with ctest under the
# labels (unit, model, sim, conformance, regress, isolation, cluster).  WHOLE: one ctest test for the whole program.
# TIMEOUT is for what hangs: far more than a machine takes that does other things besides.
find_package(GTest REQUIRED)
include(GoogleTest)

function(gcl_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WHOLE" "NAME;TIMEOUT" "SOURCES;LINK;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 360)
  endif()
  if(NOT TARGET ${arg_NAME})
    add_executable(${arg_NAME} ${arg_SOURCES})
    gcl_compile_by_folder(${arg_NAME})
  endif()
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LINK} GTest::gtest GTest::gtest_main)
  if(arg_WHOLE)
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  else()
    gtest_discover_tests(${arg_NAME} TEST_PREFIX "${arg_NAME}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 180
                         PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

# gcl_add_slow_test(NAME name TARGET target FILTER tests [LONGER times] [REPEAT times] [SEEDS numbers...])
#
# Tests that are there already, for longer (tests/support/longer.hpp) or again and again, once for each seed.  Only
# `./check slow` runs them.
function(gcl_add_slow_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET;FILTER;LONGER;REPEAT" "SEEDS")
  foreach(default LONGER REPEAT SEEDS)
    if(NOT arg_${default})
      set(arg_${default} 1)
    endif()
  endforeach()
  foreach(seed IN LISTS arg_SEEDS)
    set(name slow.${arg_NAME}.${seed})
    add_test(NAME ${name} COMMAND ${arg_TARGET} --gtest_filter=${arg_FILTER} --gtest_repeat=${arg_REPEAT})
    set_tests_properties(${name} PROPERTIES LABELS slow TIMEOUT 2700 ENVIRONMENT "GCL_LONGER=${arg_LONGER};GCL_SEED=${seed}"
                         FAIL_REGULAR_EXPRESSION "Running 0 tests")  # a filter that matches nothing
  endforeach()
endfunction()
