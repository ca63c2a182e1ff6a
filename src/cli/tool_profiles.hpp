// Profiles made by `perf-pyinject export` in a process of its own: a crash or a hang of one leaves
// the server and other profiles alone.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/targets/scope.hpp"
#include "serve/profile_maker.hpp"

#include <filesystem>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::cli {

// Which processes clients may ask for.
class ServedProcesses {
 public:
  // PIDS, which exist now (throws base::Error), or if there are none, all in SCOPE.
  ServedProcesses(const std::vector<base::Pid>& pids, targets::Scope scope);

  // The options of `export` for REQUEST.
  [[nodiscard]] std::variant<std::vector<std::string>, serve::Problem> select(
      const serve::ProfileRequest& request) const;

 private:
  // One of PIDS, and a descriptor that tells it from a later process with its pid.
  struct Named {
    base::Pid pid;
    base::UniqueFd pidfd{};
    [[nodiscard]] bool running() const;
  };
  [[nodiscard]] std::variant<std::vector<std::string>, serve::Problem> select_pid(
      base::Pid pid) const;
  [[nodiscard]] std::variant<std::vector<std::string>, serve::Problem> select_named(
      const std::string& comm) const;

  std::vector<Named> named_;
  targets::Scope scope_;
};

class ToolProfiles : public serve::ProfileMaker {
 public:
  // PASSED: further options of each `export`, {"--engine", "bpf"}. Throws base::Error.
  ToolProfiles(ServedProcesses processes, std::vector<std::string> passed)
      : processes_{std::move(processes)}, passed_{std::move(passed)} {}

  [[nodiscard]] serve::ProfileResult make(const serve::ProfileRequest& request,
                                          const std::stop_token& stop) override;

 private:
  [[nodiscard]] serve::ProfileResult run(const serve::ProfileRequest& request,
                                         const std::vector<std::string>& processes,
                                         const std::stop_token& stop) const;

  ServedProcesses processes_;
  std::vector<std::string> passed_;
};

// The Problem that MESSAGES, what a failed `export --log-format json` wrote, tell about.
[[nodiscard]] serve::Problem problem_in(const std::string& messages);

}  // namespace pyinject::cli
