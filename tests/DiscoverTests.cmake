# Included by ctest each time that it runs, so that the rows follow the seed. tests/CMakeLists.txt writes a file per test
# program, which sets PROGRAM, LEVEL, ENTRIES (suite, row, test or rows), SOURCE, ALONE (a regular expression) and TIMEOUT,
# and PROPERTIES, then includes this one.
if(NOT EXISTS ${PROGRAM})
  add_test(${LEVEL}_tests_NOT_BUILT ${LEVEL}_tests_NOT_BUILT)
  return()
endif()

# A run of each commit covers other rows.
if(NOT DEFINED ENV{PYINJECT_TEST_SEED})
  execute_process(COMMAND git -C ${SOURCE} rev-list --count HEAD OUTPUT_VARIABLE seed OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  set(ENV{PYINJECT_TEST_SEED} "${seed}")
endif()

execute_process(COMMAND ${PROGRAM} --list-entries ${ENTRIES} OUTPUT_VARIABLE listed ERROR_VARIABLE messages
                RESULT_VARIABLE status TIMEOUT 120)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --list-entries ${ENTRIES}: ${status}: ${messages}")
endif()
string(REGEX MATCHALL "[^\n]+" listed "${listed}")
foreach(line IN LISTS listed)
  string(REGEX MATCH "^([^\t]*)\t([^\t]*)\t([0-9]+)$" matched "${line}")
  set(name "${CMAKE_MATCH_1}")
  set(filter "${CMAKE_MATCH_2}")
  set(count "${CMAKE_MATCH_3}")
  math(EXPR timeout "${TIMEOUT} * ${count}")
  add_test("${name}" ${PROGRAM} "--gtest_filter=${filter}")
  set_tests_properties("${name}" PROPERTIES LABELS ${LEVEL} TIMEOUT ${timeout} COST ${count} SKIP_RETURN_CODE 4
                                            ${PROPERTIES})
  if(ALONE AND name MATCHES "${ALONE}")
    set_tests_properties("${name}" PROPERTIES RUN_SERIAL TRUE)
  endif()
endforeach()
