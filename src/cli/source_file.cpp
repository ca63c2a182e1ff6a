#include "cli/source_file.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr std::size_t kLargestSource = std::size_t{8} << 20U;

std::optional<std::time_t> time_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? std::optional{facts.st_mtime} : std::nullopt;
}

report::SourceFile unreadable(const std::string& path, const std::string& why) {
  return {.lines = {}, .note = fmt::format("{}: {}", base::printable(path), why)};
}

// The recording names the file: it may be anything, and may be from another machine.
report::SourceFile read_source(const std::string& path, std::optional<std::time_t> recorded) {
  if (!path.starts_with('/')) {
    return unreadable(path, "the source is not shown: its path is not absolute");
  }
  const base::UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file.valid()) {
    return unreadable(path, fmt::format("the source cannot be read: {}", base::errno_text(errno)));
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return unreadable(path, "the source is not shown: not a regular file");
  }
  if (facts.st_size > static_cast<off_t>(kLargestSource)) {
    return unreadable(path, "the source is not shown: it is larger than 8 MiB");
  }
  report::SourceFile source;
  const auto text = base::read_fd(file.get(), kLargestSource, path);
  for (const auto line : base::split(text, '\n')) {
    source.lines.emplace_back(line);
  }
  if (recorded && facts.st_mtime > *recorded) {
    source.note = fmt::format("{}: the source is newer than the recording: lines may not match",
                              base::printable(path));
  }
  return source;
}

}  // namespace

report::ReadSource source_reader(const std::string& recording) {
  return [recorded = time_of(recording)](const std::string& path) {
    return read_source(path, recorded);
  };
}

}  // namespace pyinject::cli
