// Which perf is used, and what it can do.
#pragma once

#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pyinject::perf {

struct Perf {
  std::string path;
  int major = 0;  // of `perf version`, 0 when it does not say
  int minor = 0;
};

// Where to look; a struct, so that tests need not change the environment.
struct PerfSearch {
  std::optional<std::string> option;       // --perf PATH
  std::optional<std::string> environment;  // PERF
};

// The option, else the environment's, else `perf` on PATH; asked for its version. Throws
// base::Error with the remedy when there is none, when it is a distribution's wrapper without the
// package of the running kernel, or when it does not answer until the deadline.
[[nodiscard]] Perf locate_perf(const PerfSearch& search, base::Deadline deadline);

// The pure parts.
[[nodiscard]] Perf parse_version(const std::string& path, std::string_view output);
[[nodiscard]] bool is_wrapper_complaint(std::string_view output);

// What to tell the user about a `perf record` that ended with STATUS and wrote ERRORS: a complete
// message, with a remedy where the cause is known (no right to open events, no space, no process).
[[nodiscard]] std::string explain_record_failure(base::ExitStatus status, std::string_view errors);

}  // namespace pyinject::perf
