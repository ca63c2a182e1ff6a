// Finds the perf to use and its version.
//
// For example:
//   const auto perf = perf::locate_perf({}, base::Deadline::after(std::chrono::seconds{5}));
//   std::cout << perf.path << ' ' << perf.major << '.' << perf.minor << '\n';
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pyinject::perf {

struct Perf {
  std::string path;
  int major = 0;  // from `perf version`; 0: unknown
  int minor = 0;
  bool own = false;  // PATH is this tool, which records by itself
};

// Who records.
enum class RecorderChoice {
  kPerfOrOwn,  // this tool itself if no perf is installed
  kPerf,
  kOwn,
  kOwnUnlessNamed,  // a perf by SEARCH's option or environment; none on PATH is looked for
};

// Where to look; a struct so that tests need not change the environment.
struct PerfSearch {
  std::optional<std::string> option;       // --perf PATH
  std::optional<std::string> environment;  // PERF
  RecorderChoice recorder = RecorderChoice::kPerf;
  // Without kPerf: a program that runs recorder::record(), such as /proc/self/exe.
  std::string own = {};
};

// Tries the option, then the environment, then `perf` on PATH, and asks it for its version. With
// kPerfOrOwn, SEARCH.own takes its place if no perf is on PATH, or only a distribution's wrapper
// without the package for the running kernel. Otherwise throws base::Error with the remedy if there
// is no perf, or if it does not answer before the deadline. With kOwn it looks for none, nor with
// kOwnUnlessNamed if none is named.
[[nodiscard]] Perf locate_perf(const PerfSearch& search, base::Deadline deadline);

// The perf that reads on this machine what RECORDER writes: itself, or the one that SEARCH finds;
// nullopt: there is none (with kOwnUnlessNamed, none is looked for), or it does not answer before
// the deadline.
[[nodiscard]] std::optional<Perf> locate_reader(const Perf& recorder, const PerfSearch& search,
                                                base::Deadline deadline);

// perf 7 asks addr2line(1) for inlined functions: `perf report` and `perf script` of 7.2 are killed
// by SIGPIPE at the first callchain if PATH has no addr2line, unless they get --no-inline.
[[nodiscard]] bool lacks_addr2line(const Perf& perf);

// The pure parts, exposed for tests.
[[nodiscard]] Perf parse_version(const std::string& path, std::string_view output);
[[nodiscard]] bool is_wrapper_complaint(std::string_view output);

// A complete message for the user about a `perf record` that ended with STATUS and wrote ERRORS,
// with a remedy if the cause is known (no right to open events, no space, no process).
[[nodiscard]] std::string explain_record_failure(base::ExitStatus status, std::string_view errors);

}  // namespace pyinject::perf
