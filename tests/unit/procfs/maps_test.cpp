#include "procfs/maps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using base::RemoteAddress;

TEST(ParseMaps, TakesALineApart) {
  const auto maps = parse_maps(
      "7f0c8a000000-7f0c8a021000 r-xp 0001e000 fe:10 1234                       /usr/lib/a b.so\n");
  ASSERT_EQ(maps.size(), 1U);
  const Mapping expected{.begin = RemoteAddress{0x7f0c8a000000},
                         .end = RemoteAddress{0x7f0c8a021000},
                         .readable = true,
                         .executable = true,
                         .offset = 0x1e000,
                         .device_major = 0xfe,
                         .device_minor = 0x10,
                         .inode = 1234,
                         .path = "/usr/lib/a b.so"};
  EXPECT_EQ(maps[0], expected);
}

TEST(ParseMaps, KnowsDeletedAndEscapedAndNamelessOnes) {
  const auto maps = parse_maps(
      "1000-2000 rw-s 00000000 00:05 7    /tmp/new\\012line (deleted)\n"
      "2000-3000 ---p 00000000 00:00 0 \n"
      "3000-4000 rw-p 00000000 00:00 0    [heap]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
  ASSERT_EQ(maps.size(), 4U);
  EXPECT_EQ(maps[0].path, "/tmp/new\nline");
  EXPECT_TRUE(maps[0].deleted);
  EXPECT_TRUE(maps[0].shared);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_FALSE(maps[1].readable);
  EXPECT_EQ(maps[2].path, "[heap]");
  EXPECT_EQ(maps[3].path, "[vsyscall]");
  EXPECT_EQ(maps[3].end, RemoteAddress{0xffffffffff601000});
}

TEST(ParseMaps, LeavesOutWhatIsNoMapping) {
  EXPECT_TRUE(parse_maps("").empty());
  EXPECT_TRUE(parse_maps("\n\n\0\xff").empty());
  EXPECT_TRUE(parse_maps("2000-1000 r--p 0 0:0 0\n").empty());
  EXPECT_TRUE(parse_maps("1000-10000000000000000 r--p 0 0:0 0\n").empty());
  const std::string good = "1000-2000 r-xp 00000000 08:01 42 /bin/x";
  for (std::size_t length = 0; length < good.find("42") + 1; ++length) {
    EXPECT_TRUE(parse_maps(good.substr(0, length)).empty()) << length;
  }
  EXPECT_EQ(parse_maps("rubbish\n" + good + "\nmore\n").size(), 1U);
}

TEST(FindMapping, GivesTheOneThatHoldsTheAddress) {
  const auto maps = parse_maps("1000-2000 r--p 0 0:0 0\n3000-5000 r--p 0 0:0 0\n");
  EXPECT_EQ(find_mapping(maps, RemoteAddress{0xfff}), nullptr);
  EXPECT_EQ(find_mapping(maps, RemoteAddress{0x1000}), &maps[0]);
  EXPECT_EQ(find_mapping(maps, RemoteAddress{0x1fff}), &maps[0]);
  EXPECT_EQ(find_mapping(maps, RemoteAddress{0x2000}), nullptr);
  EXPECT_EQ(find_mapping(maps, RemoteAddress{0x4fff}), &maps[1]);
  EXPECT_EQ(find_mapping(maps, RemoteAddress{0x5000}), nullptr);
  EXPECT_EQ(find_mapping({}, RemoteAddress{0}), nullptr);
}

TEST(ReadMaps, FindsThisFunction) {
  const auto maps = read_maps(Pid{::getpid()});
  ASSERT_TRUE(maps.has_value());
  const auto* const mapping =
      find_mapping(*maps, RemoteAddress{reinterpret_cast<std::uintptr_t>(&parse_maps)});
  ASSERT_NE(mapping, nullptr);
  EXPECT_TRUE(mapping->executable);
  EXPECT_THAT(mapping->path, testing::EndsWith("/unit_tests"));
}

TEST(ReadMaps, SaysThatThereIsNoSuchProcess) {
  EXPECT_EQ(read_maps(Pid{0x7fffffff}), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace pyinject::procfs
