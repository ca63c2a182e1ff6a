// A process whose root file system belongs to an attacker, and a file of the host that it must not
// reach.
#pragma once

#include "base/file.hpp"
#include "integration/detection.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/stat.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace pyinject::test {

// Detects changes of a file by any process, and opens and reads by this one and those that it
// starts, from its construction on. Whatever else runs on this machine may look at any file.
class Witness {
 public:
  explicit Witness(const std::string& path)
      : changes_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)},
        opens_{
            ::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC)},
        ended_{::eventfd(0, EFD_CLOEXEC)} {
    constexpr auto kChanges = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
    EXPECT_GE(::inotify_add_watch(changes_.get(), path.c_str(), kChanges), 0);
    EXPECT_EQ(::setenv(kMark, mark_.c_str(), 1), 0);
    EXPECT_EQ(::fanotify_mark(opens_.get(), FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ACCESS_PERM, AT_FDCWD,
                              path.c_str()),
              0);
    thread_ = std::thread{[this] { watch(); }};
  }
  ~Witness() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(ended_.get(), &one, sizeof one);
    thread_.join();
    ::unsetenv(kMark);
  }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  // Who did what; empty: nothing happened.
  [[nodiscard]] std::string seen() const {
    std::array<char, 4096> buffer{};
    const bool changed = ::read(changes_.get(), buffer.data(), buffer.size()) > 0;
    const std::lock_guard lock{mutex_};
    return (changed ? "it was changed; " : "") + opened_by_;
  }

 private:
  static constexpr const char* kMark = "PYINJECT_TEST_WITNESS";  // inherited by what we start

  // A process that opens the file waits until it is answered, and can be looked at.
  void watch() {
    std::array<pollfd, 2> readable{pollfd{.fd = opens_.get(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = ended_.get(), .events = POLLIN, .revents = 0}};
    while (::poll(readable.data(), readable.size(), -1) >= 0 && readable[1].revents == 0) {
      alignas(fanotify_event_metadata) std::array<char, 4096> buffer{};
      auto left = ::read(opens_.get(), buffer.data(), buffer.size());
      const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
      for (; FAN_EVENT_OK(event, left); event = FAN_EVENT_NEXT(event, left)) {
        const base::UniqueFd file{event->fd};
        note(base::Pid{event->pid});
        const fanotify_response answer{.fd = event->fd, .response = FAN_ALLOW};
        [[maybe_unused]] const auto written = ::write(opens_.get(), &answer, sizeof answer);
      }
    }
  }
  void note(base::Pid pid) {
    if (pid.value() == ::getpid() || procfs::read_environ_value(pid, kMark) == mark_) {
      const auto stat = procfs::read_stat(pid);
      const std::lock_guard lock{mutex_};
      opened_by_ +=
          fmt::format("pid {} ({}) opened or read it; ", pid.value(), stat ? stat->name : "gone");
    }
  }

  base::UniqueFd changes_;
  base::UniqueFd opens_;
  base::UniqueFd ended_;
  const std::string mark_ = std::to_string(::getpid());
  mutable std::mutex mutex_;  // protects opened_by_
  std::string opened_by_;
  std::thread thread_;
};

// Executes the lines that it reads. SECRET is a file of the host; /secret is the same file, mounted
// in the root.
inline constexpr auto kObedient = R"(
import ctypes, os, socket, sys, threading
MAP = f'/tmp/perf-{os.getpid()}.map'
SECRET = sys.argv[1]
def mount(what, where):
    assert ctypes.CDLL(None).mount(what.encode(), where.encode(), None, 4096, None) == 0  # MS_BIND
def map_descriptor():
    wanted = os.stat(MAP)
    def is_it(fd):
        try: return os.path.samestat(os.fstat(fd), wanted)
        except OSError: return False
    return next(fd for fd in range(3, 1000) if is_it(fd))
def put_under_the_maps_number(path_flags):
    fd = map_descriptor()
    os.unlink(MAP)
    path_flags[0]()
    new = os.open(MAP, path_flags[1])
    os.dup2(new, fd)
    os.close(new)
def swap(stop):
    while not stop:
        os.symlink(SECRET, MAP + '.new'); os.rename(MAP + '.new', MAP)
        open(MAP + '.new', 'w').close(); os.rename(MAP + '.new', MAP)
stop = []
print('ready', flush=True)
for line in sys.stdin:
    exec(line)
    print('done', flush=True)
)";

// The root is a directory of the process in its own mount namespace, composed of bind mounts from
// an interpreter's root; the process can change everything else in it.
class HostileRoot : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "chroot needs root";
    }
    const auto chrooted = interpreters({.root = true});
    if (chrooted.empty()) {
      GTEST_SKIP() << "no interpreter in a root of its own is here";
    }
    interpreter_ = chrooted.back();
    start(interpreter_);
  }

  void start(const Interpreter& interpreter) {
    constexpr auto kMakeRoot = R"(set -e
root=$1 new=$2 secret=$3
shift 3
mount -t tmpfs none "$new"
for one in "$root"/*; do
  name=${one##*/}
  case $name in
    dev|proc|sys|tmp|run) mkdir "$new/$name" ;;
    *) if [ -L "$one" ]; then cp -P "$one" "$new"; else
         mkdir "$new/$name"; mount --bind "$one" "$new/$name"; fi ;;
  esac
done
cp "$root/usr/bin/python3."[0-9][0-9] "$new/tmp/"
touch "$new/secret"
mount --bind "$secret" "$new/secret"
mount --rbind "$new" "$root"
exec "$@")";
    PythonOptions options;
    options.args = {secret_};
    python_.emplace(wrapped(interpreter, {"unshare", "--mount", "sh", "-c", kMakeRoot, "sh",
                                          interpreter_.root, new_root_.path(), secret_}),
                    kObedient, options);
    pid_ = std::to_string(python_->pid().value());
    witness_.emplace(secret_);
  }

  // Makes the process execute LINE.
  void order(const std::string& line) {
    python_->send_line(line);
    ASSERT_EQ(python_->read_line(), "done") << line;
  }
  // Runs the built tool as root. A tool that hangs is a failure.
  [[nodiscard]] static RunResult pyinject(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), tool());
    return run(arguments);
  }
  [[nodiscard]] RunResult record(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments{"record", "-p", pid_, "-o", directory_ / "data"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "true"});
    return pyinject(std::move(arguments));
  }
  // Expects that `status` and `activate` refuse it, with PART in the message.
  void expect_refused(const std::string& part) const {
    EXPECT_THAT(pyinject({"status", "-p", pid_}).out, testing::HasSubstr(part));
    const auto result = pyinject({"activate", "-p", pid_});
    EXPECT_EQ(result.status, (ExitStatus{.code = 125}));
    EXPECT_THAT(result.err, testing::HasSubstr(part));
    expect_nothing_got_out();
  }
  // The host's file was not even opened, and our copy contains nothing of it.
  void expect_nothing_got_out() const {
    EXPECT_EQ(witness_->seen(), "") << "the host's file was touched";
    EXPECT_THAT(base::read_file(copy()).value_or(""), testing::Not(testing::HasSubstr("SECRET")));
  }
  // The path at which perf looks for the map.
  [[nodiscard]] std::string copy() const { return "/tmp/perf-" + pid_ + ".map"; }

  Interpreter interpreter_;
  TempDir directory_;
  TempDir new_root_;
  std::string secret_ = directory_.file("secret", "1000 10 py::SECRET\n");
  std::optional<PythonProcess> python_;
  std::string pid_;
  std::optional<Witness> witness_;
};

}  // namespace pyinject::test
