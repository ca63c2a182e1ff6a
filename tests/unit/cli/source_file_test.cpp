#include "cli/source_file.hpp"

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::cli {
namespace {

using test::ChildProcess;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t kUser = 65533;

// A recording of a process of another user, and sources that it names.
class Sources : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "a process of another user takes root";
    }
    std::filesystem::permissions(directory_.path(), std::filesystem::perms{0755});
  }
  std::string source(const std::string& name, uid_t owner, mode_t mode) {
    const auto path = directory_.file(name, "def secret():\n    pass\n");
    EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  [[nodiscard]] report::SourceFile read(const std::string& path,
                                        const ChildProcess& process) const {
    return source_reader(recording_)(path, static_cast<std::uint32_t>(process.pid().value()));
  }

  test::TempDir directory_{"/tmp"};  // which other users may enter
  std::string recording_ = directory_.file("data", "");
};

TEST_F(Sources, AreShownIfTheProcessMayReadThem) {
  test::ChildOptions options;
  options.uid = kUser;
  ChildProcess process{{"cat"}, options};
  const auto own = source("own.py", kUser, 0600);
  EXPECT_THAT(read(own, process).lines, ElementsAre("def secret():", "    pass", ""));
  EXPECT_THAT(read(source("everybodys.py", 0, 0644), process).lines, testing::SizeIs(3));
  const auto roots = read(source("roots.py", 0, 0640), process);
  EXPECT_THAT(roots.lines, IsEmpty());
  EXPECT_THAT(roots.note, HasSubstr("the user of the process may not read it"));
  // The tool itself is still root.
  EXPECT_EQ(::access(own.c_str(), R_OK), 0);
  EXPECT_EQ(::geteuid(), 0U);
}

TEST_F(Sources, AreShownIfEverybodyMayReadThemWhenTheProcessHasExited) {
  test::ChildOptions options;
  options.uid = kUser;
  ChildProcess process{{"true"}, options};
  ASSERT_TRUE(process.wait(base::Deadline::after(std::chrono::seconds{60})));
  const auto own = read(source("own.py", kUser, 0600), process);
  EXPECT_THAT(own.lines, IsEmpty());
  EXPECT_THAT(own.note, HasSubstr("the process has exited, and not every user may read it"));
  EXPECT_THAT(read(source("everybodys.py", 0, 0644), process).lines, testing::SizeIs(3));
}

// In a container, the same path is another file.
TEST_F(Sources, AreThoseBeneathTheRootOfTheProcess) {
  const auto path = source("same.py", 0, 0644);
  const auto outside = source("outside.py", 0, 0644);
  const auto root = directory_ / "root";
  std::filesystem::create_directories(root + directory_.path().string());
  std::ofstream{root + path} << "inside";
  std::filesystem::create_symlink(outside, root + "/link.py");
  ChildProcess process{{"python3", "-c",
                        "import os, sys\n"
                        "os.chroot(sys.argv[1])\n"
                        "print('inside', flush=True)\n"
                        "sys.stdin.read()",
                        root}};
  ASSERT_EQ(process.read_line(base::Deadline::after(std::chrono::seconds{60})), "inside");
  EXPECT_THAT(read(path, process).lines, ElementsAre("inside"));
  for (const auto& other : {outside, std::string{"/link.py"}}) {
    EXPECT_THAT(read(other, process).note, HasSubstr("cannot be read")) << other;
  }
}

TEST_F(Sources, AreNeitherDirectoriesNorPipes) {
  ChildProcess process{{"cat"}, {}};
  const auto pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  EXPECT_THAT(read(pipe, process).note, HasSubstr("cannot be read"));
  EXPECT_THAT(read(directory_.path(), process).note, HasSubstr("cannot be read"));
  EXPECT_THAT(read("own.py", process).note, HasSubstr("not absolute"));
}

}  // namespace
}  // namespace pyinject::cli
