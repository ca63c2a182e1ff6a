#include "cli/page_sources.hpp"

#include "base/text.hpp"
#include "report/marks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace pyinject::cli {

namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20U;
constexpr std::size_t kMostFiles = 200;

struct FileOfFunctions {
  std::uint64_t self = 0;   // samples whose innermost Python function is in it
  std::uint64_t total = 0;  // in which it is
  std::uint32_t pid = 0;    // a process that ran it
};

std::map<std::string_view, FileOfFunctions> files_of(const report::Profile& profile) {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint32_t>> stacks;  // samples, a process
  for (const auto& sample : profile.samples) {
    auto& [count, pid] = stacks[sample.stack];
    ++count;
    pid = profile.threads[sample.thread].pid;
  }
  std::map<std::string_view, FileOfFunctions> files;
  for (const auto& [stack, sum] : stacks) {
    const auto& [count, pid] = sum;
    std::set<std::string_view> seen;
    bool innermost = true;
    for (const auto frame : report::frames_of(profile, stack)) {
      const auto& function = report::function_of(profile, frame);
      if (function.kind != report::Kind::kPython) {
        continue;
      }
      // Others are code that has no file: "<string>", "<frozen importlib._bootstrap>".
      if (profile.frames[frame].line != 0 && function.file.starts_with('/')) {
        auto& file = files[function.file];
        file.pid = pid;
        file.self += innermost ? count : 0;
        file.total += seen.insert(function.file).second ? count : 0;
      }
      innermost = false;
    }
  }
  return files;
}

}  // namespace

std::vector<exports::PageSource> page_sources(report::Profile& profile,
                                              const report::ReadSource& read) {
  const auto files = files_of(profile);
  std::vector<std::pair<std::string_view, FileOfFunctions>> order(files.begin(), files.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto& one) {
    return std::tie(one.second.self, one.second.total);
  });
  std::vector<exports::PageSource> sources;
  std::vector<std::string> missing;
  std::size_t left = kMostText;
  for (const auto& [file, facts] : order) {
    if (sources.size() == kMostFiles) {
      missing.push_back(
          fmt::format("{}: the page has {} others", base::printable(file), kMostFiles));
      continue;
    }
    auto source = read(std::string{file}, facts.pid);
    auto text = fmt::format("{}", fmt::join(source.lines, "\n"));
    if (source.lines.empty()) {
      missing.push_back(std::move(source.note));
    } else if (text.size() > left) {
      missing.push_back(fmt::format("{}: the page has {} KiB of others", base::printable(file),
                                    (kMostText - left) / 1024));
    } else {
      left -= text.size();
      sources.push_back(
          {.file = std::string{file}, .text = std::move(text), .note = std::move(source.note)});
    }
  }
  if (!missing.empty()) {
    profile.notes.push_back(fmt::format("without the source of {}, such as {}",
                                        base::counted(missing.size(), "file"), missing.front()));
  }
  return sources;
}

std::string sources_text(const std::vector<exports::PageSource>& sources) {
  return sources.empty() ? ""
                         : fmt::format(", with the source of {} (--no-source leaves it out)",
                                       base::counted(sources.size(), "file"));
}

}  // namespace pyinject::cli
