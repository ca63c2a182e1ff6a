#include "doctor/checks.hpp"

#include <fmt/format.h>

namespace pyinject::doctor {

namespace {

bool is_musl(const std::string& path) { return path.find("ld-musl-") != std::string::npos; }

// PACKAGES: of debug symbols.
Check check_symbols(const Facts& facts, const ProcessFacts& process, std::string_view name,
                    const CodeFile& file, const Packages& packages) {
  if (file.symbols) {
    return ok(name, file.path + " has symbols");
  }
  return {.name = std::string{name},
          .state = State::kLimited,
          .found = fmt::format("{} has no symbols besides those that it exports", file.path),
          .cost = "some of its C functions have no names; Python functions do",
          .remedy = process.other_mounts
                        ? "install its debug symbols where perf report runs, below "
                          "/usr/lib/debug/.build-id"
                        : "install its package of debug symbols, or set DEBUGINFOD_URLS for perf "
                          "report",
          .command = process.other_mounts ? "" : install(facts, packages)};
}

// "/usr/bin/python3.11" is in Debian's package python3.11; other paths are in none.
Packages packages_of(const ProcessFacts& process) {
  const auto& version = process.bpf.version ? process.bpf.version : process.trampoline.version;
  if (!version || !process.interpreter || !process.interpreter->path.starts_with("/usr/bin/")) {
    return {};
  }
  const auto debug = fmt::format("python{}.{}-dbg", version->major, version->minor);
  return {.debian = debug, .ubuntu = debug, .fedora = {}};
}

}  // namespace

std::vector<Check> check_process(const Facts& facts, const ProcessFacts& process) {
  std::vector<Check> checks;
  if (process.interpreter) {
    checks.push_back(check_symbols(facts, process, "interpreter_symbols", *process.interpreter,
                                   packages_of(process)));
  }
  if (process.libc) {
    const auto packages =
        is_musl(process.libc->path)
            ? Packages{}
            : Packages{.debian = "libc6-dbg", .ubuntu = "libc6-dbg", .fedora = {}};
    checks.push_back(check_symbols(facts, process, "libc_symbols", *process.libc, packages));
  }
  if (process.other_mounts) {
    checks.push_back(ok("mounts",
                        "the process has mounts of its own: its files and its perf map are read "
                        "below /proc/PID/root"));
  }
  for (const auto& warning : process.trampoline.warnings) {
    checks.push_back({.name = "warning",
                      .state = State::kLimited,
                      .found = warning,
                      .cost = "a risk of the trampoline",
                      .remedy = "use --engine bpf, which does not change the process"});
  }
  return checks;
}

}  // namespace pyinject::doctor
