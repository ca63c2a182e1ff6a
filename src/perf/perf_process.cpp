#include "perf/perf_process.hpp"

#include "base/text.hpp"
#include "procfs/blocked_task.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::perf {

namespace {

constexpr std::size_t kMostText = std::size_t{64} << 10;
constexpr std::chrono::seconds kTimeToComplete{5};
constexpr std::string_view kWritten = "[ perf record: Captured and wrote ";
constexpr std::chrono::milliseconds kBetweenWakeUps{10};
// Longest sleep in one open(2) (not a wait for a disk): automounters take a while.
constexpr std::chrono::seconds kMostInOneOpen{5};

std::pair<base::UniqueFd, base::UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw base::SystemError{"perf: cannot make a pipe", errno};
  }
  return {base::UniqueFd{ends[0]}, base::UniqueFd{ends[1]}};
}

void set_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    throw base::SystemError{"perf: cannot make a pipe non-blocking", errno};
  }
}

}  // namespace

std::vector<SamplingEvent> sampling_events(std::string_view answer) {
  constexpr std::string_view kType = ": type: ";
  std::vector<SamplingEvent> events;
  for (auto line : base::split(answer, '\n')) {
    line = base::trim(line);
    const auto colon = std::min(line.find(kType), line.size());
    const auto name = line.substr(0, colon);
    // perf's own side-band event: "dummy:HG" in 6.1, "dummy:u" from 6.12 on.
    if (name.empty() || name == "dummy" || name.starts_with("dummy:")) {
      continue;
    }
    auto type = line.substr(std::min(colon + kType.size(), line.size()));
    type = type.substr(0, type.find_first_not_of("0123456789"));
    events.push_back({.name = std::string{name}, .type = base::parse_number<std::uint32_t>(type)});
  }
  return events;
}

PerfProcess::PerfProcess(RecordCommand command) {
  auto [command_read, command_write] = make_pipe();
  auto [ack_read, ack_write] = make_pipe();
  auto [error_read, error_write] = make_pipe();
  const base::UniqueFd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  std::vector<int> kept{command_read.get(), ack_read.get(), ack_write.get()};
  if (!command.own_recorder) {  // which completes its file when the other end closes
    kept.push_back(command_write.get());
  }
  command.control_fd = command_read.get();
  command.ack_fd = ack_write.get();
  child_ = std::make_unique<base::Child>(base::ChildOptions{
      .argv = record_argv(command),
      .own_group = true,
      // If this tool is killed, perf's stderr has no reader, but perf must still complete its file.
      .ignore_pipe_signal = true,
      .death_signal = SIGINT,
      .stdin_fd = nothing.get(),
      .stdout_fd = -1,
      .stderr_fd = error_write.get(),
      .keep = std::move(kept)});
  // NOLINTBEGIN(cppcoreguidelines-prefer-member-initializer): each has its other end in a local
  commands_ = std::move(command_write);
  acks_ = std::move(ack_read);
  errors_ = std::move(error_read);
  // NOLINTEND(cppcoreguidelines-prefer-member-initializer)
  set_nonblocking(errors_.get());
}

PerfProcess::~PerfProcess() {
  if (child_ && !child_->try_wait()) {
    child_->send_signal(SIGINT);
    [[maybe_unused]] const auto ended = wait(base::Deadline::after(kTimeToComplete));
  }
}

void PerfProcess::read_stderr() {
  std::array<char, 4096> buffer{};
  while (errors_.valid()) {
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got == 0) {
      errors_.reset();
    } else if (got > 0) {
      text_.append(buffer.data(), static_cast<std::size_t>(got));
      if (text_.size() > kMostText) {
        text_.erase(0, text_.size() - kMostText);
      }
    } else if (errno != EINTR) {
      return;
    }
  }
}

// After its last message, perf joins its thread for records of BPF programs, which checks only once
// a second whether it should end. A signal interrupts the poll() of that thread; by then SIGCHLD
// has no other effect. linux, tools/perf/util/sideband_evlist.c; builtin-record.c, sig_handler().
void PerfProcess::wake_up_threads() const noexcept {
  try {
    for (const auto thread : procfs::list_tasks(pid())) {
      if (thread.value() != pid().value()) {
        (void)::syscall(SYS_tgkill, pid().value(), thread.value(), SIGCHLD);
      }
    }
  } catch (const std::exception&) {  // no descriptor or no memory: perf exits up to a second later
    return;
  }
}

// Waits for the first of these events. Returns true if INTERRUPT is readable.
bool PerfProcess::poll_once(base::Deadline deadline, int interrupt, int ack) {
  if (ack < 0 && text_.find(kWritten) != std::string::npos) {  // told to stop, and has written
    wake_up_threads();
    deadline = deadline.earlier(base::Deadline::after(kBetweenWakeUps));
  }
  std::array<pollfd, 4> fds = {{{.fd = child_->pidfd(), .events = POLLIN, .revents = 0},
                                {.fd = errors_.get(), .events = POLLIN, .revents = 0},
                                {.fd = interrupt, .events = POLLIN, .revents = 0},
                                {.fd = ack, .events = POLLIN, .revents = 0}}};
  ::poll(fds.data(), fds.size(), deadline.remaining_ms());
  read_stderr();
  return fds[2].revents != 0;
}

