#include "cli/reading_progress.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

constexpr std::chrono::seconds kUntilFirst{1};
constexpr std::chrono::milliseconds kBetweenLines{200};
constexpr std::string_view kErasedLine = "\r\x1b[K";

}  // namespace

ReadingProgress::ReadingProgress(std::string file, Time begin)
    : file_{std::move(file)}, next_{begin + kUntilFirst} {}

std::string ReadingProgress::line(double done, Time now) {
  constexpr double kPercent = 100;
  if (now < next_) {
    return {};
  }
  next_ = now + kBetweenLines;
  drawn_ = true;
  return fmt::format("{}reading {} {:.0f} %", kErasedLine, file_, done * kPercent);
}

std::string ReadingProgress::end() {
  return std::string{std::exchange(drawn_, false) ? kErasedLine : ""};
}

}  // namespace pyinject::cli
