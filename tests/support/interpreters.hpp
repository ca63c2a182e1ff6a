// The interpreters that tests run on: every CPython >= 3.12 that can be found here.
#pragma once

#include <array>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::test {

struct Interpreter {
  std::string name;                  // for test names: "py3_13_trixie_chroot"
  std::vector<std::string> command;  // to be followed by the interpreter's arguments
  int major = 0;
  int minor = 0;
  int micro = 0;
  bool free_threaded = false;
  std::string root;  // the folder it is chrooted into; empty: none

  [[nodiscard]] bool is(int wanted_major, int wanted_minor) const {
    return major == wanted_major && minor == wanted_minor;
  }
};

// Sought in this order, each one once: PYINJECT_TEST_PYTHONS (paths, separated by colons), python3
// and python3.12 ... python3.99 on PATH, ~/.pyenv/versions/*/bin/python3, and built/bin/python3.12,
// bin/python3.* and bin/chroot-python3.* (the last as root only) in $PYINJECT_ROOTS, by default
// ${XDG_CACHE_HOME:-~/.cache}/perf-pyinject/roots. Each is asked for its version once: the
// answers are kept in the build folder and are valid while the files stay as they are. With
// PYINJECT_TEST_EACH_VERSION in the environment: only one_of_each_version().
[[nodiscard]] const std::vector<Interpreter>& find_interpreters();

// Without a look at that variable: for tests that need one of a certain kind.
[[nodiscard]] const std::vector<Interpreter>& all_interpreters();

// One of each minor version, in their order; a chrooted one where there is one: such a target's map
// has to be copied.
[[nodiscard]] std::vector<Interpreter> one_of_each_version();

// The versions without which a run of the tests proves too little.
[[nodiscard]] constexpr std::array<std::pair<int, int>, 4> required_versions() {
  return {{{3, 12}, {3, 13}, {3, 14}, {3, 15}}};
}

// For INSTANTIATE_TEST_SUITE_P: tests are named after the interpreter.
struct InterpreterName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

// What GoogleTest prints of it, under the name that it looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Interpreter& interpreter, std::ostream* stream);

}  // namespace pyinject::test
