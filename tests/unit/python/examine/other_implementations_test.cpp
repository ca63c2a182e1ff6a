#include "python/examine/other_implementations.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::python {
namespace {

std::string found(const std::string& path, const std::vector<std::string>& arguments = {}) {
  procfs::Mapping mapping;
  mapping.path = path;
  mapping.inode = 1;
  mapping.executable = true;
  const auto refusal = other_implementation({mapping}, arguments);
  return refusal ? describe(*refusal) : "";
}

TEST(OtherImplementations, AreNamedWithWhatToUse) {
  EXPECT_EQ(found("/usr/lib/x86_64-linux-gnu/libpypy3.9-c.so"),
            "it runs PyPy: perf-pyinject reads CPython only (not_python): use vmprof, for which "
            "PyPy has support built in");
  EXPECT_EQ(found("/opt/graalpy/lib/libpythonvm.so"),
            "it runs GraalPy: perf-pyinject reads CPython only (not_python): use its own option "
            "--cpusampler");
  EXPECT_EQ(found("/usr/lib/jvm/lib/server/libjvm.so", {"java", "-jar", "/usr/share/jython.jar"}),
            "it runs Jython: perf-pyinject reads CPython only (not_python): use a profiler for "
            "Java, such as async-profiler");
}

TEST(OtherImplementations, AreNotSeenInOtherProcesses) {
  EXPECT_EQ(found("/usr/lib/jvm/lib/server/libjvm.so", {"java", "-jar", "/srv/shop.jar"}), "");
  EXPECT_EQ(found("/usr/bin/less", {"less", "org.python.util.jython"}), "");
  EXPECT_EQ(found("/usr/lib/libpython3.12.so.1.0"), "");
}

}  // namespace
}  // namespace pyinject::python
