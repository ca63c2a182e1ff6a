// A tool that runs as root records a process whose root file system is a trap: it must open nothing
// outside that root, write nothing there, and terminate.
#include "integration/hostile_root.hpp"

#include <filesystem>

#include <sys/stat.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

TEST(Witness, TellsWhoOpensAFileOfThoseThatATestStarts) {
  TempDir directory;
  const auto file = directory.file("secret", "text");
  const Witness witness{file};
  EXPECT_EQ(run({"env", "-i", "cat", file}).out, "text") << "somebody else";
  EXPECT_EQ(witness.seen(), "");
  EXPECT_EQ(run({"sh", "-c", "head -c 1 \"$0\"", file}).out, "t");
  EXPECT_THAT(witness.seen(), HasSubstr(" (head) opened or read it"));
}

TEST_F(HostileRoot, TheMapIsALinkOutOrNoFile) {
  for (const auto* const make :
       {"os.symlink(SECRET, MAP)", "os.symlink('../../../../../../../..' + SECRET, MAP)",
        "os.symlink('/secret', MAP)", "os.symlink('/dev/zero', MAP)",
        "os.mknod(MAP, 0o20666, os.makedev(1, 5))", "os.mkfifo(MAP)",
        "socket.socket(socket.AF_UNIX).bind(MAP)"}) {
    SCOPED_TRACE(make);
    order(make);
    expect_refused("(map_not_regular)");
    order("os.unlink(MAP)");
  }
  order("os.mkdir(MAP)");
  expect_refused("(map_not_regular)");
  const auto recorded = record();
  EXPECT_EQ(recorded.status, (ExitStatus{.code = 125})) << recorded.err;
  EXPECT_FALSE(fs::exists(directory_ / "data"));
}

TEST_F(HostileRoot, TheDirectoryOfTheMapIsALinkOut) {
  order("os.rename('/tmp', '/old')");
  order("os.symlink('../../../../../../..' + os.path.dirname(SECRET), '/tmp')");
  expect_refused("(map_directory)");
  order("os.unlink('/tmp')");
  order("os.mkfifo('/tmp')");
  expect_refused("(map_directory)");
}

TEST_F(HostileRoot, AFileOfTheHostsIsMountedThere) {
  order("open(MAP, 'w').close(); mount('/secret', MAP)");
  order("os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)");
  expect_refused("(map_foreign)");
}

// Its own /proc must not matter to the tool.
TEST_F(HostileRoot, AProcOfItsOwnDoesNotMatter) {
  order("os.mkdir('/proc/self'); os.mkfifo('/proc/self/maps')");
  order("os.mkdir(f'/proc/{os.getpid()}'); os.mkfifo(f'/proc/{os.getpid()}/maps')");
  order("os.symlink('../../..', f'/proc/{os.getpid()}/root')");
  EXPECT_THAT(pyinject({"status", "-p", pid_}).out, HasSubstr(" ready "));
}

TEST_F(HostileRoot, TheMapIsAFileAndALinkInTurn) {
  order("racer = threading.Thread(target=swap, args=(stop,)); racer.start()");
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(pyinject({"status", "-p", pid_}).status, ExitStatus{});
    EXPECT_THAT(pyinject({"activate", "-p", pid_}).status.code, AnyOf(0, 125));
  }
  EXPECT_THAT(record().status.code, AnyOf(0, 125));
  order("stop.append(1); racer.join()");
  expect_nothing_got_out();
}

// CPython keeps its map open for life, and the program can replace the file behind that descriptor.
TEST_F(HostileRoot, AnotherFileUnderTheMapsDescriptorLetsNothingOut) {
  EXPECT_EQ(pyinject({"activate", "-p", pid_}).status, ExitStatus{});
  for (const auto* const instead :
       {"(lambda: (open(MAP, 'w').close(), mount('/secret', MAP)), os.O_PATH)",
        "(lambda: os.mkfifo(MAP), os.O_RDWR)",
        "(lambda: os.mknod(MAP, 0o20666, os.makedev(1, 5)), os.O_RDWR)"}) {
    SCOPED_TRACE(instead);
    order(std::string{"fd = map_descriptor(); saved = os.dup(fd); real = MAP + '.real'; "
                      "os.link(MAP, real); put_under_the_maps_number("} +
          instead + ")");
    EXPECT_EQ(pyinject({"activate", "-p", pid_}).status, ExitStatus{});
    if (std::string_view{instead}.find("secret") != std::string_view::npos) {
      const auto recorded = record();
      EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
    }
    expect_nothing_got_out();
    order("ctypes.CDLL(None).umount2(MAP.encode(), 2); os.unlink(MAP)");
    order("os.rename(real, MAP); os.dup2(saved, fd); os.close(saved)");
  }
}

// The other side of the copy: another user has created a file at its destination.
TEST_F(HostileRoot, AMapOf100GigabytesOfNothingAndALinkWhereItsCopyGoesLetNothingOut) {
  order("open(MAP, 'w').truncate(100 << 30)");
  fs::create_symlink(secret_, copy());
  ASSERT_EQ(::lchown(copy().c_str(), 65534, 65534), 0);
  const auto recorded = record();
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr("longer than 256 MiB"));
  struct stat made {};
  ASSERT_EQ(::lstat(copy().c_str(), &made), 0);
  EXPECT_TRUE(S_ISREG(made.st_mode));
  EXPECT_EQ(made.st_mode & 07777, 0600U);
  EXPECT_EQ(made.st_uid, 0U);
  EXPECT_LT(made.st_size, 1 << 20);
  expect_nothing_got_out();
}

TEST_F(HostileRoot, ADirectoryWhereItsCopyGoesIsReported) {
  fs::create_directory(copy());
  const auto recorded = record();
  fs::remove(copy());
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  EXPECT_THAT(recorded.err, HasSubstr("cannot rename the copy of its map to " + copy()));
  for (const auto& entry : fs::directory_iterator{"/tmp"}) {
    EXPECT_THAT(entry.path().filename().string(), Not(testing::StartsWith(".perf-" + pid_)));
  }
}

}  // namespace
}  // namespace pyinject::test
