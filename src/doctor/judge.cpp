#include "doctor/judge.hpp"

#include "doctor/checks.hpp"

#include <algorithm>

namespace pyinject::doctor {

namespace {

// Which checks of the machine prevent ENGINE from recording PROCESS; nullptr: any of the user.
Outlook outlook(std::string_view engine, const std::vector<Check>& checks,
                const targets::ProcessStatus* process) {
  Outlook result{.engine = engine};
  for (const auto& check : checks) {
    // The detector has tried whether PROCESS may be traced.
    const bool tried = process != nullptr && check.name == "yama";
    if (!tried && std::ranges::find(check.blocks, engine) != check.blocks.end()) {
      result.blocked_by.push_back(check.name);
    }
  }
  if (process != nullptr) {
    result.refusal = process->refusal;
  }
  return result;
}

bool any_works(const std::vector<Outlook>& engines) {
  return std::ranges::any_of(engines, &Outlook::works);
}

std::vector<Check> check_machine(const Facts& facts) {
  std::vector<Check> checks;
  check_perf(facts, checks);
  checks.push_back(check_paranoid(facts));
  checks.push_back(check_max_stack(facts));
  checks.push_back(check_mlock(facts));
  checks.push_back(check_kernel(facts));
  checks.push_back(check_btf(facts));
  checks.push_back(check_lockdown(facts));
  checks.push_back(check_bpf(facts));
  check_capabilities(facts, checks);
  checks.push_back(check_yama(facts));
  checks.push_back(check_seccomp(facts));
  checks.push_back(check_kptr_restrict(facts));
  checks.push_back(check_tracefs(facts));
  checks.push_back(check_pid_namespace(facts));
  checks.push_back(check_hidepid(facts));
  checks.push_back(check_directory(facts));
  checks.push_back(check_build(facts));
  return checks;
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kLimited:
      return "limited";
    case State::kFailed:
      return "failed";
  }
  return "";
}

bool Judgement::works() const {
  if (processes.empty()) {
    return any_works(engines);
  }
  return std::ranges::all_of(processes,
                             [](const auto& process) { return any_works(process.engines); });
}

Judgement judge(const Facts& facts) {
  Judgement judgement;
  judgement.checks = check_machine(facts);
  for (const auto engine : every_engine()) {
    judgement.engines.push_back(outlook(engine, judgement.checks, nullptr));
  }
  for (const auto& process : facts.processes) {
    judgement.processes.push_back(
        {.status = process.trampoline,
         .engines = {outlook(kTrampoline, judgement.checks, &process.trampoline),
                     outlook(kBpf, judgement.checks, &process.bpf)},
         .checks = check_process(facts, process)});
  }
  return judgement;
}

}  // namespace pyinject::doctor
