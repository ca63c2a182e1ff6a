#include "cli/source_lines.hpp"

#include "base/text.hpp"
#include "cli/source_file.hpp"
#include "procfs/stat.hpp"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <unistd.h>

namespace pyinject::cli {

namespace {

std::optional<std::time_t> start_of(base::Pid pid) {
  const auto stat = procfs::read_stat(pid);
  if (!stat) {
    return std::nullopt;
  }
  const auto ticks = procfs::ticks_since_boot() - stat->start_time;
  return std::time(nullptr) -
         static_cast<std::time_t>(ticks / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

std::atomic<bool> files_answer{true};

}  // namespace

SourceLines::SourceLines(base::Pid pid)
    : pid_{pid}, valid_{start_of(pid)}, read_{source_reader(std::time(nullptr))} {}

SourceLines::SourceLines(base::Pid pid, std::time_t written)
    : pid_{pid}, valid_{written}, core_{true}, read_{source_reader(written)} {}

std::optional<report::SourceFile> SourceLines::read(const std::string& file) {
  if (!files_answer) {
    silent_ = silent_.empty() ? file : silent_;
    return std::nullopt;
  }
  auto task = std::make_shared<std::packaged_task<report::SourceFile()>>(
      [read = read_, file, pid = static_cast<std::uint32_t>(pid_.value())] {
        return read(file, pid);
      });
  auto result = task->get_future();
  std::thread{[task] { (*task)(); }}.detach();
  if (result.wait_until(until_.when()) != std::future_status::ready) {
    files_answer = false;
    silent_ = file;
    return std::nullopt;
  }
  return result.get();
}

std::string SourceLines::line(const std::string& file, std::uint32_t line) {
  if (!file.starts_with('/') || !valid_) {
    return {};
  }
  const auto [known, fresh] = files_.try_emplace(file);
  if (fresh) {
    auto source = read(file);
    if (source && source->changed > *valid_) {
      newer_.push_back(file);
    } else if (source) {
      known->second = std::move(source->lines);
    }
  }
  const auto& lines = known->second;
  return line == 0 || line > lines.size() ? std::string{}
                                          : std::string{base::trim(lines[line - 1])};
}

std::string SourceLines::note() const {
  if (!silent_.empty()) {
    return fmt::format("without sources: the file system of {} does not answer",
                       base::printable(silent_));
  }
  if (newer_.empty()) {
    return {};
  }
  return fmt::format(
      "without the source of {}{}: {} changed after the {}", base::printable(newer_.front()),
      newer_.size() == 1 ? "" : fmt::format(" and {} more", newer_.size() - 1),
      newer_.size() == 1 ? "it was" : "they were", core_ ? "core was written" : "process started");
}

}  // namespace pyinject::cli
