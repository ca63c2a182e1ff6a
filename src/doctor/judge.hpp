// Judges the facts: what is fine, what is missing, what that costs, and what to do. Pure.
#pragma once

#include "doctor/facts.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::doctor {

enum class State {
  kOk,
  kLimited,  // an engine can record, with less
  kFailed,   // no engine can record
};
[[nodiscard]] std::string_view name(State state);  // "ok", "limited", "failed"

inline constexpr std::string_view kTrampoline = "trampoline";
inline constexpr std::string_view kBpf = "bpf";

struct Check {
  std::string name;  // stable
  State state = State::kOk;
  std::string found = {};
  std::string cost = {};                      // what the user does not get; empty if kOk
  std::string remedy = {};                    // for people; may be empty
  std::string command = {};                   // for a shell; empty: no command alone changes it
  std::vector<std::string_view> blocks = {};  // engines that cannot record
};

// Whether `record -p` with an engine would work.
struct Outlook {
  std::string_view engine;
  std::vector<std::string> blocked_by = {};     // names of checks of the machine
  std::optional<python::Refusal> refusal = {};  // of the process
  [[nodiscard]] bool works() const { return blocked_by.empty() && !refusal; }
};

struct ProcessJudgement {
  targets::ProcessStatus status;
  std::vector<Outlook> engines;
  std::vector<Check> checks;
};

struct Judgement {
  std::vector<Check> checks;     // of the machine
  std::vector<Outlook> engines;  // for a process of the user
  std::vector<ProcessJudgement> processes;
  // Some engine works: with each of the processes, or without any, on this machine.
  [[nodiscard]] bool works() const;
};

[[nodiscard]] Judgement judge(const Facts& facts);

}  // namespace pyinject::doctor
