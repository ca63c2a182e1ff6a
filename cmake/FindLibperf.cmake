# Finds libperf (linux, tools/lib/perf): the system's, else the static one that scripts/libperf builds.
# Sets Libperf_FOUND, LIBPERF_INCLUDE_DIR, LIBPERF_LIBRARY, LIBPERF_API_LIBRARY.
include(PyinjectCache)
set(PYINJECT_LIBPERF_ROOT ${PYINJECT_CACHE}/libperf CACHE PATH "Where scripts/libperf has put it")

pkg_check_modules(PC_LIBPERF QUIET libperf)
find_path(LIBPERF_INCLUDE_DIR perf/evlist.h HINTS ${PC_LIBPERF_INCLUDE_DIRS} ${PYINJECT_LIBPERF_ROOT}/include)
find_library(LIBPERF_LIBRARY perf HINTS ${PC_LIBPERF_LIBRARY_DIRS} ${PYINJECT_LIBPERF_ROOT}/lib)
# Only the static library needs libapi, which perf's libraries share.
find_library(LIBPERF_API_LIBRARY api PATHS ${PYINJECT_LIBPERF_ROOT}/lib NO_DEFAULT_PATH)
mark_as_advanced(LIBPERF_INCLUDE_DIR LIBPERF_LIBRARY LIBPERF_API_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libperf REQUIRED_VARS LIBPERF_LIBRARY LIBPERF_INCLUDE_DIR)
