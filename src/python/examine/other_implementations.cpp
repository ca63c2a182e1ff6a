#include "python/examine/other_implementations.hpp"

#include "procfs/cmdline.hpp"

#include <algorithm>
#include <string_view>

namespace pyinject::python {

namespace {

bool maps_library(const std::vector<procfs::Mapping>& maps, std::string_view prefix) {
  return std::ranges::any_of(maps, [prefix](const procfs::Mapping& mapping) {
    return mapping.executable && mapping.inode != 0 &&
           std::string_view{mapping.path}.substr(mapping.path.rfind('/') + 1).starts_with(prefix);
  });
}

// The script `jython` runs `java -jar .../jython.jar`; others name its main class.
bool is_of_jython(std::string_view argument) {
  const auto file = argument.substr(argument.rfind('/') + 1);
  return argument == "org.python.util.jython" ||
         (file.starts_with("jython") && file.ends_with(".jar"));
}

Refusal refusal(const std::string& name, const char* remedy) {
  return {.reason = Reason::kNotPython,
          .found = "it runs " + name + ": perf-pyinject reads CPython only",
          .remedy = remedy};
}

}  // namespace

std::optional<Refusal> other_implementation(const std::vector<procfs::Mapping>& maps,
                                            const std::vector<std::string>& arguments) {
  // libpypy-c.so, libpypy3.9-c.so
  if (maps_library(maps, "libpypy")) {
    return refusal("PyPy", "use vmprof, for which PyPy has support built in");
  }
  // docs/contributor/CONTRIBUTING.md and GraalPythonMain of github.com/oracle/graalpython: as one
  // shared library, or on a Java VM.
  const bool java = maps_library(maps, "libjvm.so");
  if (maps_library(maps, "libpythonvm") ||
      (java &&
       std::ranges::count(arguments, "com.oracle.graal.python.shell.GraalPythonMain") > 0)) {
    return refusal("GraalPy", "use its own option --cpusampler");
  }
  if (java && std::ranges::any_of(arguments, is_of_jython)) {
    return refusal("Jython", "use a profiler for Java, such as async-profiler");
  }
  return std::nullopt;
}

std::optional<Refusal> find_other_implementation(base::Pid pid,
                                                 const std::vector<procfs::Mapping>& maps) {
  return other_implementation(maps, procfs::read_cmdline(pid).value_or(std::vector<std::string>{}));
}

}  // namespace pyinject::python
