// A process of a given user, and the tool with exactly the given capabilities.
#pragma once

#include "integration/detection.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pyinject::test {

inline constexpr uid_t kUser = 65534;
inline constexpr uid_t kOther = 65533;

inline constexpr auto kBusy =
    "def leaf(): return sum(range(1000))\n"
    "print('ready', flush=True)\n"
    "while True: leaf()\n";

// Skipped unless run as root.
class Rights : public testing::Test {
 protected:
  void SetUp() override;

  // The prefix that runs a command as user UID with CAPABILITIES, e.g. "+sys_ptrace,+perfmon".
  [[nodiscard]] std::vector<std::string> in_world(uid_t uid, const std::string& capabilities) const;
  // Starts the target.
  void start(uid_t uid, const std::string& program = kIdle);
  // Runs COMMAND as kUser with CAPABILITIES.
  [[nodiscard]] RunResult as_user(const std::string& capabilities,
                                  const std::vector<std::string>& command) const;
  [[nodiscard]] RunResult pyinject(const std::string& capabilities,
                                   std::vector<std::string> arguments) const;
  void expect_works(const std::string& capabilities, const std::string& note = "") const;
  [[nodiscard]] std::string data() const { return directory_.here("out/perf.data"); }
  // OPTIONS of record in addition to the common ones. The recording lasts until the target has
  // worked.
  [[nodiscard]] RunResult record(const std::string& capabilities,
                                 const std::vector<std::string>& options = {"-g"}) const;
  [[nodiscard]] std::string script(const std::string& capabilities) const;
  [[nodiscard]] std::string map() const { return "/tmp/perf-" + pid_ + ".map"; }
  static void expect_private(const std::string& path, uid_t owner);

  Interpreter interpreter_;
  SeenDirectory directory_{Interpreter{}};
  std::optional<ChildProcess> world_;
  std::optional<PythonProcess> python_;
  std::string pid_;
};

// How often TEXT contains WORD.
[[nodiscard]] std::size_t times_in(const std::string& text, const std::string& word);

}  // namespace pyinject::test
