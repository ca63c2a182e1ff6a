# Sets PYINJECT_CACHE: where scripts/libperf and scripts/static-libraries put what they build.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(PYINJECT_CACHE $ENV{XDG_CACHE_HOME}/perf-pyinject)
else()
  set(PYINJECT_CACHE $ENV{HOME}/.cache/perf-pyinject)
endif()
