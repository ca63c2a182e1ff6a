#include "record/verbs/rotated_files.hpp"

#include "pyinject/base/directory.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace pyinject::record {

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

bool RotatedFiles::add(const std::string& path) {
  const bool there = exists(path);
  if (there) {
    paths_.push_back(path);
  }
  while (paths_.size() > keep_) {
    const auto oldest = std::move(paths_.front());
    paths_.pop_front();
    const auto place = base::Place::of(oldest);
    place.directory.remove(place.name);
    place.directory.remove(place.name + ".raw");
    place.directory.remove_with_files(place.name + ".names");
  }
  return there;
}

}  // namespace pyinject::record
