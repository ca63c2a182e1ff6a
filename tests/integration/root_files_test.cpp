// Files that root writes in places where another user can replace names, or where no space is left.
#include "integration/cli_bad_input.hpp"
#include "pyinject/base/deadline.hpp"
#include "record/completion.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/own_tmp.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"
#include "targets/target_map.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct stat facts_of(const std::string& path) {
  struct stat facts {};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts;
}

// A directory of another user, into which root records.
class RootFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "being another user needs root";
    }
    const auto found = interpreters({.root = false});
    if (found.empty()) {
      GTEST_SKIP() << "no interpreter outside of a chroot is here";
    }
    interpreter_ = found.back();
    fs::create_directory(theirs());
    fs::create_directory(rootbin());
    ASSERT_EQ(::chown(theirs().c_str(), kNobody, kNobody), 0);
    python_.emplace(interpreter_, kAnswers);
  }

  [[nodiscard]] std::string theirs() const { return directory_ / "theirs"; }
  // A directory of root, into which nothing may be written.
  [[nodiscard]] std::string rootbin() const { return directory_ / "rootbin"; }
  [[nodiscard]] std::string data() const { return theirs() + "/perf.data"; }

  // A perf that runs SCRIPT when it is called as VERB; "$@" are perf's arguments, $PERF is the real
  // one.
  [[nodiscard]] std::string perf_with(const std::string& verb, const std::string& script) const {
    const auto path = directory_.file(
        "perf", fmt::format("#!/bin/sh\nPERF={}\n[ \"$1\" = {} ] || exec $PERF \"$@\"\n{}\n",
                            find_perf("perf").value(), verb, script));
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  [[nodiscard]] std::vector<std::string> record_argv(std::vector<std::string> options) const {
    std::vector<std::string> argv{tool(), "record", "-p", say(python_->pid()), "-F", "499"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.emplace_back("--");
    const auto command = until_worked(python_->pid(), std::chrono::milliseconds{300});
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }
  [[nodiscard]] RunResult record(std::vector<std::string> options) const {
    return run(record_argv(std::move(options)));
  }
  // Records into the other user's directory, as /mnt, with a /tmp of 64 KiB, after the shell
  // command THEN.
  [[nodiscard]] RunResult record_with_tmp(const std::string& then,
                                          std::vector<std::string> options) const {
    std::vector<std::string> argv{"unshare", "--mount"};
    const auto prefix = with_own_tmp(
        "mount --bind '" + theirs() + "' /mnt && mount -t tmpfs -o size=64k none /mnt", then);
    argv.insert(argv.end(), prefix.begin(), prefix.end());
    const auto record = record_argv(std::move(options));
    argv.insert(argv.end(), record.begin(), record.end());
    return run(argv);
  }
  [[nodiscard]] static std::string script(const std::string& path) {
    return run({"perf", "script", "-i", path, "-F", "ip,sym"}).out;
  }
  static void expect_owner(const std::string& path, uid_t owner, mode_t mode) {
    const auto facts = facts_of(path);
    EXPECT_EQ(facts.st_uid, owner) << path;
    EXPECT_EQ(facts.st_mode & 07777U, mode) << path;
  }

  TempDir directory_;
  Interpreter interpreter_;
  std::optional<PythonProcess> python_;
};

// The other user replaces perf's file with his own while the names are stored.
TEST_F(RootFiles, AreNotHandedToWhoeverReplacesThem) {
  const auto perf = perf_with(
      "buildid-cache", fmt::format("mv {0} {0}.away; echo mine >{0}; chown {1} {0}; chmod 644 {0}\n"
                                   "exec $PERF \"$@\"",
                                   data(), kNobody));
  const auto result = record({"--perf", perf, "-o", data()});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  expect_owner(data(), 0, 0600);
  EXPECT_THAT(script(data()), HasSubstr("py::work"));
}

// The file changes its owner before it is read: the Python stacks must not go into it.
TEST_F(RootFiles, AnotherUsersFileIsLeftUnprocessed) {
  const auto perf = perf_with(
      "record", fmt::format("$PERF \"$@\"; status=$?; chown {1} {0}; chmod 644 {0}; exit $status",
                            data(), kNobody));
  const auto result = record({"--perf", perf, "-o", data()});
  EXPECT_THAT(result.err, HasSubstr("it belongs to uid 65534"));
  expect_owner(data(), kNobody, 0644);
  EXPECT_THAT(script(data()), Not(HasSubstr("py::<module>")));
}

// `weave` of another user's file keeps that user as the owner.
TEST_F(RootFiles, WovenFileKeepsItsOwner) {
  ASSERT_EQ(record({"-o", data()}).status, ExitStatus{});
  ASSERT_EQ(::chown(data().c_str(), kNobody, kNobody), 0);
  const auto result = run({tool(), "weave", data()});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  expect_owner(data(), kNobody, 0600);
}

TEST_F(RootFiles, NamesFollowNoLink) {
  fs::create_symlink(rootbin(), data() + ".names");
  ASSERT_EQ(::lchown((data() + ".names").c_str(), kNobody, kNobody), 0);
  const auto result = record({"--perf", perf_with("buildid-cache", "exit 1"), "-o", data()});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cannot use " + data() + ".names as a directory"));
  EXPECT_TRUE(fs::is_empty(rootbin()));
}

TEST_F(RootFiles, NamesAvoidADirectoryOfAnotherUser) {
  const auto names = data() + ".names";
  fs::create_directory(names);
  ASSERT_EQ(::chown(names.c_str(), kNobody, kNobody), 0);
  const auto result = record({"--perf", perf_with("buildid-cache", "exit 1"), "-o", data()});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(names + " belongs to uid 65534"),
                                HasSubstr("perf-pyinject report shows them")));
  EXPECT_TRUE(fs::is_empty(names));
  EXPECT_THAT(run({tool(), "report", data()}).out, HasSubstr("work")) << "of its own section";
}

