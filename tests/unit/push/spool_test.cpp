#include "push/spool.hpp"

#include "push/spool_entry.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/fake/logger.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace pyinject::push {
namespace {

using base::LogLevel;
using testing::HasSubstr;

constexpr const char* kStore = "pyroscope=http://127.0.0.1:1";

SpoolEntry made_entry(std::size_t size = 100, const std::string& destination = kStore) {
  return {.id = new_id(),
          .destination = destination,
          .request = {.path = "/push", .headers = {"A: b"}, .body = std::string(size, '\0')}};
}

class SpoolTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_ / "spool"; }
  Spool open(std::uint64_t most = kSpoolBytes) { return Spool{path(), most, logger_}; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator{path()}) {
      all.push_back(entry.path().filename());
    }
    std::ranges::sort(all);
    return all;
  }
  [[nodiscard]] std::string warnings() const { return logger_.text(LogLevel::kWarning); }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }
  std::string error() {
    try {
      (void)open();
    } catch (const base::Error& thrown) {
      return thrown.what();
    }
    return "";
  }

 private:
  test::TempDir directory_;
  fake::Logger logger_;
};

TEST_F(SpoolTest, EntriesOutliveTheProcess) {
  const auto first = made_entry();
  auto second = made_entry(0);
  second.request.path.clear();
  const auto other = made_entry(5, "parca=http://127.0.0.1:2");
  {
    auto spool = open();
    for (const auto& entry : {first, second, other}) {
      EXPECT_TRUE(spool.add(entry));
    }
    EXPECT_EQ(spool.take(kStore)->id, first.id);
  }
  struct stat facts {};
  ASSERT_EQ(::stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  auto spool = open();
  EXPECT_EQ(spool.count(), 3U);
  EXPECT_EQ(spool.count(kStore), 2U);
  const auto taken = spool.take(kStore);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->id, first.id);
  EXPECT_EQ(taken->request.path, "/push");
  EXPECT_EQ(taken->request.headers, std::vector<std::string>{"A: b"});
  EXPECT_EQ(taken->request.body, first.request.body);
  const auto without_path = spool.take(kStore);
  ASSERT_TRUE(without_path);
  EXPECT_EQ(without_path->id, second.id);
  EXPECT_EQ(without_path->request.path, "");
  EXPECT_FALSE(spool.take(kStore));
  spool.put_back(second.id);
  LiveCounts live;
  spool.remove(first.id, live.pushed);
  EXPECT_EQ(spool.take(kStore)->id, second.id);
  spool.remove(second.id, live.dropped);
  const auto totals = spool.totals(live);
  EXPECT_EQ(totals.pushed, 1U);
  EXPECT_EQ(totals.dropped, 1U);
  EXPECT_EQ(totals.spooled, 1U);
  EXPECT_EQ(files().size(), 1U) << "of the other store";
  EXPECT_EQ(spool.dropped(), 0U);
}

TEST_F(SpoolTest, DropsTheOldestWhenItIsFull) {
  auto spool = open(3500);
  std::vector<SpoolEntry> entries;
  for (int i = 0; i < 6; ++i) {
    entries.push_back(made_entry(800));
    EXPECT_TRUE(spool.add(entries.back()));
    if (i == 0) {
      EXPECT_EQ(spool.take(kStore)->id, entries[0].id);
    }
  }
  EXPECT_EQ(spool.count(), 3U);
  EXPECT_EQ(spool.dropped(), 3U);
  EXPECT_THAT(warnings(), HasSubstr("is full: 1 oldest profile dropped"));
  EXPECT_EQ(spool.take(kStore)->id, entries[4].id) << "the one that is under way stays";
  EXPECT_FALSE(spool.add(made_entry(4000)));
  EXPECT_EQ(spool.count(), 3U) << "an entry that cannot fit drops no other";
  EXPECT_EQ(spool.dropped(), 4U);
}

TEST_F(SpoolTest, ShrinksToASmallerLimit) {
  {
    auto spool = open();
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(spool.add(made_entry(800)));
    }
  }
  auto spool = open(2500);
  EXPECT_EQ(spool.count(), 2U);
  EXPECT_EQ(spool.dropped(), 3U);
}

