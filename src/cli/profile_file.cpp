#include "cli/profile_file.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/page_sources.hpp"
#include "cli/source_file.hpp"
#include "export/flamegraph.hpp"
#include "pyinject/export/formats.hpp"

#include <fmt/format.h>

#include <ctime>
#include <string>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

constexpr std::string_view kPage = ".html";

}  // namespace

void ProfileFile::require_suffix(const std::string& path) {
  if (path.ends_with(kPage) || exports::format_of_file(path) != nullptr) {
    return;
  }
  std::string suffixes{kPage};
  for (const auto& format : exports::formats()) {
    suffixes += fmt::format(", {}", format.suffix);
  }
  throw CommandLineError{fmt::format("-o {}: expected a name that ends with one of: {}",
                                     base::printable(path), suffixes),
                         record::kUsage};
}

void ProfileFile::write(report::Profile profile, const Head& head, base::Logger& logger) {
  const auto facts = profile.samples.empty() ? "no samples" : facts_of(profile);
  const auto all = profile.lost + profile.samples.size();
  if (profile.lost != 0) {
    profile.notes.push_back(
        fmt::format("{} of {} samples and waits are missing", profile.lost, all));
  }
  std::string with_sources;
  const auto* const format = exports::format_of_file(path_);
  if (format == nullptr) {
    exports::FlamegraphOptions options{.title = head.title, .lead = head.lead};
    if (head.sources) {
      options.sources = page_sources(profile, source_reader(std::time(nullptr)));
      with_sources = sources_text(options.sources);
    }
    options.facts = page_facts(profile, true);
    file_.write(exports::flamegraph(profile, nullptr, options));
  } else {
    if (!format->caution.empty()) {
      logger.warning("{}", format->caution);
    }
    format->write(profile, [this](std::string_view text) { file_.write(text); });
  }
  file_.complete();
  if (profile.lost != 0) {
    logger.warning("{}: {} of {} samples and waits are missing: a lower -F, or a shorter -d, helps",
                   base::printable(path_), profile.lost, all);
  }
  logger.info("{}: {}{}", base::printable(path_), facts, with_sources);
}

}  // namespace pyinject::cli
