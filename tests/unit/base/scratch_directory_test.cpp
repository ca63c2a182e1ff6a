#include "base/scratch_directory.hpp"

#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::base {
namespace {

namespace filesystem = std::filesystem;

class ScratchDirectoryTest : public testing::Test {
 protected:
  ScratchDirectoryTest() { ::setenv("TMPDIR", directory_.path().c_str(), 1); }
  ~ScratchDirectoryTest() override {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }
  [[nodiscard]] long count() const {
    return std::ranges::distance(filesystem::directory_iterator{directory_.path()},
                                 filesystem::directory_iterator{});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }

 private:
  std::optional<std::string> before_ = std::getenv("TMPDIR") == nullptr
                                           ? std::nullopt
                                           : std::optional<std::string>{std::getenv("TMPDIR")};
  test::TempDir directory_;
};

TEST_F(ScratchDirectoryTest, IsPrivateAndRemovedWithItsFiles) {
  {
    const ScratchDirectory scratch{"-test-"};
    EXPECT_TRUE(scratch.path().starts_with(path("perf-pyinject-test-"))) << scratch.path();
    EXPECT_EQ(filesystem::status(scratch.path()).permissions(), filesystem::perms::owner_all);
    filesystem::create_directories(scratch.path() + "/a/b");
  }
  EXPECT_EQ(count(), 0);
}

TEST_F(ScratchDirectoryTest, RemovesThatOfAKilledProcess) {
  const pid_t killed = ::fork();
  if (killed == 0) {
    const ScratchDirectory scratch{"-"};
    filesystem::create_directories(scratch.path() + "/a/b");
    (void)::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(killed, nullptr, 0), killed);
  ASSERT_EQ(count(), 1) << "left";
  const ScratchDirectory first{"."};
  EXPECT_EQ(count(), 1);
  const ScratchDirectory second{"-serve-"};
  EXPECT_EQ(count(), 2) << "that of a process that lives stays";
}

TEST_F(ScratchDirectoryTest, LeavesWhatItDidNotMake) {
  filesystem::create_directory(path("perf-pyinject-readable"));
  filesystem::create_directory(path("perf-pyinject-other"));
  filesystem::permissions(path("perf-pyinject-other"), filesystem::perms::owner_all);
  filesystem::create_directory_symlink(path("perf-pyinject-other"), path("perf-pyinject-link"));
  if (::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    ASSERT_EQ(::chown(path("perf-pyinject-other").c_str(), kNobody, kNobody), 0);
  }
  const ScratchDirectory scratch{"-"};
  EXPECT_TRUE(filesystem::exists(path("perf-pyinject-readable")));
  EXPECT_TRUE(::geteuid() != 0 || filesystem::exists(path("perf-pyinject-other")));
  EXPECT_TRUE(filesystem::is_symlink(path("perf-pyinject-link")));
}

}  // namespace
}  // namespace pyinject::base