TEST_F(RootFiles, NamesAreAsPrivateAsTheRecording) {
  const auto result = record({"--perf", perf_with("buildid-cache", "exit 1"), "-o", data()});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  expect_owner(data(), 0, 0600);
  expect_owner(data() + ".names", 0, 0700);
  for (const auto& entry : fs::directory_iterator{data() + ".names"}) {
    expect_owner(entry.path(), 0, 0600);
  }
  EXPECT_THAT(script(data()), HasSubstr("py::work"));
}

TEST_F(RootFiles, CachedNamesAreAsPrivateAsTheRecording) {
  const auto cache = directory_ / "cache";
  const auto config = directory_.file("perfconfig", fmt::format("[buildid]\n\tdir = {}\n", cache));
  fs::create_directory(cache);
  const auto argv = record_argv({"-o", data()});
  const auto result = run(argv, {.child = {.env = {{"PERF_CONFIG", config}},
                                           .unset = {},
                                           .uid = {},
                                           .directory = {},
                                           .root = {}},
                                 .input = {}});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  std::size_t images = 0;
  for (const auto& entry : fs::recursive_directory_iterator{cache}) {
    if (entry.path().string().find("/perf-pyinject.") != std::string::npos && !entry.is_symlink()) {
      ++images;
      EXPECT_EQ(facts_of(entry.path()).st_mode & 077U, 0U) << entry.path();
    }
  }
  EXPECT_GT(images, 0U);
}

TEST_F(RootFiles, NamesGoNextToTheRecordingIfTmpIsFull) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto result = record_with_tmp("! head -c 100000 /dev/zero 2>/dev/null >/tmp/full",
                                      {"--engine", "bpf", "-o", "/mnt/perf.data"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("the names are in /mnt/perf.data.names"),
                                HasSubstr("No space left on device")));
  EXPECT_FALSE(fs::is_empty(data() + ".names"));
}

TEST_F(RootFiles, NamesGoNextToTheRecordingIfTmpIsReadOnly) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto result =
      record_with_tmp("mount -o remount,ro /tmp", {"--engine", "bpf", "-o", "/mnt/perf.data"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("the names are in /mnt/perf.data.names"),
                                HasSubstr("Read-only file system")));
  EXPECT_FALSE(fs::is_empty(data() + ".names"));
}

