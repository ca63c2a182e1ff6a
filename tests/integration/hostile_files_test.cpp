// Programs and libraries that are replaced by traps while they are mapped: read as root, without
// root's access to mapped files, and by a perf that has to be killed when it hangs.
#include "integration/detection.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using base::Deadline;
using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;

class HostileFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (interpreters().empty()) {
      GTEST_SKIP() << "no interpreter is here";
    }
    if (::geteuid() != 0) {
      GTEST_SKIP() << "giving up capabilities needs some";
    }
  }
  [[nodiscard]] static Interpreter any() { return interpreters().front(); }

  SeenDirectory directory_{any()};
  TempDir output_;
};

TEST_F(HostileFiles, TheInterpretersFileIsReplaced) {
  const PythonProcess python{with_copy(any(), directory_, "python3-copy"), kIdle};
  const auto file = directory_.here("python3-copy");
  const auto pid = std::to_string(python.pid().value());
  const auto look = [&pid] {
    const auto as_root = run({tool(), "status", "-p", pid});
    EXPECT_THAT(as_root.out, HasSubstr(" ready ")) << "by its mapping, whatever its path contains";
    // Without CAP_SYS_ADMIN and CAP_CHECKPOINT_RESTORE only the path is accessible.
    const auto by_path = run({"setpriv", "--bounding-set=-all,+sys_ptrace,+dac_override",
                              "--inh-caps=-all", tool(), "status", "-p", pid});
    EXPECT_EQ(by_path.status, ExitStatus{}) << by_path.err;
    EXPECT_THAT(by_path.out, AnyOf(HasSubstr(" ready "), HasSubstr("no_permission")));
  };
  fs::remove(file);
  look();
  ASSERT_EQ(::mkfifo(file.c_str(), 0666), 0);
  look();
  fs::remove(file);
  fs::create_symlink("/dev/zero", file);
  look();
  fs::remove(file);
  directory_.write("python3-copy",
                   "\x7f"
                   "ELF");
  fs::resize_file(file, std::uintmax_t{100} << 30U);
  look();
}

// The file grows after it was mapped: it is the mapped file, but its size is absurd.
TEST_F(HostileFiles, AFileOf100GigabytesIsRefused) {
  const SeenDirectory directory{Interpreter{}};
  fs::copy_file(targets_dir() + "/frames_keep.so", directory.here("python3-huge"));
  ChildProcess process{{targets_dir() + "/map_elf", directory.here("python3-huge")}};
  ASSERT_EQ(process.read_line(Deadline::after(kPatience)), "ready");
  fs::resize_file(directory.here("python3-huge"), std::uintmax_t{100} << 30U);
  expect_refused_untouched(process.pid(), python::Reason::kNoLibpythonSymbols, {"python3-huge"});
}

constexpr auto kBusyShell =
    "print('ready', flush=True)\n"
    "while True: sum(i for i in range(1000))\n";

// perf 6.1 reads the build-ids of all programs in which it has samples, and blocks on a FIFO. Any
// user can create the name that the kernel reports for a deleted file.
TEST_F(HostileFiles, PerfFindsAFifoInPlaceOfAProgram) {
  const PythonProcess python{with_copy(any(), directory_, "python3-copy"), kBusyShell};
  fs::remove(directory_.here("python3-copy"));
  ASSERT_EQ(::mkfifo(directory_.here("python3-copy (deleted)").c_str(), 0666), 0);
  RunOptions patient;
  patient.deadline = seconds{100};
  std::vector<std::string> command{
      tool(), "record", "-p", std::to_string(python.pid().value()), "-o", output_ / "data", "-F",
      "499",  "-g",     "--"};
  const auto worked = until_worked(python.pid(), std::chrono::milliseconds{300});
  command.insert(command.end(), worked.begin(), worked.end());
  const auto record = run(command, patient);
  if (record.status == ExitStatus{}) {  // perf 7 does not block
    return;
  }
  EXPECT_EQ(record.status, (ExitStatus{.code = 125}));
  EXPECT_THAT(record.err, HasSubstr("cannot open one of the programs that it recorded"));
  EXPECT_THAT(record.err, HasSubstr("has the samples written until then"));
  const auto status = run({tool(), "status", "-p", std::to_string(python.pid().value())});
  EXPECT_THAT(status.out, HasSubstr(" ready ")) << "switched off anyway";
}

}  // namespace
}  // namespace pyinject::test
