#include "weave/build_id_cache.hpp"

#include "base/text.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::weave {

namespace {

bool says_added(std::string_view line) {
  return line.starts_with("Adding ") && line.ends_with(": Ok");
}

bool says_failed(std::string_view line) { return line.starts_with("Couldn't add "); }

}  // namespace

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
  // Its status is 0 also when it added nothing (6.1 to 7.2): what it says with -v is what counts.
  const auto lines = base::split(run.output, '\n');
  const auto failed = std::ranges::find_if(lines, says_failed);
  if (run.status->success() && failed == lines.end() && std::ranges::any_of(lines, says_added)) {
    return std::nullopt;
  }
  return fmt::format(
      "{} buildid-cache: {}", perf,
      failed != lines.end() ? base::printable(*failed) : base::describe(*run.status));
}

}  // namespace pyinject::weave
