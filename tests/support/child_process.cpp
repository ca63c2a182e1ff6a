#include "support/child_process.hpp"

#include "base/file.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/error.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {

namespace {

using base::UniqueFd;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw base::SystemError{"cannot make a pipe", errno};
  }
  return {.read = UniqueFd{ends[0]}, .write = UniqueFd{ends[1]}};
}

void never_block(const UniqueFd& fd) {
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
    throw base::SystemError{"cannot make a pipe non-blocking", errno};
  }
}

std::vector<std::string> environment(const std::vector<std::string>& argv,
                                     const ChildOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text{*entry};
    const auto name = text.substr(0, text.find('='));
    if (!options.env.contains(name) && std::ranges::count(options.unset, name) == 0) {
      result.push_back(text);
    }
  }
  for (const auto& [name, value] : options.env) {
    result.push_back(fmt::format("{}={}", name, value));
  }
  if (starts_record(argv) && !options.env.contains(kEngineVariable)) {
    result.push_back(fmt::format("{}=trampoline", kEngineVariable));
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

// Everything that the new process needs, prepared before fork: the child must not allocate.
struct Start {
  std::vector<char*> argv;
  std::array<std::string, 2> maps;  // map paths up to the pid
  std::vector<char*> envp;
  const ChildOptions& options;
  pid_t parent;
  std::array<int, 3> standard;
  int failure;  // descriptor for the errno of a failure
};

void remove_stale_maps(const std::string& prefix) {
  std::array<char, 4096> path{};
  std::array<char, 16> digits{};
  const auto number = std::to_chars(digits.begin(), digits.end(), ::getpid());
  for (const std::string_view suffix : {".map", ".map.old"}) {
    if (prefix.size() + digits.size() + suffix.size() < path.size()) {
      auto* end = std::ranges::copy(prefix, path.begin()).out;
      end = std::copy(digits.begin(), number.ptr, end);
      end = std::ranges::copy(suffix, end).out;
      *end = '\0';
      ::unlink(path.data());
    }
  }
}

bool become(const ChildOptions& options) {
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) {
    return false;
  }
  return !options.uid || (::setgroups(0, nullptr) == 0 && ::setgid(*options.uid) == 0 &&
                          ::setuid(*options.uid) == 0);
}

// Runs in the new process: async-signal-safe calls only.
[[noreturn]] void execute(const Start& start) {
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Includes the signals that shells and nohup(1) ignore in background jobs.
  for (const int number : {SIGPIPE, SIGINT, SIGQUIT, SIGHUP}) {
    (void)::signal(number, SIG_DFL);
  }
  for (const auto& prefix : start.maps) {
    remove_stale_maps(prefix);
  }
  bool ready = become(start.options);
  // After the change of user, which clears this setting (prctl(2)).
  ready = ready && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  if (::getppid() != start.parent) {
    ::_exit(127);
  }
  for (int i = 0; i < 3; ++i) {
    ready = ready && ::dup2(start.standard.at(static_cast<std::size_t>(i)), i) == i;
  }
  if (ready) {
    ::execvpe(start.argv[0], start.argv.data(), start.envp.data());
  }
  const int code = errno;
  const bool told = ::write(start.failure, &code, sizeof code) == sizeof code;
  ::_exit(told ? 127 : 126);
}

}  // namespace

bool starts_record(const std::vector<std::string>& argv) {
  return std::ranges::adjacent_find(argv, [](const auto& program, const auto& verb) {
           return verb == "record" && (program == tool() || program == faulty_tool());
         }) != argv.end();
}

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const ChildOptions& options) {
  // Report a child that does not read as EPIPE. Each child resets this.
  (void)::signal(SIGPIPE, SIG_IGN);
  auto arguments = argv;
  auto variables = environment(argv, options);
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe failure = make_pipe();
  const Start start{.argv = pointers(arguments),
                    .maps = {"/tmp/perf-", options.root + "/tmp/perf-"},
                    .envp = pointers(variables),
                    .options = options,
                    .parent = ::getpid(),
                    .standard = {in.read.get(), out.write.get(), err.write.get()},
                    .failure = failure.write.get()};
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw base::SystemError{"cannot fork", errno};
  }
  if (pid == 0) {
    execute(start);
  }
  pid_ = base::Pid{pid};
  pidfd_ = UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  failure.write.reset();
  int code = 0;
  if (::read(failure.read.get(), &code, sizeof code) == sizeof code) {
    ::waitpid(pid, nullptr, 0);
    throw base::SystemError{"cannot run " + argv.at(0), code};
  }
  stdin_ = std::move(in.write);
  out_.fd = std::move(out.read);
  err_.fd = std::move(err.read);
  never_block(out_.fd);
  never_block(err_.fd);
}

