// Machines on which something is missing: mount namespaces whose settings and files are faked, so
// that this machine's own never change.
#pragma once

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {

// Skipped unless run as root.
class DoctoredMachine : public testing::Test {
 protected:
  struct Opinion {
    int status = 0;
    nlohmann::json report;
    // The check of that name, of the machine; null: none.
    [[nodiscard]] nlohmann::json check(const std::string& name) const;
    [[nodiscard]] std::string state(const std::string& name) const;
    // Its process number AT: "ready", or the reason or the checks that prevent ENGINE.
    [[nodiscard]] std::string verdict(std::size_t at, std::size_t engine) const;
  };
  static constexpr std::size_t kTrampoline = 0;
  static constexpr std::size_t kBpf = 1;

  void SetUp() override;
  // Makes the mount namespace, in which MOUNTS (shell commands) have run. False: it cannot be made.
  [[nodiscard]] bool make(const std::string& mounts);
  // Runs SCRIPT, a shell's, there, as USER without any capability if one is given; "$0" is the
  // tool.
  [[nodiscard]] RunResult shell(const std::string& script, const std::string& user = {}) const;
  // Runs doctor --json there, with BEFORE, a shell's words, in front of it.
  [[nodiscard]] Opinion doctor(const std::string& arguments = {}, const std::string& user = {},
                               const std::string& before = {}) const;
  // Runs the command of CHECK there, as root.
  void mend(const nlohmann::json& check) const;
  // perf by which no user may open events while kernel.perf_event_paranoid is above 2, as with
  // Debian's kernels.
  [[nodiscard]] std::string debians_perf() const;

  TempDir directory_{"/tmp"};  // TMPDIR may be closed to USER

 private:
  std::string tool_;
  std::optional<ChildProcess> world_;
};

}  // namespace pyinject::test
