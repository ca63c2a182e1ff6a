# Installs what programs outside this tree need to use the library: find_package(pyinject CONFIG) and
# pyinject.pc. Both can be moved together with the directory in which they are installed.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)

add_library(pyinject INTERFACE)
target_link_libraries(pyinject INTERFACE pyinject_record_verbs pyinject_export pyinject_inspect)
install(TARGETS pyinject EXPORT pyinject)

get_property(with_bpf GLOBAL PROPERTY PYINJECT_BPF)
if(with_bpf)
  set(PYINJECT_LIBBPF_MODULE " LIBBPF:libbpf")
  set(PYINJECT_LIBBPF_REQUIRED " libbpf")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pyinject)
set(package_build_dir ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/pyinject-config.cmake.in ${package_build_dir}/pyinject-config.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
# Below 1.0 each minor version may change the interface.
write_basic_package_version_file(${package_build_dir}/pyinject-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${package_build_dir}/pyinject-config.cmake
              ${package_build_dir}/pyinject-config-version.cmake
        DESTINATION ${package_dir})
install(EXPORT pyinject NAMESPACE pyinject:: FILE pyinject-targets.cmake DESTINATION ${package_dir})

# Linkers need a static library before those that it uses; the list has the opposite order.
get_property(libraries GLOBAL PROPERTY PYINJECT_LIBRARIES)
list(REVERSE libraries)
list(JOIN libraries " " link_flags)
# A libperf built by scripts/libperf is part of libpyinject_events.a.
set(libperf)
if(Libperf_FOUND AND NOT LIBPERF_LIBRARY MATCHES "\\.a$")
  set(libperf -lperf)
endif()
file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" up ${up})
configure_file(${PROJECT_SOURCE_DIR}/cmake/pyinject.pc.in ${package_build_dir}/pyinject.pc @ONLY)
install(FILES ${package_build_dir}/pyinject.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# include/ contains exactly the installed headers. They include only each other and the C++ and C
# libraries.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/perf-pyinject/examples COMPONENT examples)

# The reference documentation of the installed headers, by Doxygen; a warning is an error.
find_program(DOXYGEN doxygen)
if(DOXYGEN)
  set(doxygen_input "${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include")
  configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
  add_custom_target(docs COMMAND ${DOXYGEN} ${PROJECT_BINARY_DIR}/Doxyfile VERBATIM)
endif()
