#include "stress/stressed_target.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::test {

namespace {

namespace fs = std::filesystem;
using base::Deadline;

std::string program_text(std::string_view name) {
  const auto directory = source_dir() + "/tests/targets/stress/";
  const auto read = [&directory](std::string_view file) {
    const auto path = fmt::format("{}{}.py", directory, file);
    auto text = base::read_file(path);
    if (!text) {
      throw base::Error{"cannot read " + path};
    }
    return *text;
  };
  return read("control") + "\n" + read(name);
}

// Without warnings: any output on stderr is an error.
std::vector<std::string> command(const Interpreter& interpreter, const Kind& kind,
                                 const std::vector<std::string>& options,
                                 const std::string& directory) {
  auto argv = interpreter.command;
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {"-W", "ignore", "-c", program_text(kind.name), directory});
  return argv;
}

ChildOptions quiet(const Interpreter& interpreter) {
  ChildOptions options;
  options.root = interpreter.root;
  options.env["PYTHONDONTWRITEBYTECODE"] = "1";
  return options;
}

}  // namespace

SharedDirectory::SharedDirectory(const Interpreter& interpreter) {
  auto name = interpreter.root + "/tmp/pyinject-stress-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw base::SystemError{"cannot make a directory like " + name, errno};
  }
  outside_ = name;
  inside_ = name.substr(interpreter.root.size());
  fs::copy_file(targets_dir() + "/stress.so", outside_ / "stress.so");
  const auto page = (outside_ / "page").string();
  const base::UniqueFd fd{::open(page.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!fd.valid() || ::ftruncate(fd.get(), kBytes) != 0) {
    throw base::SystemError{"cannot make " + page, errno};
  }
  void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) {
    throw base::SystemError{"cannot map " + page, errno};
  }
  words_ = static_cast<std::uint64_t*>(at);
}

SharedDirectory::~SharedDirectory() {
  ::munmap(words_, kBytes);
  std::error_code ignored;
  fs::remove_all(outside_, ignored);
}

std::uint64_t SharedDirectory::rounds() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 1; i < kBytes / sizeof(std::uint64_t); ++i) {
    sum += std::atomic_ref<std::uint64_t>{words_[i]}.load(std::memory_order_relaxed);
  }
  return sum;
}

void SharedDirectory::stop() { std::atomic_ref<std::uint64_t>{words_[0]}.store(1); }

StressedTarget::StressedTarget(const Interpreter& interpreter, const Kind& kind,
                               const std::vector<std::string>& options)
    : root_{interpreter.root},
      directory_{interpreter},
      child_{command(interpreter, kind, options, directory_.seen_by_target()), quiet(interpreter)} {
  if (child_.read_line(Deadline::after(kPatience)) != "ready") {
    throw base::Error{
        fmt::format("{} on {} does not begin: {}", kind.name, interpreter.name, whereabouts())};
  }
}

// A stopped program would not notice the command to stop.
StressedTarget::~StressedTarget() {
  child_.signal(SIGCONT);
  stop();
  ::unlink(map_path().c_str());
}

bool StressedTarget::works_on(std::uint64_t rounds) {
  const auto deadline = Deadline::after(kPatience);
  while (directory_.rounds() <= rounds) {
    if (deadline.expired() || !child_.running()) {
      return false;
    }
    // The program only writes a word of memory, which cannot be waited for.
    const timespec moment{.tv_sec = 0, .tv_nsec = 100'000};
    ::nanosleep(&moment, nullptr);
  }
  return true;
}

std::optional<std::string> StressedTarget::verdict() {
  return child_.read_line(Deadline::after(kPatience));
}

std::optional<ExitStatus> StressedTarget::end() {
  child_.close_stdin();
  return child_.wait(Deadline::after(kPatience));
}

std::string StressedTarget::whereabouts() {
  std::string text;
  if (const auto status = child_.wait(Deadline::after(std::chrono::nanoseconds{0}))) {
    text = fmt::format("exit status {}, signal {}", status->code, status->signal);
  } else {
    for (const auto thread : procfs::list_tasks(pid())) {
      const auto task = fmt::format("/proc/{}/task/{}/", pid().value(), thread.value());
      const auto stat = base::read_file(task + "stat").value_or("");
      const auto call = base::read_file(task + "syscall").value_or("");
      text +=
          fmt::format("tid {}: {} in {}; ", thread.value(),
                      stat.substr(std::min(stat.size(), stat.rfind(')') + 2), 1), base::trim(call));
    }
  }
  return fmt::format("{}; stderr: {}", text, base::trim(child_.err()));
}

std::string StressedTarget::map_path() const {
  return fmt::format("{}/tmp/perf-{}.map", root_, pid().value());
}

}  // namespace pyinject::test
