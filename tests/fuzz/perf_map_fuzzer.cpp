// The perf map written by a target, and its copy.
#include "base/file.hpp"
#include "base/text.hpp"
#include "fuzz/fuzz.hpp"
#include "perf/perf_map.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "support/temp_dir.hpp"

#include <string>

#include <sys/stat.h>

namespace pyinject::fuzz {
namespace {

void any_line(std::string_view line) {
  const auto entry = perf::parse_perf_map_line(line);
  if (!entry) {
    return;
  }
  require(entry->size != 0 && entry->start + entry->size > entry->start, "an entry has a range");
  require(!entry->name.empty() && line.ends_with(entry->name), "the name is the end of the line");
  auto again = perf::format_perf_map_line(*entry);
  require(again.ends_with('\n'), "a line ends");
  again.pop_back();
  require(is_printable(again), "a line handed on is printable");
  const auto second = perf::parse_perf_map_line(again);
  require(second && second->start == entry->start && second->size == entry->size &&
              second->name == base::printable(entry->name),
          "a line handed on says the same");
}

void any_map(std::span<const std::byte> bytes, std::string_view text, std::uint64_t most) {
  static const test::TempDir directory;
  const auto file = file_with(bytes);
  const base::Pid pid{1};
  const auto copied =
      perf::collect_map(file.get(), pid, {.folder = directory.path(), .most_bytes = most});
  struct stat info {};
  require(copied.copied && ::lstat(copied.path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
              (info.st_mode & 07777U) == 0600,
          "the copy is a file for us alone");
  const auto copy = base::read_file(copied.path).value_or("");
  std::uint64_t names = 0;
  for (const auto line : base::split(copy, '\n')) {
    require(line.empty() || perf::parse_perf_map_line(line), "only lines of the format");
    require(is_printable(line), "only printable lines");
    names += line.empty() ? 0 : 1;
  }
  require(names == copied.names, "the names are counted");
  const auto seen = text.substr(0, most);
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(seen, '\n')) +
                     (seen.empty() || seen.ends_with('\n') ? 0U : 1U);
  require(copied.names + copied.dropped == lines, "each line is copied or counted as dropped");
}

}  // namespace

void run(Input input) {
  const auto most = input.take<std::uint16_t>();
  for (const auto line : base::split(input.text(), '\n')) {
    any_line(line);
  }
  any_map(input.rest(), input.text(), most);
}

}  // namespace pyinject::fuzz
