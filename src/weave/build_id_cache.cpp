#include "pyinject/weave/build_id_cache.hpp"

#include "pyinject/base/child.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/text.hpp"

#include <fmt/format.h>

namespace pyinject::weave {

std::optional<std::string> add_to_build_id_cache(const std::string& perf, const std::string& file,
                                                 base::Deadline deadline) {
  base::CapturedRun run;
  try {
    run = base::run_captured({perf, "buildid-cache", "-v", "--add", file}, deadline);
  } catch (const base::SystemError& error) {
    return error.what();
  }
  if (!run.status) {
    return fmt::format("{} buildid-cache did not end in time", perf);
  }
  if (run.status->success()) {
    return std::nullopt;
  }
  return fmt::format(
      "{} buildid-cache: {}", perf,
      run.output.empty() ? base::describe(*run.status) : base::printable(base::trim(run.output)));
}

}  // namespace pyinject::weave
