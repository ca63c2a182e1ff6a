# Programs for machines other than the one that builds them (scripts/packages).
#
# PYINJECT_PORTABLE: {fmt}, Boost.Program_options and Zydis are linked statically. Their SONAMEs differ between Debian 12, 13
# and sid. Debian 12 has only shared libraries of {fmt} and Zydis: scripts/static-libraries builds static ones.
#
# PYINJECT_STATIC: nothing is shared, not even the C library. Debian's libcurl.a needs libraries that have no static ones.
if(PYINJECT_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(PYINJECT_PORTABLE ON)
endif()
if(NOT PYINJECT_PORTABLE)
  return()
endif()

include(PyinjectCache)
set(PYINJECT_STATIC_ROOT ${PYINJECT_CACHE}/static CACHE PATH "Where scripts/static-libraries has put them")
if(NOT EXISTS ${PYINJECT_STATIC_ROOT}/lib/libZydis.a)
  message(FATAL_ERROR "PYINJECT_PORTABLE needs the static libraries that scripts/static-libraries builds")
endif()

list(PREPEND CMAKE_PREFIX_PATH ${PYINJECT_STATIC_ROOT})
set(Boost_USE_STATIC_LIBS ON)
# The CMake package of Zydis requires Zycore; the decoder needs only its headers.
add_library(Zydis::Zydis STATIC IMPORTED)
set_target_properties(
  Zydis::Zydis
  PROPERTIES IMPORTED_LOCATION ${PYINJECT_STATIC_ROOT}/lib/libZydis.a
             INTERFACE_INCLUDE_DIRECTORIES ${PYINJECT_STATIC_ROOT}/include
             INTERFACE_COMPILE_DEFINITIONS ZYDIS_STATIC_BUILD)
