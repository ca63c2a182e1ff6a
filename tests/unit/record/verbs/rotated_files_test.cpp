#include "record/verbs/rotated_files.hpp"

#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace pyinject::record {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class Rotated : public testing::Test {
 protected:
  [[nodiscard]] std::string prefix() const { return directory_ / "perf.data"; }
  [[nodiscard]] std::string make(const std::string& name) const {
    return directory_.file(name, "x");
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{directory_.path()}) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  test::TempDir directory_;  // NOLINT(*-non-private-member-variables-in-classes)
};

TEST_F(Rotated, NamesAreTimesInUtcAndNotInUse) {
  const RotatedFiles files{prefix(), 2};
  // 2026-11-20 22:06:09.128 UTC
  const std::chrono::system_clock::time_point time{milliseconds{1'795'212'369'128}};
  EXPECT_EQ(files.name_at(time), prefix() + ".2026112022060912");
  (void)make("perf.data.2026112022060912");
  EXPECT_EQ(files.name_at(time), prefix() + ".2026112022060913");
  (void)make("perf.data.2026112022060913.raw");
  EXPECT_EQ(files.name_at(time + milliseconds{9}), prefix() + ".2026112022060914");
}

TEST_F(Rotated, OldestGoWithWhatBelongsToThem) {
  RotatedFiles files{prefix(), 2};
  for (const char last : {'1', '2', '3', '4'}) {
    const std::string name = std::string{"perf.data.202611202206090"} + last;
    (void)make(name + ".raw");
    std::filesystem::create_directory(directory_ / (name + ".names"));
    (void)make(name + ".names/python");
    files.add(make(name));
  }
  files.add(prefix() + ".2026112022060905");  // this file was never created
  EXPECT_THAT(names(),
              ElementsAre("perf.data.2026112022060903", "perf.data.2026112022060903.names",
                          "perf.data.2026112022060903.raw", "perf.data.2026112022060904",
                          "perf.data.2026112022060904.names", "perf.data.2026112022060904.raw"));
}

TEST_F(Rotated, ThoseOfAnEarlierRunCountAndNoOthers) {
  (void)make("perf.data.2026112022060902");
  (void)make("perf.data.2026112022060901");
  const std::vector<std::string> others{
      make("perf.data"), make("perf.data.old"), make("perf.data.202611202206090"),
      make("perf.data.2026112022060900.bak"), make("other.data.2026112022060900")};
  std::filesystem::create_directory(prefix() + ".2026112022060900");
  std::filesystem::create_symlink("perf.data", prefix() + ".2026112022060800");
  RotatedFiles files{prefix(), 1};
  EXPECT_THAT(files.paths(),
              ElementsAre(prefix() + ".2026112022060901", prefix() + ".2026112022060902"));
  files.add(make("perf.data.2026112022060903"));
  EXPECT_THAT(files.paths(), ElementsAre(prefix() + ".2026112022060903"));
  EXPECT_EQ(names().size(), others.size() + 3);
  for (const auto& other : others) {
    EXPECT_TRUE(std::filesystem::exists(other)) << other;
  }
}

TEST_F(Rotated, DirectoryThatIsNotThereHoldsNothing) {
  EXPECT_THAT((RotatedFiles{prefix() + ".d/x", 1}.paths()), IsEmpty());
}

}  // namespace
}  // namespace pyinject::record
