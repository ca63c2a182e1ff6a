// The sources that a page shows beside its graph.
#pragma once

#include "export/flamegraph.hpp"
#include "pyinject/report/profile.hpp"
#include "report/annotation.hpp"

#include <string>
#include <vector>

namespace pyinject::cli {

// Of the files of Python functions whose lines PROFILE knows, as far as READ has them, those with
// most samples first: at most 1 MiB. PROFILE gets a note if sources are missing.
[[nodiscard]] std::vector<exports::PageSource> page_sources(report::Profile& profile,
                                                            const report::ReadSource& read);

// ", with the source of 4 files (--no-source leaves it out)"; empty: none.
[[nodiscard]] std::string sources_text(const std::vector<exports::PageSource>& sources);

}  // namespace pyinject::cli
