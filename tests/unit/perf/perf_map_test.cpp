#include "perf/perf_map.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::perf {
namespace {

TEST(ParsePerfMapLine, TakesPerfsFormatOnly) {
  const auto entry = parse_perf_map_line("7f0012 b py::f:/tmp/a b.py");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->start, 0x7f0012U);
  EXPECT_EQ(entry->size, 0xbU);
  EXPECT_EQ(entry->name, "py::f:/tmp/a b.py");
  EXPECT_TRUE(parse_perf_map_line("0x10 0x4 n"));
  for (const auto* line : {"", "1", "1 2", "1 2 ", "g 2 n", "1 -2 n", "1  2 n", "1 0 n",
                           "ffffffffffffffff 2 n", "10000000000000000 1 n"}) {
    EXPECT_FALSE(parse_perf_map_line(line)) << line;
  }
}

class CollectMap : public testing::Test {
 protected:
  base::UniqueFd open(const std::string& name, const std::string& text) {
    return base::UniqueFd{::open(directory_.file(name, text).c_str(), O_RDONLY | O_CLOEXEC)};
  }
  [[nodiscard]] MapCollectorOptions options() const {
    return {.folder = directory_.path().string()};
  }

  test::TempDir directory_;
};

TEST_F(CollectMap, CopiesWholeLinesOnly) {
  const auto fd = open("inner.map", "10 4 py::a\nrubbish\n20 4 py::b\x1b[2J\n30 4 py::unfinish");
  const auto map = collect_map(fd.get(), base::Pid{12}, options());
  EXPECT_TRUE(map.copied);
  EXPECT_EQ(map.path, directory_ / "perf-12.map");
  EXPECT_EQ(map.names, 2U);
  EXPECT_EQ(map.dropped, 2U);
  EXPECT_EQ(base::read_file(map.path), "10 4 py::a\n20 4 py::b\\x1b[2J\n");
  struct stat facts {};
  ASSERT_EQ(::stat(map.path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
}

TEST_F(CollectMap, LeavesTheTargetsOwnFileAlone) {
  const auto fd = open("perf-12.map", "10 4 py::a\n");
  EXPECT_FALSE(collect_map(fd.get(), base::Pid{12}, options()).copied);
}

TEST_F(CollectMap, WorksWhenTheFileWasDeleted) {
  const auto fd = open("perf-12.map", "10 4 py::a\n");
  std::filesystem::remove(directory_ / "perf-12.map");
  EXPECT_TRUE(collect_map(fd.get(), base::Pid{12}, options()).copied);
  EXPECT_EQ(base::read_file(directory_ / "perf-12.map"), "10 4 py::a\n");
}

TEST_F(CollectMap, ReplacesALinkWithoutFollowingIt) {
  const auto victim = directory_.file("victim", "precious");
  std::filesystem::create_symlink(victim, directory_ / "perf-12.map");
  const auto fd = open("inner.map", "10 4 py::a\n");
  EXPECT_TRUE(collect_map(fd.get(), base::Pid{12}, options()).copied);
  EXPECT_EQ(base::read_file(victim), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(directory_ / "perf-12.map"));
}

TEST_F(CollectMap, IsBounded) {
  const auto fd = open("inner.map", "10 4 py::a\n20 4 py::b\n30 4 py::c\n");
  auto bounded = options();
  bounded.most_bytes = 25;
  const auto cut = collect_map(fd.get(), base::Pid{12}, bounded);
  EXPECT_EQ(cut.names, 2U);
  EXPECT_TRUE(cut.cut_short);
  EXPECT_FALSE(collect_map(fd.get(), base::Pid{12}, options()).cut_short);
  const auto endless = open("long.map", "10 4 " + std::string(1U << 20U, 'x') + "\n20 4 b\n");
  EXPECT_EQ(collect_map(endless.get(), base::Pid{13}, options()).names, 1U);
  const auto unfinished = open("unfinished.map", "10 4 b\n" + std::string(1U << 17U, 'x'));
  EXPECT_EQ(collect_map(unfinished.get(), base::Pid{14}, options()).dropped, 1U);
}

// Escaping makes a name four times as long.
TEST_F(CollectMap, IsBoundedInWhatItWrites) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "10 4 " + std::string(2000, '\x01') + "\n";
  }
  const auto fd = open("inner.map", text + text);
  auto bounded = options();
  bounded.most_bytes = text.size() + text.size() / 2;
  const auto map = collect_map(fd.get(), base::Pid{12}, bounded);
  EXPECT_TRUE(map.cut_short);
  EXPECT_LT(map.names, 2000U);
}

TEST_F(CollectMap, FindsItsWayAroundWhatOthersMade) {
  // Links and directories at every name that an attacker could predict.
  const auto victim = directory_.file("victim", "precious");
  const auto pid = std::to_string(::getpid());
  std::filesystem::create_symlink(victim, directory_ / (".perf-12.map." + pid));
  std::filesystem::create_directory(directory_ / (".perf-13.map." + pid));
  const auto fd = open("inner.map", "10 4 py::a\n");
  EXPECT_TRUE(collect_map(fd.get(), base::Pid{12}, options()).copied);
  EXPECT_TRUE(collect_map(fd.get(), base::Pid{13}, options()).copied);
  EXPECT_EQ(base::read_file(victim), "precious");
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / (".perf-12.map." + pid)));
}

TEST_F(CollectMap, RefusesWhatIsNoRegularFile) {
  const base::UniqueFd device{::open("/dev/zero", O_RDONLY | O_CLOEXEC)};
  EXPECT_THROW((void)collect_map(device.get(), base::Pid{12}, options()), base::Error);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "perf-12.map"));
}

}  // namespace
}  // namespace pyinject::perf
