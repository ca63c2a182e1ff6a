// CPython does not report that it cannot write its map: refusals because of /tmp and the file in
// it, and the maps of earlier processes.
#include "base/file.hpp"
#include "integration/detection.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/child_process.hpp"
#include "support/own_tmp.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Pid;
using python::Reason;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class MapRefusals : public DetectionTest {
 protected:
  void TearDown() override {
    std::error_code ignored;
    for (const auto& path : made_) {
      fs::remove(path, ignored);
    }
  }

  void start(const std::string& program = kIdle, std::vector<std::string> wrapper = {}) {
    python_.emplace(wrapped(GetParam(), std::move(wrapper)), program);
    map_ = map_file(pid());
    made_ = {map_, map_ + ".old"};
  }
  // Starts it in a mount namespace with another /tmp.
  void start_with_tmp(const std::string& options, const std::string& program = kIdle) {
    start(program, unshared_with_tmpfs(GetParam().root, options));
  }
  [[nodiscard]] Pid pid() const { return python_->pid(); }
  [[nodiscard]] std::string seen() const { return fmt::format("/tmp/perf-{}.map", pid().value()); }
  void make_map(std::string_view content) const {
    const base::UniqueFd fd{
        ::open(map_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!fd.valid()) {
      throw base::SystemError{"cannot make " + map_, errno};
    }
    base::write_all(fd.get(), content, map_);
  }
  // As if it had been written SECONDS ago.
  void age_map(std::int64_t seconds) const {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= seconds;
    const std::array<timespec, 2> times{now, now};
    ASSERT_EQ(::utimensat(AT_FDCWD, map_.c_str(), times.data(), AT_SYMLINK_NOFOLLOW), 0);
  }
  [[nodiscard]] static std::string content(const std::string& path) {
    return base::read_file(path).value_or("no " + path);
  }

  std::optional<PythonProcess> python_;
  std::string map_;
  std::vector<std::string> made_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MapRefusals);
INSTANTIATE_TEST_SUITE_P(Pythons, MapRefusals, testing::ValuesIn(interpreters()),
                         InterpreterName{});

// PROGRAM after it has dropped its rights as services do.
std::string as_nobody(const std::string& program) {
  return "import os\n"
         "os.setgroups([])\n"
         "os.setresgid(65534, 65534, 65534)\n"
         "os.setresuid(65534, 65534, 65534)\n" +
         program;
}

TEST_P(MapRefusals, NamesASymbolicLink) {
  start();
  const SeenDirectory directory{GetParam()};
  directory.write("elsewhere", "");
  fs::create_symlink(directory.seen("elsewhere"), map_);
  expect_refused_untouched(pid(), Reason::kMapNotRegular, {seen(), "symbolic link", "remove it"});
  fs::remove(map_);
  fs::create_symlink(directory.seen("nowhere"), map_);
  expect_refused_untouched(pid(), Reason::kMapNotRegular, {seen(), "symbolic link"});
  fs::remove(map_);
  expect_ready(pid());
  EXPECT_EQ(content(directory.here("elsewhere")), "");
}

TEST_P(MapRefusals, NamesAFifoOrADirectory) {
  start();
  ASSERT_EQ(::mkfifo(map_.c_str(), 0600), 0);
  expect_refused_untouched(pid(), Reason::kMapNotRegular,
                           {seen(), "not a regular file", "remove it"});
  fs::remove(map_);
  fs::create_directory(map_);
  expect_refused_untouched(pid(), Reason::kMapNotRegular, {seen(), "not a regular file"});
  fs::remove(map_);
  expect_ready(pid());
}

TEST_P(MapRefusals, NamesAFileOfAnotherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "giving files away needs root";
  }
  start();
  make_map("");
  expect_ready(pid());
  ASSERT_EQ(::chown(map_.c_str(), kNobody, kNobody), 0);
  expect_refused_untouched(pid(), Reason::kMapForeign,
                           {seen(), "belongs to uid 65534", "runs as uid 0", "remove it"});
  fs::remove(map_);
  expect_ready(pid());
}

TEST_P(MapRefusals, NamesAnOwnFileThatIsNotWritable) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "being another user needs root";
  }
  start(as_nobody(kIdle));
  make_map("");
  ASSERT_EQ(::chown(map_.c_str(), kNobody, kNobody), 0);
  expect_ready(pid());
  fs::permissions(map_, fs::perms::owner_read);
  expect_refused_untouched(pid(), Reason::kMapForeign, {seen(), "not writable", "remove it"});
}

TEST_P(MapRefusals, NamesAReadOnlyTmp) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  start_with_tmp("ro");
  expect_refused_untouched(pid(), Reason::kMapDirectory, {"/tmp is read-only", "mount a tmpfs"});
  start_with_tmp("rw");
  expect_ready(pid());
}

