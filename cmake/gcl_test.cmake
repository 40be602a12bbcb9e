# gcl_add_test(NAME target [SOURCES files...] [LINK targets...] LABELS labels... [TIMEOUT seconds] [WHOLE])
#
# A Google Test program.  Creates `target` from SOURCES unless the caller did; registers every TEST with ctest under the
# labels (unit, model, sim, conformance, regress, isolation, cluster).  WHOLE: one ctest test for the whole program.
find_package(GTest REQUIRED)
include(GoogleTest)

function(gcl_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WHOLE" "NAME;TIMEOUT" "SOURCES;LINK;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT TARGET ${arg_NAME})
    add_executable(${arg_NAME} ${arg_SOURCES})
  endif()
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LINK} GTest::gtest GTest::gtest_main)
  if(arg_WHOLE)
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  else()
    gtest_discover_tests(${arg_NAME} TEST_PREFIX "${arg_NAME}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()
