// The interpreters that tests run on: every CPython >= 3.12 found on this machine.
#pragma once

#include <array>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::test {

struct Interpreter {
  std::string name;                  // for test names: "py3_13_trixie_chroot"
  std::vector<std::string> command;  // prefix for the interpreter's arguments
  int major = 0;
  int minor = 0;
  int micro = 0;
  bool free_threaded = false;
  std::string root;  // directory it is chrooted into; empty: none

  [[nodiscard]] bool is(int wanted_major, int wanted_minor) const {
    return major == wanted_major && minor == wanted_minor;
  }
};

// Selects one of several interpreters of the same minor version.
enum class Prefer {
  kChrooted,  // the first chrooted one, since its map has to be copied; otherwise the first
  kLoader,    // the last one run by its own loader, since it has modules; otherwise the first
};

// Every interpreter meets a condition that is not set.
struct InterpreterSelection {
  std::optional<int> minor = {};  // 13: CPython 3.13
  std::optional<bool> root = {};  // true: chrooted; false: sees this machine's files
  std::optional<bool> free_threaded = {};
  // Also those that can only be read, not activated: free-threaded builds, and versions that are
  // newer than required_versions().
  bool only_read = false;
  std::optional<bool> probes = {};          // has the static probes of function calls
  std::optional<bool> jit = {};             // has_jit()
  std::optional<bool> trampoline = {};      // accepts -X perf
  std::string module = {};                  // has_module()
  std::string name_part = {};               // substring of Interpreter::name
  std::optional<Prefer> each_version = {};  // only one per minor version; of
                                            // free-threaded ones, another one
  // Debian's interpreters are there twice, run by their loader and chrooted. If both are selected,
  // drop the former, unless both_ways: for tests that depend on how an interpreter's files are
  // found.
  bool both_ways = false;
  bool whole_matrix = false;  // ignore PYINJECT_TEST_EACH_VERSION
};

// The interpreters of this machine that meet all conditions, in the order of the search; with
// each_version, in the order of versions.
//
// Searches once, each executable once: PYINJECT_TEST_PYTHONS (paths, separated by colons), python3
// and python3.12 ... python3.99 on PATH, ~/.pyenv/versions/*/bin/python3, and built/bin/python3.12,
// bin/python3.* and bin/chroot-python3.* (the last as root only) in $PYINJECT_ROOTS, by default
// ${XDG_CACHE_HOME:-~/.cache}/perf-pyinject/roots. The build directory caches the versions until a
// file changes. With PYINJECT_TEST_EACH_VERSION in the environment, the matrix has only one
// interpreter per minor version, chosen by Prefer::kChrooted.
//
// jit, trampoline and module run each interpreter that meets the other conditions, once: the build
// directory caches the answers, too (answers.cache).
[[nodiscard]] std::vector<Interpreter> interpreters(const InterpreterSelection& selection = {});

// The first that meets all conditions, whichever way it is run; nullopt: there is none.
[[nodiscard]] std::optional<Interpreter> find_interpreter(const InterpreterSelection& selection);

// The first interpreter of that minor version that is not chrooted and not free-threaded.
[[nodiscard]] std::optional<Interpreter> plain_interpreter(int minor);

// One of the newest version that can be activated and is not chrooted. Throws base::Error if there
// is none.
[[nodiscard]] Interpreter newest_interpreter();

// Whether it can only be read, not activated.
[[nodiscard]] bool is_only_read(const Interpreter& interpreter);
// Whether its version is newer than required_versions(): it is an untested one for the tool.
[[nodiscard]] bool is_newer(const Interpreter& interpreter);
// Whether PYTHON_JIT=1 enables the JIT.
[[nodiscard]] bool has_jit(const Interpreter& interpreter);
[[nodiscard]] bool has_module(const Interpreter& interpreter, std::string_view module);

// A run of the tests must cover these versions to be meaningful.
[[nodiscard]] constexpr std::array<std::pair<int, int>, 4> required_versions() {
  return {{{3, 12}, {3, 13}, {3, 14}, {3, 15}}};
}

// For INSTANTIATE_TEST_SUITE_P: names tests after the interpreter.
struct InterpreterName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

// GoogleTest prints an interpreter with this function, whose name it prescribes.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Interpreter& interpreter, std::ostream* stream);

}  // namespace pyinject::test
