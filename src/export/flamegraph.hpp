// A flame graph as one HTML page, which needs no network and no other file.
#pragma once

#include "pyinject/report/profile.hpp"

#include <string>
#include <vector>

namespace pyinject::exports {

struct PageSource {
  std::string file;  // report::Function::file
  std::string text;
  std::string note;  // what is doubtful about it; may be empty
};

struct FlamegraphOptions {
  std::string title;    // of the page, "web.data"
  std::string facts{};  // below it, "10 s, 4 threads"
  std::string lead{};   // above the graph: what `why` says; may be empty
  std::vector<PageSource> sources{};
};

// The page for PROFILE; BEFORE: null, or an older recording to compare it with. The page holds the
// samples of each interval of 20 ms (longer ones in recordings of more than an hour) as deflated
// JSON; src/export/page draws them. Browsers since 2023 can inflate them.
[[nodiscard]] std::string flamegraph(const report::Profile& profile, const report::Profile* before,
                                     const FlamegraphOptions& options);

}  // namespace pyinject::exports
