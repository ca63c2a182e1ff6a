#include "cli/reporter.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "pyinject/base/directory.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/record/plan.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using nlohmann::ordered_json;
using python::Reason;

std::string_view name(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::kError:
      return "error";
    case base::LogLevel::kWarning:
      return "warning";
    case base::LogLevel::kInfo:
      return "info";
    case base::LogLevel::kDebug:
      return "debug";
  }
  return "info";
}

std::string_view name(targets::EventKind kind) {
  switch (kind) {
    case targets::EventKind::kDetected:
      return "detected";
    case targets::EventKind::kSkipped:
      return "skipped";
    case targets::EventKind::kActivated:
      return "activated";
    case targets::EventKind::kDeactivated:
      return "deactivated";
    case targets::EventKind::kFailed:
      return "failed";
  }
  return "event";
}

// With -a, most processes are no Python, and many are short-lived.
base::LogLevel level_of(const targets::Event& event) {
  if (event.kind == targets::EventKind::kFailed) {
    return base::LogLevel::kWarning;
  }
  const auto reason = event.reason.value_or(Reason::kDeadline);
  const bool nobody_asks = python::has_gone(reason) || reason == Reason::kNotPython ||
                           reason == Reason::kKernelThread || reason == Reason::kOwnProcess;
  return nobody_asks ? base::LogLevel::kDebug : base::LogLevel::kInfo;
}

ordered_json entry(base::LogLevel level, std::string_view message) {
  return {{"time", record::to_utc(std::chrono::system_clock::now())},
          {"level", name(level)},
          {"message", message}};
}

void write_line(const ordered_json& object) {
  // One write per line, so that lines of several threads do not mix. Replaces invalid UTF-8.
  const std::string line =
      object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
  (void)std::fflush(stderr);
}

// Writes to a FIFO or a device, preserves a link; replaces the contents of a regular file
// atomically.
void replace_file(const std::string& path, const std::string& text) {
  const auto place = base::Place::behind(path);
  struct stat facts {};
  if (::fstatat(place.directory.fd(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(facts.st_mode)) {
    // Only links of /proc remain here, such as the target of /dev/stdout.
    const int follow = S_ISLNK(facts.st_mode) ? 0 : O_NOFOLLOW;
    const base::UniqueFd fd{::openat(place.directory.fd(), place.name.c_str(),
                                     O_WRONLY | O_CLOEXEC | O_NOCTTY | follow)};
    if (!fd.valid()) {
      throw base::SystemError{"cannot write " + path, errno};
    }
    base::write_all(fd.get(), text, path);
    return;
  }
  base::NewFile file{place};
  base::write_all(file.fd(), text, path);
  // The mode that open(2) would have set.
  const auto mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file.fd(), 0666U & ~mask) != 0) {
    throw base::SystemError{"cannot write " + path, errno};
  }
  file.take_place();
}

}  // namespace

void JsonLogger::log(base::LogLevel level, std::string_view message) {
  if (level <= most_) {
    write_line(entry(level, message));
  }
}

void JsonLogger::log(const targets::Event& event) {
  const auto level = level_of(event);
  if (level > most_) {
    return;
  }
  const std::string why =
      event.reason ? fmt::format(" ({})", python::name(*event.reason)) : std::string{};
  auto object = entry(level, fmt::format("pid {}: {}{}", event.pid.value(), name(event.kind), why));
  object["event"] = name(event.kind);
  object["pid"] = event.pid.value();
  object["reason"] = event.reason ? ordered_json(python::name(*event.reason)) : ordered_json{};
  object["duration_us"] =
      std::chrono::duration_cast<std::chrono::microseconds>(event.duration).count();
  write_line(object);
}

void RootWatch::log(base::LogLevel level, std::string_view message) {
  if (level <= base::LogLevel::kWarning && message.find("as root") != std::string_view::npos) {
    names_root_ = true;
  }
  next_.log(level, message);
}

Reporter::Reporter(std::string verb, ReportOptions options, base::LogLevel most, bool color)
    : options_{std::move(options)},
      text_{most, color},
      json_{most},
      watched_{options_.json ? static_cast<base::Logger&>(json_) : text_} {
  report_.verb = std::move(verb);
  report_.begun = std::chrono::system_clock::now();
}

void Reporter::note(const targets::Event& event) {
  report_.times.add(event);
  if (options_.json) {
    json_.log(event);
  }
}

int Reporter::finish(int status) {
  if (!options_.stats) {
    return status;
  }
  report_.elapsed = std::chrono::steady_clock::now() - begun_;
  report_.exit_status = status;
  try {
    replace_file(*options_.stats, record::to_json(report_));
  } catch (const base::Error& error) {
    logger().error("cannot write --stats: {}", error.what());
    return status == 0 ? record::kFailure : status;
  }
  return status;
}

}  // namespace pyinject::cli