ChildProcess::~ChildProcess() {
  if (!status_) {
    ::kill(pid_.value(), SIGKILL);
    ::waitpid(pid_.value(), nullptr, 0);
  }
}

void ChildProcess::Stream::drain() {
  std::array<char, 16384> buffer{};
  while (fd.valid()) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      fd.reset();
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool ChildProcess::pump(base::Deadline deadline) {
  // poll(2) ignores negative descriptors.
  std::array<pollfd, 3> events{pollfd{.fd = pidfd_.get(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = out_.fd.get(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = err_.fd.get(), .events = POLLIN, .revents = 0}};
  const int ready = ::poll(events.data(), events.size(), deadline.remaining_ms());
  out_.drain();
  err_.drain();
  return ready > 0 || (ready < 0 && errno == EINTR);
}

bool ChildProcess::reap() {
  // Only after its exit: waitpid would consume the ptrace stops of a child that this process
  // traces.
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  int status = 0;
  if (!status_ && ::poll(&ended, 1, 0) == 1) {
    const pid_t reaped = ::waitpid(pid_.value(), &status, WNOHANG);
    if (reaped < 0) {
      throw base::SystemError{"somebody else has reaped the child", errno};
    }
    if (reaped == 0) {
      return false;  // some of its threads still exist
    }
    status_ = WIFSIGNALED(status) ? ExitStatus{.code = 0, .signal = WTERMSIG(status)}
                                  : ExitStatus{.code = WEXITSTATUS(status), .signal = 0};
    out_.drain();
    err_.drain();
  }
  return status_.has_value();
}

bool ChildProcess::running() { return !reap(); }

std::optional<std::string> ChildProcess::read_line(base::Deadline deadline) {
  while (true) {
    out_.drain();
    if (const auto end = out_.text.find('\n'); end != std::string::npos) {
      auto line = out_.text.substr(0, end);
      out_.text.erase(0, end + 1);
      return line;
    }
    if (!out_.fd.valid() || reap() || !pump(deadline)) {
      // Check again: its last output may have arrived in the meantime.
      if (out_.text.find('\n') == std::string::npos) {
        return std::nullopt;
      }
    }
  }
}

void ChildProcess::write(std::string_view text) {
  base::write_all(stdin_.get(), text, fmt::format("to process {}", pid_.value()));
}

void ChildProcess::signal(int number) const {
  if (!status_) {
    ::kill(pid_.value(), number);
  }
}

std::optional<ExitStatus> ChildProcess::wait(base::Deadline deadline) {
  while (!reap()) {
    if (!pump(deadline)) {
      return std::nullopt;
    }
  }
  return status_;
}

RunResult run(const std::vector<std::string>& argv, const RunOptions& options) {
  ChildProcess child{argv, options.child};
  if (!options.input.empty()) {
    child.write(options.input);
  }
  child.close_stdin();
  const auto status = child.wait(base::Deadline::after(options.deadline));
  if (!status) {
    throw base::Error{fmt::format("{} did not end in time; stdout:\n{}\nstderr:\n{}",
                                  fmt::join(argv, " "), child.out(), child.err())};
  }
  return {.status = *status, .out = child.out(), .err = child.err()};
}

void await(ChildProcess& child, std::string_view words) {
  const auto deadline = base::Deadline::after(kPatience);
  while (child.err().find(words) == std::string::npos) {
    if (child.wait(base::Deadline::after(std::chrono::milliseconds{20})) || deadline.expired()) {
      throw base::Error{fmt::format("it does not say \"{}\": {}", words, child.err())};
    }
  }
}

bool comes_to_job_control_stop(base::Pid pid) {
  const auto deadline = base::Deadline::after(kPatience);
  while (!deadline.expired()) {
    const auto stat = procfs::read_stat(pid);
    if (!stat || stat->state == 'T' || stat->state == 'Z') {
      return stat && stat->state == 'T';
    }
    ::sched_yield();
  }
  return false;
}

}  // namespace pyinject::test
