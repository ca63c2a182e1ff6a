#include "session/rotated_files.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::session {

namespace {

constexpr std::size_t kDigits = 16;

bool exists(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

bool is_time(std::string_view text) {
  return text.size() == kDigits &&
         std::ranges::all_of(text, [](char one) { return one >= '0' && one <= '9'; });
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw base::SystemError{"cannot remove " + path, errno};
  }
}

}  // namespace

RotatedFiles::RotatedFiles(std::string prefix, std::size_t keep)
    : prefix_{std::move(prefix)}, keep_{keep} {
  const std::filesystem::path path{prefix_};
  const std::string begin = path.filename().string() + ".";
  std::error_code error;
  std::filesystem::directory_iterator entries{
      path.has_parent_path() ? path.parent_path() : std::filesystem::path{"."}, error};
  for (; !error && entries != std::filesystem::directory_iterator{}; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code none;
    if (name.starts_with(begin) && is_time(std::string_view{name}.substr(begin.size())) &&
        entries->symlink_status(none).type() == std::filesystem::file_type::regular) {
      paths_.push_back(prefix_ + name.substr(begin.size() - 1));
    }
  }
  std::ranges::sort(paths_);
}

std::string RotatedFiles::name_at(std::chrono::system_clock::time_point time) const {
  using Hundredths = std::chrono::duration<std::int64_t, std::centi>;
  for (auto when = std::chrono::floor<Hundredths>(time);; when += Hundredths{1}) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
    auto name = fmt::format("{}.{:%Y%m%d%H%M%S}{:02}", prefix_,
                            fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                            (when - seconds).count());
    if (!exists(name) && !exists(name + ".raw")) {
      return name;
    }
  }
}

void RotatedFiles::add(const std::string& path) {
  if (exists(path)) {
    paths_.push_back(path);
  }
  while (paths_.size() > keep_) {
    const auto oldest = std::move(paths_.front());
    paths_.pop_front();
    remove_file(oldest);
    remove_file(oldest + ".raw");
    std::error_code error;
    std::filesystem::remove_all(oldest + ".names", error);
    if (error) {
      throw base::SystemError{"cannot remove " + oldest + ".names", error.value()};
    }
  }
}

}  // namespace pyinject::session
