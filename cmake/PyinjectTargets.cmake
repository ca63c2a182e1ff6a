# Defines how all targets of this project are built: one static library per directory of src/.

# Compilers warn of different things: only those of Debian 12 can fail a build.
if(PYINJECT_WERROR AND NOT "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" MATCHES "^(GNU 12|Clang 14)[.]")
  message(WARNING "PYINJECT_WERROR is for GCC 12 and clang 14; warnings of ${CMAKE_CXX_COMPILER_ID} "
                  "${CMAKE_CXX_COMPILER_VERSION} are no errors")
  set(PYINJECT_WERROR OFF)
endif()

add_library(pyinject_options INTERFACE)
target_compile_options(
  pyinject_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            # GCC 12 wrongly reports overlaps in std::string's operator+ (GCC bug 105651).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            # Collecting garbage takes GCC a tenth of the time, with files as large as those of a unity build.
            $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>
            $<$<BOOL:${PYINJECT_WERROR}>:-Werror>)
if(PYINJECT_SANITIZE)
  target_compile_options(pyinject_options INTERFACE -fsanitize=${PYINJECT_SANITIZE}
                                                   -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(pyinject_options INTERFACE -fsanitize=${PYINJECT_SANITIZE})
endif()

if(PYINJECT_FUZZ)
  # The instrumentation that guides fuzzers, in the libraries and the fuzzers; the code of tests needs none.
  target_compile_options(
    pyinject_options INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PYINJECT_NOT_FUZZED>>>:-fsanitize=fuzzer-no-link>)
endif()

# pyinject_library(NAME USES libraries...): all *.cpp of the current directory become
# libpyinject_NAME. USES is public: these lists enforce the include rule of docs/architecture.md.
# TOOL: part of the program only, not installed.
function(pyinject_library name)
  cmake_parse_arguments(ARG "TOOL" "" "USES;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER sources EXCLUDE REGEX "_x86_64\\.cpp$")
  endif()
  add_library(pyinject_${name} STATIC ${sources})
  target_include_directories(
    pyinject_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(pyinject_${name} PUBLIC cxx_std_20)
  target_link_libraries(
    pyinject_${name}
    PUBLIC ${ARG_USES}
    PRIVATE $<BUILD_INTERFACE:pyinject_options> ${ARG_PRIVATE})
  if(ARG_TOOL)
    return()
  endif()

  set_target_properties(pyinject_${name} PROPERTIES EXPORT_NAME ${name})
  install(
    TARGETS pyinject_${name}
    EXPORT pyinject
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set_property(GLOBAL APPEND PROPERTY PYINJECT_LIBRARIES -lpyinject_${name})
endfunction()