TEST_F(SpoolTest, LeavesForeignFilesAlone) {
  std::string name;
  {
    auto spool = open();
    EXPECT_TRUE(spool.add(made_entry()));
    name = files().front();
  }
  std::filesystem::rename(path() + "/" + name, directory() / "elsewhere");
  std::filesystem::create_symlink(directory() / "elsewhere", path() + "/" + name);
  (void)directory().file("spool/README", "not ours");
  std::filesystem::create_directory(path() + "/x.push");
  auto spool = open();
  EXPECT_EQ(spool.count(), 0U);
  EXPECT_THAT(warnings(), HasSubstr(name + ": not a regular file of this user; skipped"));
  EXPECT_EQ(files().size(), 3U);
  EXPECT_TRUE(std::filesystem::exists(directory() / "elsewhere"));
}

TEST_F(SpoolTest, RemovesDamagedEntriesAndLeftovers) {
  std::vector<SpoolEntry> entries;
  {
    auto spool = open();
    for (int i = 0; i < 4; ++i) {
      entries.push_back(made_entry());
      EXPECT_TRUE(spool.add(entries.back()));
    }
  }
  const auto names = files();
  std::filesystem::resize_file(path() + "/" + names[0], 60);  // within its head
  std::filesystem::resize_file(path() + "/" + names[1], 200);
  (void)directory().file("spool/" + names[3] + ".new0", "killed here");
  {
    // The same size, another body.
    const auto file = path() + "/" + names[2];
    auto text = test::contents_of(file);
    text.back() = 'x';
    (void)directory().file("spool/" + names[2], text);
  }
  auto spool = open();
  EXPECT_EQ(spool.count(), 2U);
  EXPECT_EQ(spool.take(kStore)->id, entries[3].id);
  EXPECT_EQ(spool.dropped(), 3U);
  EXPECT_EQ(files(), std::vector<std::string>{names[3]});
  EXPECT_THAT(warnings(), HasSubstr(names[2] + " is damaged: removed"));
}

TEST_F(SpoolTest, IsForOneProcess) {
  const auto spool = open();
  EXPECT_THAT(error(), HasSubstr("is in use by another perf-pyinject: give each its own"));
}

TEST_F(SpoolTest, MustBePrivate) {
  std::filesystem::create_directory(path());
  ASSERT_EQ(::chmod(path().c_str(), 0750), 0);
  EXPECT_THAT(error(), HasSubstr("accessible to other users: chmod 700"));
  ASSERT_EQ(::chmod(path().c_str(), 0777), 0);
  EXPECT_THAT(error(), HasSubstr("writable by other users"));
  std::filesystem::rename(path(), directory() / "other");
  ASSERT_EQ(::chmod((directory() / "other").c_str(), 0700), 0);
  std::filesystem::create_symlink(directory() / "other", path());
  EXPECT_THAT(error(), HasSubstr("cannot use " + path() + " as a directory"));
}

TEST(SpoolEntryTest, DamagedTextIsRefused) {
  const auto entry = made_entry(10);
  const auto text = encode(entry);
  EXPECT_EQ(decode(text)->id, entry.id);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(decode(text.substr(0, length))) << length;
  }
  EXPECT_FALSE(decode(text + "x"));
  for (const auto* const head : {"", "{}", "[]", "null", R"({"version":1})", R"({"version":2})"}) {
    EXPECT_FALSE(decode(std::string{head} + "\nbody")) << head;
  }
  auto injected = entry;
  injected.request.headers = {"A: b\r\nX: y"};
  EXPECT_FALSE(decode(encode(injected)));
  injected.request.headers.clear();
  injected.request.path = "http://elsewhere";
  EXPECT_FALSE(decode(encode(injected)));
}

TEST(SpoolEntryTest, IdsAreRandomUuids) {
  const auto id = new_id();
  EXPECT_TRUE(is_id(id));
  EXPECT_EQ(id[14], '4');
  EXPECT_NE(id, new_id());
  for (const auto* const text :
       {"", "01234567-89ab-4cde-8f01-23456789abc", "01234567-89AB-4cde-8f01-23456789abcd",
        "01234567089ab-4cde-8f01-23456789abcd"}) {
    EXPECT_FALSE(is_id(text)) << text;
  }
}

}  // namespace
}  // namespace pyinject::push
