// Recordings that are made to fail, wholly or in part.
#pragma once

#include "e2e/both_engines.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace pyinject::test {

// Works in `first`; after a line in functions that are new. MEANWHILE runs before them.
[[nodiscard]] std::string working_program(const std::string& meanwhile = {});

class FailedRecordings : public testing::TestWithParam<Recorded> {
 protected:
  void SetUp() override;
  [[nodiscard]] static bool trampoline() { return GetParam().engine == "trampoline"; }
  // Its stacks are callchains of the kernel, which perf's file has without post-processing.
  [[nodiscard]] static bool has_frame_pointers() {
    return trampoline() && GetParam().python.minor >= 15;
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] const TempDir& directory() const { return directory_; }
  PythonProcess& start(const std::string& program = working_program(),
                       const PythonOptions& options = {}) {
    return target_.emplace(GetParam().python, program, options);
  }
  [[nodiscard]] base::Pid process() const { return target_->pid(); }
  [[nodiscard]] std::string pid() const { return std::to_string(process().value()); }
  [[nodiscard]] std::string map() const;
  [[nodiscard]] std::vector<std::string> arguments(std::vector<std::string> more = {},
                                                   const std::string& output = {}) const;
  // `record` with these arguments and MORE until COMMAND has ended.
  [[nodiscard]] std::vector<std::string> record_until(
      const std::vector<std::string>& command = {"true"}, std::vector<std::string> more = {}) const;
  void work() const;
  void limit(__rlimit_resource resource, rlim_t value) const;

  // Records PROGRAM, before and after it goes on to functions that are new. Returns the messages.
  [[nodiscard]] std::string record_new_functions(const std::string& program);

  // No recording is made, and the message has WORDS. PREFIX runs the tool.
  void expect_refused(const std::vector<std::string>& words,
                      const std::vector<std::string>& prefix = {}) const;
  // MESSAGES of `record` have a line with WORDS, and each verb that reads the file has the same.
  void expect_readers_repeat(const std::string& messages, const std::string& words) const;
  // Each verb that reads FILE says what MESSAGE matches.
  void expect_readers_say(const testing::Matcher<std::string>& message,
                          const std::string& file = {}) const;

 private:
  TempDir directory_;
  std::optional<PythonProcess> target_;
};

}  // namespace pyinject::test
