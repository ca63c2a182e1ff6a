// A detector and an injector that touch nothing: every process is as the test says.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/procfs/stat.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::test {

class FakeDetector : public python::Detector {
 public:
  python::Detection detect(base::Pid pid) override {
    if (const auto refusal = refusals.find(pid); refusal != refusals.end()) {
      return python::Refused{.refusal = {refusal->second, "the test says so", {}},
                             .version = {},
                             .interpreter = {},
                             .frame_pointers = {}};
    }
    if (only && !only->contains(pid)) {
      return python::Refused{.refusal = {python::Reason::kNotPython, "no Python", {}},
                             .version = {},
                             .interpreter = {},
                             .frame_pointers = {}};
    }
    python::Target target;
    target.id = procfs::read_process_id(pid).value_or(base::ProcessId{.pid = pid});
    target.version = version;
    target.frame_pointers = frame_pointers;
    target.interpreter = "/usr/bin/python3";
    target.state = states.contains(pid) ? states[pid] : python::TrampolineState::kOff;
    target.owner = owners[pid];
    return target;
  }

  bool may_hold_interpreter(base::Pid /*pid*/, const procfs::FileIdentity& /*file*/,
                            const std::string& path) override {
    return path.find("python") != std::string::npos;
  }

  std::map<base::Pid, python::Reason> refusals;
  std::map<base::Pid, python::TrampolineState> states;
  std::map<base::Pid, base::ProcessId> owners;
  std::optional<std::set<base::Pid>> only;  // the others are no Python
  python::Version version{.major = 3, .minor = 15, .micro = 2, .level = 0xf, .serial = 0};
  bool frame_pointers = true;
};

// Keeps a book of what is on, and in which order it was told to do what.
class FakeInjector : public python::Injector {
 public:
  std::variant<python::Activation, python::Refusal> activate(
      const python::Target& target, const python::ActivateOptions& options) override {
    const auto pid = target.id.pid;
    calls.push_back("activate " + std::to_string(pid.value()));
    owner = options.owner;
    if (const auto refusal = activate_refusals.find(pid); refusal != activate_refusals.end()) {
      return python::Refusal{refusal->second, "the test says so", {}};
    }
    python::Activation activation;
    activation.mechanism = python::Mechanism::kPendingQueue;
    activation.before = target.state;
    on.insert(pid);
    if (after_activation) {
      after_activation(pid);
    }
    return activation;
  }

  std::variant<python::Deactivation, python::Refusal> deactivate(
      const python::Target& target, const python::DeactivateOptions& options) override {
    const auto pid = target.id.pid;
    calls.push_back("deactivate " + std::to_string(pid.value()));
    shares.push_back(options.deadline);
    if (const auto refusal = deactivate_refusals.find(pid); refusal != deactivate_refusals.end()) {
      return python::Refusal{refusal->second, "the test says so", {}};
    }
    on.erase(pid);
    return python::Deactivation{};
  }

  std::variant<python::StackUse, python::Refusal> stack_use(
      const python::Target& target, std::chrono::nanoseconds /*deadline*/) override {
    calls.push_back("stack_use " + std::to_string(target.id.pid.value()));
    return python::StackUse{.bytes = 20000, .thread = base::Tid{target.id.pid.value()}};
  }

  std::vector<std::string> calls;
  std::vector<std::chrono::nanoseconds> shares;
  std::set<base::Pid> on;
  std::map<base::Pid, python::Reason> activate_refusals;
  std::map<base::Pid, python::Reason> deactivate_refusals;
  std::function<void(base::Pid)> after_activation;
  python::Owner owner;
};

class RecordingLogger : public base::Logger {
 public:
  void log(base::LogLevel level, std::string_view message) override {
    lines.emplace_back(level, message);
  }
  // All messages of LEVEL, a line each.
  [[nodiscard]] std::string text(base::LogLevel level) const {
    std::string all;
    for (const auto& [one, message] : lines) {
      if (one == level) {
        all += message + "\n";
      }
    }
    return all;
  }

  std::vector<std::pair<base::LogLevel, std::string>> lines;
};

}  // namespace pyinject::test
