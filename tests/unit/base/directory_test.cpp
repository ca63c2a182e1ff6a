#include "pyinject/base/directory.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::base {
namespace {

namespace filesystem = std::filesystem;

class ReplacedDirectory : public testing::Test {
 protected:
  ReplacedDirectory() {
    filesystem::create_directory(parent_ / "recording");
    (void)parent_.file("recording/data", "old");
  }
  [[nodiscard]] std::string replace() const {
    NewFile file{directory_, "recording"};
    EXPECT_EQ(::write(file.fd(), "new", 3), 3);
    return file.take_place_of_directory();
  }

  test::TempDir parent_;
  Directory directory_{parent_.path().string()};
};

TEST_F(ReplacedDirectory, HasAnotherNameUntilItIsRemoved) {
  struct stat facts {};
  ASSERT_EQ(::stat((parent_ / "recording").c_str(), &facts), 0);
  const auto old = replace();
  EXPECT_EQ(read_file(parent_ / "recording"), "new");
  EXPECT_EQ(read_file(parent_ / (old + "/data")), "old");
  directory_.remove_with_files(old, &facts);
  EXPECT_FALSE(filesystem::exists(parent_ / old));
  EXPECT_EQ(read_file(parent_ / "recording"), "new");
}

// Its owner may be hostile.
TEST_F(ReplacedDirectory, IsNotAnotherOne) {
  struct stat facts {};
  ASSERT_EQ(::stat((parent_ / "recording").c_str(), &facts), 0);
  const auto old = replace();
  filesystem::rename(parent_ / old, parent_ / "moved");
  filesystem::create_directory(parent_ / old);
  (void)parent_.file(old + "/precious", "kept");
  EXPECT_THROW(directory_.remove_with_files(old, &facts), Error);
  EXPECT_EQ(read_file(parent_ / (old + "/precious")), "kept");
  filesystem::remove_all(parent_ / old);
  (void)parent_.file(old, "kept");
  EXPECT_THROW(directory_.remove_with_files(old, &facts), Error);
  EXPECT_EQ(read_file(parent_ / old), "kept");
}

TEST_F(ReplacedDirectory, StaysIfTheNewFileCannotTakeItsPlace) {
  filesystem::rename(parent_ / "recording", parent_ / "elsewhere");
  EXPECT_THROW((void)replace(), Error);
  EXPECT_EQ(read_file(parent_ / "elsewhere/data"), "old");
  EXPECT_FALSE(filesystem::exists(parent_ / "recording"));
  EXPECT_FALSE(filesystem::exists(parent_ / "recording.new0"));
}

}  // namespace
}  // namespace pyinject::base
