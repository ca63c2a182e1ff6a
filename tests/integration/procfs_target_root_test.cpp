#include "base/file.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/target_root.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using base::Pid;
using test::ChildProcess;

// A process with a test directory as its root, in its own mount namespace like a container. Its
// mounts are not visible to the test.
class TargetRootTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "chroot needs root";
    }
    for (const auto* const name : {"usr", "tmp", "proc", "folder"}) {
      fs::create_directory(directory_ / name);
    }
    for (const auto* const name : {"bin", "lib", "lib64"}) {
      fs::create_symlink(std::string{"usr/"} + name, directory_ / name);
    }
    (void)directory_.file("tmp/file", "inside");
    // The mounts disappear with the namespace.
    process_.emplace(
        std::vector<std::string>{"unshare", "--mount", "sh", "-c",
                                 "mount --bind /usr \"$1/usr\" && mount --bind /proc \"$1/proc\" &&"
                                 "exec chroot \"$1\" /bin/sh -c 'echo ready; read line'",
                                 "sh", directory_.path().string()});
    if (process_->read_line(Deadline::after(test::kPatience)) != "ready") {
      GTEST_SKIP() << "no namespace and chroot here: " << process_->err();
    }
    root_ = TargetRoot::open(process_->pid());
    ASSERT_TRUE(root_.has_value());
  }

  [[nodiscard]] std::string content(const std::string& path,
                                    TargetRoot::Links links = TargetRoot::Links::kInside) const {
    const auto fd = root_->open_beneath(path, O_RDONLY, links);
    return fd.valid() ? base::read_fd(fd.get(), 4096, path) : std::to_string(errno);
  }

  test::TempDir directory_;
  std::optional<ChildProcess> process_;
  std::optional<TargetRoot> root_;
};

// Opening or reading such a file can have an effect (/proc/kmsg).
TEST_F(TargetRootTest, OpensNoInterfaceOfTheKernel) {
  EXPECT_EQ(content("/proc/version"), std::to_string(EINVAL));
}

TEST_F(TargetRootTest, OpensWhatTheTargetSees) {
  EXPECT_EQ(content("/tmp/file"), "inside");
  EXPECT_EQ(content("tmp/file"), "inside");
  EXPECT_EQ(content("/no/such"), std::to_string(ENOENT));
  EXPECT_TRUE(root_->open_beneath("/tmp", O_RDONLY | O_DIRECTORY).valid());
  EXPECT_EQ(root_->stat_beneath("/tmp/file")->st_size, 6);
}

TEST_F(TargetRootTest, OpensOnlyWhatIsBeneathADirectory) {
  const auto directory = root_->folder("/tmp");
  ASSERT_TRUE(directory.has_value());
  EXPECT_TRUE(directory->open_beneath("file", O_RDONLY).valid());
  EXPECT_FALSE(directory->open_beneath("../usr", O_RDONLY | O_DIRECTORY).valid());
  EXPECT_FALSE(root_->folder("/tmp/file").has_value());
  EXPECT_FALSE(root_->folder("/bin").has_value());  // a symbolic link
}

TEST_F(TargetRootTest, LinksDoNotLeadOut) {
  test::TempDir outside;
  const auto secret = outside.file("secret", "outside");
  fs::create_symlink(secret, directory_ / "tmp/absolute");
  fs::create_symlink(outside.path(), directory_ / "tmp/away");
  fs::create_symlink(fs::path{"../../../../../../.."} / secret.substr(1),
                     directory_ / "tmp/relative");
  fs::create_symlink("../tmp", directory_ / "folder/link");
  EXPECT_EQ(content("/tmp/absolute"), std::to_string(ELOOP)) << "the last part is a link";
  EXPECT_EQ(content("/tmp/away/secret"), std::to_string(ENOENT));
  EXPECT_EQ(content("/tmp/relative"), std::to_string(ELOOP));
  EXPECT_EQ(content("/../../../../.." + secret), std::to_string(ENOENT));
  EXPECT_EQ(content("/folder/link/file"), "inside");
  EXPECT_EQ(content("/folder/link/file", TargetRoot::Links::kNone), std::to_string(ELOOP));
  EXPECT_TRUE(S_ISLNK(root_->stat_beneath("/tmp/absolute")->st_mode));
}