TEST_P(MapRefusals, NamesAFullTmp) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  start_with_tmp("size=64k");
  expect_refused_untouched(pid(), Reason::kMapDirectory, {"/tmp is full", "--engine bpf"});
  start_with_tmp("size=8m");
  expect_ready(pid());
}

TEST_P(MapRefusals, NamesALimitOfFiles) {
  start();
  constexpr rlim_t kSmall = 4096;
  rlimit before{};
  ASSERT_EQ(::prlimit(pid().value(), RLIMIT_FSIZE, nullptr, &before), 0);
  const rlimit limit{.rlim_cur = kSmall, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(pid().value(), RLIMIT_FSIZE, &limit, nullptr), 0);
  expect_refused_untouched(pid(), Reason::kResourceLimit,
                           {"4096 bytes at most", "prlimit --pid", "--engine bpf"});
  ASSERT_EQ(::prlimit(pid().value(), RLIMIT_FSIZE, &before, nullptr), 0);
  expect_ready(pid());
}

TEST_P(MapRefusals, NamesATmpThatIsNotWritable) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  start_with_tmp("mode=0755", as_nobody(kIdle));
  expect_refused_untouched(pid(), Reason::kMapDirectory,
                           {"/tmp is not writable", "uid 65534", "chmod 1777"});
  start_with_tmp("mode=0755");  // owned by root
  expect_ready(pid());
  start_with_tmp("mode=1777", as_nobody(kIdle));
  expect_ready(pid());
}

// The activation itself discovers it, after a successful detection: nothing may be left half done.
TEST_P(MapRefusals, NamesALinkMadeAfterTheDetection) {
  start();
  Attach attach;
  const auto target = attach.detect(pid());
  const SeenDirectory directory{GetParam()};
  directory.write("elsewhere", "");
  fs::create_symlink(directory.seen("elsewhere"), map_);
  const auto outcome = attach.injector().activate(target, Attach::patient());
  ASSERT_TRUE(std::holds_alternative<python::Refusal>(outcome));
  EXPECT_THAT(content(directory.here("elsewhere")), IsEmpty());
  fs::remove(map_);
  python_->expect_alive();
  auto detection = python::make_detector()->detect(pid());
  if (const auto* after = std::get_if<python::Target>(&detection)) {
    EXPECT_EQ(after->state, python::TrampolineState::kOff);
  }
}

TEST_P(MapRefusals, MovesTheMapOfAnEarlierProcess) {
  start();
  make_map("1 1 py::stale\n");
  age_map(3600);
  Attach attach;
  const auto activation = attach.activate(pid());
  EXPECT_THAT(activation.notes, testing::Contains(testing::AllOf(HasSubstr("moved " + seen()),
                                                                 HasSubstr(seen() + ".old"))));
  EXPECT_EQ(content(map_ + ".old"), "1 1 py::stale\n");
  EXPECT_THAT(content(map_), Not(HasSubstr("stale")));
  attach.deactivate(pid());
}

// Root may move it, whoever owns it.
TEST_P(MapRefusals, MovesTheMapOfAnotherUsersEarlierProcess) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "giving files away needs root";
  }
  start();
  make_map("1 1 py::stale\n");
  ASSERT_EQ(::chown(map_.c_str(), kNobody, kNobody), 0);
  age_map(3600);
  expect_ready(pid());
  Attach attach;
  const auto activation = attach.activate(pid());
  EXPECT_THAT(activation.notes, testing::Contains(HasSubstr("moved " + seen())));
  EXPECT_EQ(content(map_ + ".old"), "1 1 py::stale\n");
  EXPECT_THAT(content(map_), Not(HasSubstr("stale")));
  attach.deactivate(pid());
}

TEST_P(MapRefusals, KeepsTheMapThatTheProcessWrote) {
  start();
  make_map("1 1 py::mine\n");
  Attach attach;
  const auto activation = attach.activate(pid());
  EXPECT_THAT(activation.notes, IsEmpty());
  EXPECT_THAT(content(map_), HasSubstr("py::mine"));
  EXPECT_FALSE(fs::exists(map_ + ".old"));
  attach.deactivate(pid());
}

// A link at the destination of the old map must not be followed.
TEST_P(MapRefusals, ReplacesALinkInPlaceOfTheOldMap) {
  start();
  make_map("1 1 py::stale\n");
  age_map(3600);
  const SeenDirectory directory{GetParam()};
  directory.write("elsewhere", "kept");
  fs::create_symlink(directory.here("elsewhere"), map_ + ".old");
  Attach attach;
  const auto activation = attach.activate(pid());
  EXPECT_EQ(content(directory.here("elsewhere")), "kept");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(map_ + ".old")));
  EXPECT_EQ(content(map_ + ".old"), "1 1 py::stale\n");
  attach.deactivate(pid());
}

}  // namespace
}  // namespace pyinject::test
