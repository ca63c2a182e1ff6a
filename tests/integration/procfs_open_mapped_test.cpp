#include "base/file.hpp"
#include "procfs/open_mapped.hpp"
#include "support/child_process.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using base::UniqueFd;

// A test file that is mapped in this process.
class OpenMappedTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = directory_.file("mapped", "content");
    const UniqueFd fd{::open(path_.c_str(), O_RDONLY | O_CLOEXEC)};
    page_ = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    ASSERT_NE(page_, MAP_FAILED);
  }
  void TearDown() override { ::munmap(page_, 4096); }

  [[nodiscard]] Mapping mapping() const {
    const auto maps = read_maps(Pid{::getpid()});
    return *find_mapping(*maps, base::RemoteAddress{reinterpret_cast<std::uintptr_t>(page_)});
  }
  [[nodiscard]] static std::string content(const Mapping& mapping) {
    auto result = open_mapped_file(Pid{::getpid()}, mapping);
    if (const auto* const failure = std::get_if<NotOpened>(&result)) {
      return failure->why;
    }
    return base::read_fd(std::get<UniqueFd>(result).get(), 100, "the mapped file");
  }
  // The mapping without a map_files entry, as if the caller had no right to use map_files.
  [[nodiscard]] Mapping without_map_files() const {
    auto changed = mapping();
    changed.end = changed.end + 4096;
    return changed;
  }

  test::TempDir directory_;
  std::string path_;
  void* page_ = nullptr;
};

TEST_F(OpenMappedTest, FindsTheFileByItsPath) {
  EXPECT_EQ(content(without_map_files()), "content");
}

TEST_F(OpenMappedTest, FindsADeletedFile) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "map_files needs root";
  }
  std::filesystem::remove(path_);
  EXPECT_TRUE(mapping().deleted);
  EXPECT_EQ(content(mapping()), "content");
}

TEST_F(OpenMappedTest, RefusesAnotherFileWithThatName) {
  auto known = without_map_files();
  // The old file still exists, so the new one has another inode.
  std::filesystem::remove(path_);
  (void)directory_.file("mapped", "another");
  EXPECT_THAT(content(known), testing::HasSubstr("another file than the mapped one"));
}

TEST_F(OpenMappedTest, DoesNotWaitForAFifoWithThatName) {
  auto known = without_map_files();
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0666), 0);
  EXPECT_THAT(content(known), testing::HasSubstr("not a regular file"));
}

TEST_F(OpenMappedTest, KnowsMappingsWithoutFile) {
  EXPECT_EQ(content(Mapping{}), "the mapping has no file");
}

class OpenMappedEverywhere : public testing::TestWithParam<test::Interpreter> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenMappedEverywhere);
INSTANTIATE_TEST_SUITE_P(Pythons, OpenMappedEverywhere,
                         testing::ValuesIn(test::interpreters({.both_ways = true})),
                         test::InterpreterName{});

TEST_P(OpenMappedEverywhere, OpensEveryMappedFile) {
  test::PythonProcess python{GetParam(), "print('ready', flush=True)\ninput()"};
  const auto maps = read_maps(python.pid());
  ASSERT_TRUE(maps.has_value());
  int files = 0;
  for (auto mapping : *maps) {
    if (mapping.inode == 0) {
      continue;
    }
    ++files;
    for (const bool by_path : {false, true}) {
      if (by_path) {
        mapping.end = mapping.end + 4096;  // no such map_files entry
      }
      const auto result = open_mapped_file(python.pid(), mapping);
      const auto* const failure = std::get_if<NotOpened>(&result);
      EXPECT_EQ(failure, nullptr) << mapping.path << ": " << failure->why;
    }
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace pyinject::procfs
