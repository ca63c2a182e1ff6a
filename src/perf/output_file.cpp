#include "pyinject/perf/output_file.hpp"

#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#include <array>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace pyinject::perf {

namespace {

// A regular file, a link, or a directory (--threads): perf renames NAME itself and writes a new
// one.
std::optional<struct stat> written(const base::Directory& directory, const std::string& name) {
  struct stat facts {};
  if (::fstatat(directory.fd(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
      !(S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode) || S_ISDIR(facts.st_mode))) {
    return std::nullopt;
  }
  return facts;
}

std::optional<ino_t> inode_of(const base::Directory& directory, const std::string& name) {
  const auto found = written(directory, name);
  return found ? std::optional{found->st_ino} : std::nullopt;
}

// "0.123 MB perf.data (12 samples)" as well as "..., compressed (original 1.2 MB, ratio is 3)".
std::optional<WrittenFile> parse_captured(std::string_view text) {
  constexpr std::string_view kUnit = " MB ";
  const auto unit = text.find(kUnit);
  if (unit == std::string_view::npos) {
    return std::nullopt;
  }
  WrittenFile file;
  file.megabytes = std::strtod(std::string{text.substr(0, unit)}.c_str(), nullptr);
  text.remove_prefix(unit + kUnit.size());
  file.path = text;
  if (const auto compressed = text.find(", compressed ("); compressed != std::string_view::npos) {
    file.path = text.substr(0, compressed);
  }
  const auto end = text.rfind(" samples)");
  const auto open = text.rfind(" (", end);
  if (end != std::string_view::npos && open != std::string_view::npos) {
    auto number = text.substr(open + 2, end - open - 2);
    file.approximate = number.starts_with('~');
    number.remove_prefix(file.approximate ? 1 : 0);
    file.samples = base::parse_number<std::uint64_t>(number);
    file.path = file.path.substr(0, open);
  }
  return file;
}

}  // namespace

std::vector<WrittenFile> parse_written_files(std::string_view errors) {
  constexpr std::string_view kCaptured = "[ perf record: Captured and wrote ";
  constexpr std::string_view kDump = "[ perf record: Dump ";
  constexpr std::string_view kEnd = " ]";
  std::vector<WrittenFile> files;
  for (auto line : base::split(errors, '\n')) {
    const bool dump = line.find(kDump) != std::string_view::npos;
    const auto begin = line.find(dump ? kDump : kCaptured);
    if (begin == std::string_view::npos) {
      continue;
    }
    line.remove_prefix(begin + (dump ? kDump : kCaptured).size());
    line = line.substr(0, line.rfind(kEnd));
    if (line.find(".<timestamp>") != std::string_view::npos) {
      continue;  // the name pattern; each file has its own Dump line
    }
    if (dump) {
      WrittenFile file;
      file.path = line;
      files.push_back(std::move(file));
    } else if (auto file = parse_captured(line)) {
      files.push_back(*std::move(file));
    }
  }
  return files;
}

std::vector<WrittenFile> parse_written_files(std::string_view errors, const Output& output) {
  if (output.several || output.pipe) {
    return parse_written_files(errors);
  }
  constexpr std::string_view kUnit = " MB ";
  std::string text{errors};
  const auto name = std::string{kUnit} + output.path;
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    text.replace(at + kUnit.size(), output.path.size(), "FILE");
  }
  auto files = parse_written_files(text);
  for (auto& file : files) {
    file.path = output.path;
  }
  return files;
}

OutputRollback::OutputRollback(Output output) : output_{std::move(output)} {
  if (output_.pipe || output_.several) {
    return;
  }
  try {
    place_ = base::Place::of(output_.path);
    before_ = inode_of(place_->directory, place_->name);
  } catch (const base::Error&) {  // no such directory: perf reports it
  }
}

void OutputRollback::undo() const {
  const auto now = place_ ? written(place_->directory, place_->name) : std::nullopt;
  if (!now || now->st_ino == before_) {
    return;
  }
  const auto old = place_->name + ".old";
  const bool was_renamed = before_ && inode_of(place_->directory, old) == before_;
  try {
    if (S_ISDIR(now->st_mode) && (was_renamed || !before_)) {
      place_->directory.remove_with_files(place_->name, &*now);
    }
    if (was_renamed) {
      place_->directory.rename(old, place_->name);
    } else if (!before_) {
      place_->directory.remove(place_->name);
    }
  } catch (const base::Error&) {  // leave what perf left
  }
}

}  // namespace pyinject::perf
