#include "integration/rights.hpp"

#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/until_worked.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using testing::AllOf;
using testing::HasSubstr;

// A mount namespace in which every user may read the interpreters: root's home directory is closed
// to them.
constexpr auto kWorld = R"(set -e
umask 022
mount -t tmpfs none /mnt
saved=/mnt
number=0
for tree; do
  number=$((number + 1))
  setpriv --reuid=65534 --clear-groups test -x "$tree/." && continue
  mkdir "$saved/$number"; mount --rbind "$tree" "$saved/$number"
done
number=0
for tree; do
  number=$((number + 1)); rest=${tree#/}; top=/${rest%%/*}
  [ -d "$saved/$number" ] || continue
  [ -e "$saved/$top" ] || { mkdir "$saved/$top"; mount -t tmpfs -o mode=0755 none "$top"; }
  mkdir -p "$tree"; mount --rbind "$saved/$number" "$tree"
done
echo ready
read line)";

constexpr auto kExecutableByAll = fs::perms::owner_all | fs::perms::group_read |
                                  fs::perms::group_exec | fs::perms::others_read |
                                  fs::perms::others_exec;

// The path up to the directory that contains usr, lib or bin.
std::string tree_of(const fs::path& file) {
  fs::path tree;
  for (const auto& part : file.parent_path()) {
    if (part == "usr" || part == "lib" || part == "bin") {
      break;
    }
    tree /= part;
  }
  return tree;
}

}  // namespace

void Rights::SetUp() {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  const auto found = interpreters({.root = false, .whole_matrix = true});
  if (found.empty()) {
    GTEST_SKIP() << "no interpreter outside of a chroot is here";
  }
  interpreter_ = found.back();
  world_.emplace(std::vector<std::string>{"unshare", "--mount", "sh", "-c", kWorld, "sh",
                                          tree_of(interpreter_file(interpreter_)),
                                          tree_of(interpreter_.command.front())});
  if (world_->read_line(Deadline::after(kPatience)) != "ready") {
    GTEST_SKIP() << "no mount namespace here: " << world_->err();
  }
  fs::copy_file(tool(), directory_.here("perf-pyinject"));
  fs::permissions(directory_.here("perf-pyinject"), kExecutableByAll);
  fs::create_directory(directory_.here("out"));
  fs::permissions(directory_.here("out"), fs::perms::all);
}

std::vector<std::string> Rights::in_world(uid_t uid, const std::string& capabilities) const {
  const auto id = std::to_string(uid);
  const auto only = capabilities.empty() ? "-all" : "-all," + capabilities;
  return {"nsenter",
          "--mount=/proc/" + std::to_string(world_->pid().value()) + "/ns/mnt",
          "setpriv",
          "--reuid=" + id,
          "--regid=" + id,
          "--clear-groups",
          "--inh-caps=" + only,
          "--ambient-caps=" + only,
          "--bounding-set=" + only};
}

void Rights::start(uid_t uid, const std::string& program) {
  python_.emplace(wrapped(interpreter_, in_world(uid, "")), program);
  pid_ = std::to_string(python_->pid().value());
}

RunResult Rights::as_user(const std::string& capabilities,
                          const std::vector<std::string>& command) const {
  auto argv = in_world(kUser, capabilities);
  argv.insert(argv.end(), command.begin(), command.end());
  return run(argv);
}

RunResult Rights::pyinject(const std::string& capabilities,
                           std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), directory_.here("perf-pyinject"));
  return as_user(capabilities, arguments);
}

void Rights::expect_works(const std::string& capabilities, const std::string& note) const {
  EXPECT_THAT(pyinject(capabilities, {"status", "-p", pid_}).out, HasSubstr(" ready "));
  const auto on = pyinject(capabilities, {"activate", "-p", pid_});
  EXPECT_EQ(on.status, ExitStatus{}) << on.err;
  EXPECT_THAT(on.err, AllOf(HasSubstr("trampoline on, stopped"), HasSubstr(note)));
  EXPECT_THAT(pyinject(capabilities, {"status", "-p", pid_}).out, HasSubstr("on by us"));
  const auto off = pyinject(capabilities, {"deactivate", "-p", pid_});
  EXPECT_EQ(off.status, ExitStatus{}) << off.err;
}

RunResult Rights::record(const std::string& capabilities,
                         const std::vector<std::string>& options) const {
  std::vector<std::string> arguments{"record", "-p", pid_, "-F", "499", "-o", data()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  const auto command = until_worked(python_->pid(), std::chrono::milliseconds{300});
  arguments.insert(arguments.end(), command.begin(), command.end());
  return pyinject(capabilities, arguments);
}

std::string Rights::script(const std::string& capabilities) const {
  return as_user(capabilities, {"perf", "script", "-i", data(), "-F", "ip,sym"}).out;
}

void Rights::expect_private(const std::string& path, uid_t owner) {
  struct stat facts {};
  ASSERT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  EXPECT_TRUE(S_ISREG(facts.st_mode)) << path;
  EXPECT_EQ(facts.st_mode & 07777, 0600U) << path;
  EXPECT_EQ(facts.st_uid, owner) << path;
  EXPECT_EQ(facts.st_nlink, 1U) << path;
}

std::size_t times_in(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace pyinject::test
