// What is known about a command's Python before it runs, compared with the running process.
#include "record/command_interpreter.hpp"
#include "support/attach.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace pyinject::record {
namespace {

namespace filesystem = std::filesystem;

constexpr const char* kWaits = "import sys; print('ready', flush=True); sys.stdin.read()";

class EachInterpreter : public testing::TestWithParam<test::Interpreter> {};

TEST_P(EachInterpreter, IsKnownByItsFile) {
  const auto& python = GetParam();
  test::PythonProcess process{python, kWaits};
  test::Attach attach;
  const auto target = attach.detect(process.pid());
  const auto found = python::find_interpreter_in_file(target.interpreter);
  ASSERT_TRUE(found) << target.interpreter;
  EXPECT_EQ(found->version, target.version);
  EXPECT_EQ(found->frame_pointers, target.frame_pointers);
  EXPECT_FALSE(found->refusal) << python::describe(*found->refusal);
}

INSTANTIATE_TEST_SUITE_P(Pythons, EachInterpreter,
                         testing::ValuesIn(test::interpreters({.both_ways = true})),
                         test::InterpreterName{});

// A link named pythonN to an executable, since it is recognized by that name.
class CommandsPython : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& python : test::interpreters({.root = false})) {
      const auto known =
          python.command.size() == 1 ? find_command_interpreter(python.command, "") : std::nullopt;
      if (known) {
        version_ = known->file.version;
        filesystem::create_symlink(python.command.front(), directory_.path() / "python3.x");
        return;
      }
    }
    GTEST_SKIP() << "every interpreter is started by a script";
  }
  [[nodiscard]] std::string link() const { return directory_ / "python3.x"; }
  [[nodiscard]] std::string script(const std::string& name, const std::string& text) const {
    auto path = directory_.file(name, text);
    filesystem::permissions(path, filesystem::perms::owner_all);
    return path;
  }
  [[nodiscard]] std::string directory() const { return directory_.path().string(); }
  // The option by which it ignores its environment; "?" if it is not recognized.
  [[nodiscard]] std::string isolated(const std::vector<std::string>& command) const {
    const auto found = find_command_interpreter(command, directory() + ":/usr/bin:/bin");
    if (!found) {
      return "?";
    }
    EXPECT_EQ(found->file.version, version_);
    return found->isolated;
  }

 private:
  test::TempDir directory_;
  python::Version version_;
};

TEST_F(CommandsPython, IsFoundThroughScriptsAndEnv) {
  EXPECT_EQ(isolated({link(), "app.py"}), "");
  EXPECT_EQ(isolated({"python3.x", "app.py"}), "") << "on PATH";
  const auto direct = script("direct", "#!" + link() + " -E\nprint()\n");
  EXPECT_EQ(isolated({direct, "-I"}), "-E");
  EXPECT_EQ(isolated({"direct"}), "-E");
  EXPECT_EQ(isolated({script("by-env", "#! /usr/bin/env python3.x\n")}), "");
  EXPECT_EQ(isolated({script("split", "#!/usr/bin/env -S python3.x -u -I\n")}), "-I");
  EXPECT_EQ(isolated({script("nested", "#!" + direct + "\n")}), "-E");
  EXPECT_EQ(isolated({"env", "A=1", "B=", "python3.x"}), "");
}

TEST_F(CommandsPython, IsNotGuessed) {
  EXPECT_EQ(isolated({"sh", "-c", "python3.x"}), "?");
  EXPECT_EQ(isolated({"env", "-i", "python3.x"}), "?");
  EXPECT_EQ(isolated({"env"}), "?");
  EXPECT_EQ(isolated({script("shell", "#!/bin/sh\n")}), "?");
  EXPECT_EQ(isolated({script("python-like", "no program")}), "?");
  const auto loop = directory() + "/loop";
  EXPECT_EQ(isolated({script("loop", "#!" + loop + "\n")}), "?");
  EXPECT_EQ(isolated({"no-such-command"}), "?");
}

TEST_F(CommandsPython, OptionsThatIgnoreTheEnvironmentAreRecognised) {
  EXPECT_EQ(isolated({link(), "-I", "x"}), "-I");
  EXPECT_EQ(isolated({link(), "-sE", "-c", "pass"}), "-E");
  EXPECT_EQ(isolated({link(), "-W", "ignore", "-uI"}), "-I");
  for (const auto& behind : {"-cI", "-mI", "-WI", "-XI", "-", "app.py"}) {
    EXPECT_EQ(isolated({link(), behind}), "") << behind;
  }
  EXPECT_EQ(isolated({link(), "app.py", "-I"}), "");
  EXPECT_EQ(isolated({link(), "-X", "-I", "app.py"}), "");
  EXPECT_EQ(isolated({link(), "--check-hash-based-pycs", "always", "-I"}), "-I");
}

}  // namespace
}  // namespace pyinject::record