Answer PerfProcess::request(std::string_view word, base::Deadline deadline, int interrupt) {
  return send(std::string{word} + "\n", 1, deadline, interrupt);
}

// Waits for all outstanding acknowledgements, including those of interrupted waits: otherwise a
// later command would count as done too early.
Answer PerfProcess::send(const std::string& lines, int count, base::Deadline deadline,
                         int interrupt) {
  if (try_wait()) {
    return Answer::kEnded;
  }
  if (::write(commands_.get(), lines.data(), lines.size()) < 0) {
    read_stderr();  // it is exiting: its last message is in the pipe
    return Answer::kEnded;
  }
  owed_ += count;
  std::array<char, 256> acks{};
  while (owed_ > 0) {
    pollfd readable{.fd = acks_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN) != 0) {
      const ssize_t got = ::read(acks_.get(), acks.data(), acks.size());
      if (got <= 0) {
        read_stderr();
        return Answer::kEnded;
      }
      // An acknowledgement is "ack", a newline and a NUL (perf 6.1 to 7.2).
      owed_ -= static_cast<int>(std::count(acks.begin(), acks.begin() + got, '\n'));
    } else if (try_wait()) {
      return Answer::kEnded;
    } else if (deadline.expired()) {
      return Answer::kDeadline;
    } else if (poll_once(deadline, interrupt, acks_.get())) {
      return Answer::kInterrupted;
    }
  }
  return Answer::kAcknowledged;
}

Answer PerfProcess::ask_for_events(std::string_view word, base::Deadline deadline, int interrupt,
                                   std::vector<SamplingEvent>& events) {
  read_stderr();
  const std::size_t before = text_.size();
  const auto answer = request(word, deadline, interrupt);
  read_stderr();  // perf does not buffer stderr: complete when the acknowledgement arrives
  events = perf::sampling_events(std::string_view{text_}.substr(std::min(before, text_.size())));
  return answer;
}

std::vector<SamplingEvent> PerfProcess::sampling_events(base::Deadline deadline, int interrupt) {
  std::vector<SamplingEvent> events;
  (void)ask_for_events("evlist -v", deadline, interrupt, events);
  return events;
}

Answer PerfProcess::enable_side_events(base::Deadline deadline, int interrupt) {
  std::vector<SamplingEvent> events;
  const auto answer = ask_for_events("evlist", deadline, interrupt, events);
  if (answer != Answer::kAcknowledged) {
    return answer;
  }
  // perf ignores the name "dummy" in "enable" and "disable". So enable all events and disable the
  // sampling ones by name, in one write: this may yield a stray sample or two, or more if perf is
  // slow.
  std::string lines = "enable\n";
  for (const auto& event : events) {
    lines += "disable " + event.name + "\n";
  }
  return send(lines, static_cast<int>(events.size()) + 1, deadline, interrupt);
}

std::optional<base::ExitStatus> PerfProcess::try_wait() {
  const auto status = child_->try_wait();
  if (status) {
    read_stderr();
  }
  return status;
}

// The result of procfs::read_system_call() if it is open(2) or openat(2); else empty.
std::string PerfProcess::open_call() const {
  const auto pid = child_->pid();
  auto text = procfs::read_system_call(pid, base::Tid{pid.value()}).value_or("");
  const auto number = procfs::parse_system_call(text);
  constexpr std::array<long, 2> kOpen{SYS_open, SYS_openat};
  return number && std::ranges::find(kOpen, *number) != kOpen.end() ? text : "";
}

std::optional<base::ExitStatus> PerfProcess::wait_for_file(base::Deadline deadline, int interrupt) {
  std::string last;
  auto patience = base::Deadline::after(kMostInOneOpen);
  while (!try_wait() && !deadline.expired()) {
    if (poll_once(deadline.earlier(base::Deadline::after(std::chrono::milliseconds{500})),
                  interrupt, -1)) {
      break;
    }
    auto now = open_call();
    stuck_ = !now.empty() && now == last && patience.expired();
    if (stuck_) {
      break;
    }
    if (now != last) {
      last = std::move(now);
      patience = base::Deadline::after(kMostInOneOpen);
    }
  }
  return try_wait();
}

std::optional<base::ExitStatus> PerfProcess::wait(base::Deadline deadline, int interrupt) {
  while (!try_wait() && !deadline.expired()) {
    if (poll_once(deadline, interrupt, -1)) {
      break;
    }
  }
  return try_wait();
}

}  // namespace pyinject::perf