TEST_F(TargetRootTest, MagicLinksDoNotLeadOut) {
  test::TempDir outside;
  const auto secret = outside.file("secret", "outside");
  EXPECT_EQ(content("/proc/" + std::to_string(::getpid()) + "/root" + secret),
            std::to_string(ELOOP));
}

TEST_F(TargetRootTest, NothingButFilesAndDirectoriesIsOpened) {
  ASSERT_EQ(::mkfifo((directory_ / "tmp/fifo").c_str(), 0666), 0);
  EXPECT_EQ(content("/tmp/fifo"), std::to_string(EINVAL));
  EXPECT_TRUE(S_ISFIFO(root_->stat_beneath("/tmp/fifo")->st_mode));
  ASSERT_EQ(::mknod((directory_ / "tmp/device").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  EXPECT_EQ(content("/tmp/device"), std::to_string(EINVAL));
  EXPECT_EQ(content("/tmp"), std::to_string(EINVAL));
  EXPECT_FALSE(root_->open_beneath("/tmp/file", O_RDONLY | O_DIRECTORY).valid());
}

TEST_F(TargetRootTest, CreatesNewFilesOnly) {
  const auto made = root_->open_beneath("/tmp/new", O_WRONLY | O_CREAT | O_EXCL);
  ASSERT_TRUE(made.valid());
  base::write_all(made.get(), "text", "new");
  EXPECT_EQ(content("/tmp/new"), "text");
  EXPECT_FALSE(root_->open_beneath("/tmp/new", O_WRONLY | O_CREAT | O_EXCL).valid());
  EXPECT_EQ(errno, EEXIST);
  fs::create_symlink("new2", directory_ / "tmp/dangling");
  EXPECT_FALSE(root_->open_beneath("/tmp/dangling", O_WRONLY | O_CREAT | O_EXCL).valid());
  EXPECT_FALSE(root_->open_beneath("/tmp/file", O_WRONLY | O_CREAT).valid());
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(TargetRootTest, NamespacesAreToldApart) {
  EXPECT_EQ(root_is_ours(process_->pid()), false);
  EXPECT_EQ(in_our_namespace(process_->pid(), Namespace::kMount), false);
  EXPECT_EQ(in_our_namespace(process_->pid(), Namespace::kPid), true);
  EXPECT_EQ(in_our_namespace(process_->pid(), Namespace::kUser), true);
}

TEST(Namespaces, ThisProcessSharesOurRoot) {
  const Pid self{::getpid()};
  EXPECT_EQ(root_is_ours(self), true);
  EXPECT_EQ(in_our_namespace(self, Namespace::kMount), true);
  EXPECT_EQ(in_our_namespace(self, Namespace::kPid), true);
  EXPECT_EQ(root_is_ours(Pid{0x7fffffff}), std::nullopt);
  EXPECT_EQ(TargetRoot::open(Pid{0x7fffffff}), std::nullopt);
}

TEST(Namespaces, GiveTheInnerPid) {
  Status made_up;
  made_up.process = Pid{7};
  EXPECT_EQ(inner_pid(made_up), Pid{7}) << "kernels before 4.1";
  made_up.namespace_pids = {7, 3, 1};
  EXPECT_EQ(inner_pid(made_up), Pid{1});
  ChildProcess process{
      {"unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "echo ready; read line"}};
  if (process.read_line(Deadline::after(test::kPatience)) != "ready") {
    GTEST_SKIP() << "no pid namespace here: " << process.err();
  }
  const auto children =
      base::read_file("/proc/" + std::to_string(process.pid().value()) + "/task/" +
                      std::to_string(process.pid().value()) + "/children");
  ASSERT_TRUE(children.has_value());
  const Pid inner{std::stoi(*children)};
  const auto status = read_status(inner);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(inner_pid(*status), Pid{1});
  EXPECT_EQ(in_our_namespace(inner, Namespace::kPid), false);
}

}  // namespace
}  // namespace pyinject::procfs