// The recording's disk is full at the end: perf's file stays, and nothing more is reported as
// written.
TEST_F(RootFiles, PerfsFileStaysIfItsDiskIsFull) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto perf =
      perf_with("buildid-cache", "cat /dev/zero >/mnt/full 2>/dev/null; echo full; exit 1");
  const auto record = record_argv({"--perf", perf, "--engine", "bpf", "-o", "/mnt/perf.data"});
  std::vector<std::string> argv{"unshare",
                                "--mount",
                                "sh",
                                "-c",
                                "mount -t tmpfs -o size=64m none /mnt && { \"$@\"; status=$?; "
                                "perf script -i /mnt/perf.data -F pid 2>/dev/null; exit $status; }",
                                "sh"};
  argv.insert(argv.end(), record.begin(), record.end());
  const auto result = run(argv);
  EXPECT_EQ(result.status, ExitStatus{.code = 125}) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("/mnt/perf.data: left unprocessed: "),
                                HasSubstr("No space left on device; the Python stacks are lost")));
  EXPECT_THAT(result.err, Not(HasSubstr("samples of Python processes")));
  EXPECT_THAT(result.out, HasSubstr(say(python_->pid())));
}

TEST_F(RootFiles, TemporaryRecordingIsRemovedIfItsDiskIsFull) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto result = run({"unshare", "--mount", "sh", "-c",
                           "mount -t tmpfs -o size=4k none /mnt && export TMPDIR=/mnt && "
                           "{ \"$@\"; status=$?; ls /mnt; exit $status; }",
                           "sh", tool(), "export", "-f", "folded", "-p", say(python_->pid()), "-d",
                           "1", "--engine", "bpf", "-o", "/dev/null"});
  EXPECT_EQ(result.status, ExitStatus{.code = 125}) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("No space left on device"),
                                HasSubstr("the recording was temporary and is removed")));
  EXPECT_EQ(result.out, "");
}

TEST_F(RootFiles, NamesAreMadeInTmpdir) {
  const auto heard = directory_ / "heard";
  const auto perf = perf_with("buildid-cache",
                              "for last; do :; done; echo $last >" + heard + "\nexec $PERF \"$@\"");
  const auto result = run(
      record_argv({"--perf", perf, "-o", data()}),
      {.child =
           {.env = {{"TMPDIR", rootbin()}}, .unset = {}, .uid = {}, .directory = {}, .root = {}},
       .input = {}});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(contents_of(heard), testing::StartsWith(rootbin() + "/perf-pyinject."));
  EXPECT_TRUE(fs::is_empty(rootbin()));
}

TEST_F(RootFiles, StatsFollowNoLinkOfAnotherUser) {
  const auto link = theirs() + "/stats.json";
  const auto victim = rootbin() + "/victim";
  fs::create_symlink(victim, link);
  ASSERT_EQ(record({"--stats", link, "-o", directory_ / "first"}).status, ExitStatus{});
  EXPECT_THAT(contents_of(victim), HasSubstr("\"Activated\"")) << "the user's own link is followed";
  fs::remove(victim);
  ASSERT_EQ(::lchown(link.c_str(), kNobody, kNobody), 0);
  const auto result = record({"--stats", link, "-o", directory_ / "second"});
  EXPECT_THAT(result.err, HasSubstr(link + " is a symbolic link that belongs to uid 65534"));
  EXPECT_FALSE(fs::exists(victim));
}

// With its own /tmp, a process can have another user's file under the name of its map.
TEST_F(RootFiles, ReadAsMapsBelongToTheProcess) {
  const auto opened = [](uid_t owner) {
    ChildProcess process{{"unshare", "--mount", "sh", "-c",
                          "mount -t tmpfs none /tmp && echo '1 1 py::x' >/tmp/perf-$$.map && "
                          "chown $0 /tmp/perf-$$.map && exec setpriv --reuid=65534 --clear-groups "
                          "sh -c 'echo ready; read line'",
                          std::to_string(owner)}};
    EXPECT_EQ(process.read_line(base::Deadline::after(kPatience)), "ready") << process.err();
    return targets::open_perf_map(static_cast<std::uint32_t>(process.pid().value())).valid();
  };
  EXPECT_TRUE(opened(kNobody));
  EXPECT_TRUE(opened(0)) << "the process has dropped its rights";
  EXPECT_FALSE(opened(kNobody - 1));
}

}  // namespace
}  // namespace pyinject::test
