#include "support/snapshot.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

namespace pyinject::test {

namespace {

using Fields = std::map<std::string, std::string>;

Fields status_fields(const std::string& path, std::initializer_list<std::string_view> wanted) {
  Fields fields;
  const auto text = base::read_file(path).value_or("");
  for (const auto line : base::split(text, '\n')) {
    const auto colon = line.find(':');
    const auto key = line.substr(0, colon);
    if (colon != std::string_view::npos && std::ranges::count(wanted, key) != 0) {
      fields.emplace(key, base::trim(line.substr(colon + 1)));
    }
  }
  return fields;
}

// A healthy process alternates between running, sleeping and disk sleep.
std::string kind_of_state(std::string_view state) {
  constexpr std::string_view kOrdinary = "RSDI";
  return state.empty() || kOrdinary.find(state.front()) != std::string_view::npos
             ? "runs"
             : std::string{state};
}

Fields thread_fields(const std::string& path) {
  auto fields = status_fields(path, {"State", "TracerPid", "SigBlk", "SigPnd"});
  if (const auto state = fields.find("State"); state != fields.end()) {
    state->second = kind_of_state(state->second);
  }
  return fields;
}

std::map<int, std::string> open_files(base::Pid pid) {
  std::map<int, std::string> fds;
  const auto directory = fmt::format("/proc/{}/fd", pid.value());
  std::error_code failed;
  for (std::filesystem::directory_iterator it{directory, failed}, end; !failed && it != end;
       it.increment(failed)) {
    const auto number = base::parse_number<int>(it->path().filename().string());
    const auto link = base::read_link(it->path().string());
    if (number && link) {
      fds.emplace(*number, *link);
    }
  }
  return fds;
}

class Report {
 public:
  void fields(const std::string& who, const Fields& before, const Fields& after) {
    for (const auto& [key, value] : after) {
      const auto old = before.find(key);
      if (old != before.end() && old->second != value) {
        add("{}{} {} was {}", who, key, value, old->second);
      }
    }
  }

  template <typename Key, typename Value, typename Name>
  void entries(const std::map<Key, Value>& before, const std::map<Key, Value>& after, Name name,
               std::string_view gone, std::string_view come) {
    for (const auto& [key, value] : before) {
      if (const auto now = after.find(key); now == after.end() || now->second != value) {
        add("{} {}: {}", name(key), gone, value);
      }
    }
    for (const auto& [key, value] : after) {
      if (const auto old = before.find(key); old == before.end() || old->second != value) {
        add("{} {}: {}", name(key), come, value);
      }
    }
  }

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

// The keys are the parts that must not change; each mapping has one text.
std::map<std::string, std::string> describe(const std::vector<procfs::Mapping>& maps) {
  std::map<std::string, std::string> result;
  for (const auto& mapping : maps) {
    const bool grows = mapping.path == "[heap]" || mapping.path == "[stack]";
    auto range =
        grows ? mapping.path : fmt::format("{:x}-{:x}", mapping.begin.value(), mapping.end.value());
    result.emplace(
        std::move(range),
        fmt::format("{}{}{}{} {}", mapping.readable ? 'r' : '-', mapping.writable ? 'w' : '-',
                    mapping.executable ? 'x' : '-', mapping.shared ? 's' : 'p', mapping.path));
  }
  return result;
}

void compare_threads(const Snapshot& before, const Snapshot& after, bool births, Report& report) {
  for (const auto& [thread, fields] : before.threads) {
    const auto now = after.threads.find(thread);
    if (now != after.threads.end()) {
      report.fields(fmt::format("thread {}: ", thread.value()), fields, now->second);
    } else if (births) {
      report.add("thread {} ended", thread.value());
    }
  }
  for (const auto& [thread, fields] : after.threads) {
    if (births && !before.threads.contains(thread)) {
      report.add("thread {} born", thread.value());
    }
  }
}

}  // namespace

Snapshot take_snapshot(base::Pid pid) {
  Snapshot snapshot;
  for (const auto thread : procfs::list_tasks(pid)) {
    auto fields =
        thread_fields(fmt::format("/proc/{}/task/{}/status", pid.value(), thread.value()));
    if (!fields.empty()) {
      snapshot.threads.emplace(thread, std::move(fields));
    }
  }
  snapshot.process =
      status_fields(fmt::format("/proc/{}/status", pid.value()), {"SigIgn", "SigCgt", "ShdPnd"});
  snapshot.fds = open_files(pid);
  auto maps = procfs::read_maps(pid);
  if (!maps || snapshot.threads.empty() || snapshot.process.empty()) {
    throw base::Error{fmt::format("no snapshot of process {}: it has gone", pid.value())};
  }
  snapshot.maps = std::move(*maps);
  return snapshot;
}

std::vector<std::string> differences(const Snapshot& before, const Snapshot& after,
                                     Comparison what) {
  Report report;
  compare_threads(before, after, what.threads, report);
  report.fields("process: ", before.process, after.process);
  if (what.fds) {
    report.entries(
        before.fds, after.fds, [](int fd) { return fmt::format("fd {}", fd); }, "closed", "opened");
  }
  if (what.maps) {
    report.entries(
        describe(before.maps), describe(after.maps),
        [](const std::string& range) { return "mapping " + range; }, "gone", "new");
  }
  return report.take();
}

}  // namespace pyinject::test
