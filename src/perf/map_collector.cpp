#include "pyinject/perf/map_collector.hpp"

#include "base/fault.hpp"
#include "base/file.hpp"
#include "perf/perf_map.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::perf {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;

// Removes the temporary file unless it was renamed.
class TemporaryFile {
 public:
  // O_EXCL, mode 0600, and an unpredictable name: the directory is writable by everyone.
  TemporaryFile(std::string path, const std::string& subject) : path_{std::move(path)} {
    path_ += ".XXXXXX";
    fd_.reset(::mkostemp(path_.data(), O_CLOEXEC));
    if (!fd_.valid()) {
      throw base::SystemError{subject + ": cannot create " + path_, errno};
    }
  }
  ~TemporaryFile() {
    if (!renamed_) {
      ::unlink(path_.c_str());
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  void rename_to(const std::string& path, const std::string& subject) {
    if (::rename(path_.c_str(), path.c_str()) != 0) {
      throw base::SystemError{subject + ": cannot rename the copy of its map to " + path, errno};
    }
    renamed_ = true;
  }

 private:
  std::string path_;
  base::UniqueFd fd_;
  bool renamed_ = false;
};

class LineCopier {
 public:
  LineCopier(int to, std::string subject, CollectedMap& result)
      : to_{to}, subject_{std::move(subject)}, result_{result} {}

  void take(std::string_view data) {
    while (!data.empty()) {
      const auto newline = data.find('\n');
      const auto piece = data.substr(0, newline);
      if (line_.size() + piece.size() > kLongestLine) {
        too_long_ = true;
      } else {
        line_ += piece;
      }
      if (newline == std::string_view::npos) {
        return;
      }
      end_line();
      data.remove_prefix(newline + 1);
    }
  }

  // Drops an unfinished last line: perf could take half a name for a complete one.
  void finish() {
    result_.dropped += line_.empty() && !too_long_ ? 0 : 1;
    base::write_all(to_, out_, subject_);
  }
  // Escaping can make a name four times as long.
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  void end_line() {
    const auto entry = too_long_ ? std::nullopt : parse_perf_map_line(line_);
    if (entry) {
      out_ += format_perf_map_line(*entry);
      ++result_.names;
    } else {
      ++result_.dropped;
    }
    line_.clear();
    too_long_ = false;
    if (out_.size() > kLongestLine) {
      base::write_all(to_, out_, subject_);
      written_ += out_.size();
      out_.clear();
    }
  }

  int to_;
  std::string subject_;
  CollectedMap& result_;
  std::string line_;
  std::string out_;
  bool too_long_ = false;
  std::uint64_t written_ = 0;
};

std::string path_of(base::Pid pid, const MapCollectorOptions& options) {
  return fmt::format("{}/perf-{}.map", options.folder, pid.value());
}

// Whether PATH is FD's file. Does not follow links.
bool is_in_place(int fd, const std::string& path, const std::string& subject) {
  struct stat from {};
  struct stat there {};
  if (::fstat(fd, &from) != 0 || !S_ISREG(from.st_mode)) {
    throw base::Error{subject + ": its perf map is not a regular file: not copied"};
  }
  return ::lstat(path.c_str(), &there) == 0 && there.st_dev == from.st_dev &&
         there.st_ino == from.st_ino;
}

}  // namespace

void remove_unfinished_copies(base::Pid tool, const MapCollectorOptions& options) {
  const std::string owner = fmt::format(".map.{}.", tool.value());
  std::error_code error;
  for (std::filesystem::directory_iterator entry{options.folder, error}, end;
       !error && entry != end; entry.increment(error)) {
    const auto name = entry->path().filename().string();
    struct stat facts {};
    // Do not follow links or touch other users' files: the directory is writable by everyone.
    if (name.starts_with(".perf-") && name.find(owner) != std::string::npos &&
        ::lstat(entry->path().c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
        facts.st_uid == ::geteuid()) {
      ::unlink(entry->path().c_str());
    }
  }
}

CollectedMap collect_map(int fd, base::Pid pid, const MapCollectorOptions& options) {
  const std::string subject = fmt::format("pid {}", pid.value());
  CollectedMap result;
  result.path = path_of(pid, options);
  if (is_in_place(fd, result.path, subject)) {
    return result;
  }
  TemporaryFile copy{fmt::format("{}/.perf-{}.map.{}", options.folder, pid.value(), ::getpid()),
                     subject};
  base::reached(base::Step::kMapCopyBegun);
  LineCopier copier{copy.fd(), subject + ": the copy of its map", result};
  std::vector<char> buffer(kLongestLine);
  std::uint64_t offset = 0;
  while (!result.cut_short) {
    const auto want = std::min<std::uint64_t>(buffer.size(), options.most_bytes - offset);
    const ssize_t got = ::pread(fd, buffer.data(), want, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw base::SystemError{subject + ": cannot read its perf map", errno};
    }
    if (got == 0) {
      break;
    }
    copier.take({buffer.data(), static_cast<std::size_t>(got)});
    offset += static_cast<std::uint64_t>(got);
    result.cut_short = offset >= options.most_bytes || copier.written() >= options.most_bytes;
  }
  copier.finish();
  copy.rename_to(result.path, subject);
  base::reached(base::Step::kMapCopied);
  result.copied = true;
  return result;
}

}  // namespace pyinject::perf
