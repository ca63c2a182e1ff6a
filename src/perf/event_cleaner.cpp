#include "perf/event_cleaner.hpp"

#include "base/fault.hpp"
#include "base/file.hpp"
#include "base/stand_apart.hpp"
#include "perf/uprobe_events.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::perf {

namespace {

constexpr std::chrono::seconds kPerfExits{60};  // it closes each event in turn
constexpr std::chrono::milliseconds kPause{50};

// False: the other end was closed.
bool is_dismissed(int socket) {
  char byte = 0;
  ssize_t length = 0;
  do {
    length = ::read(socket, &byte, 1);
  } while (length < 0 && errno == EINTR);
  return length == 1;
}

void clean(const std::string& list, const std::string& group) {
  const auto deadline = base::Deadline::after(kPerfExits);
  while (remove_group(list, group) != 0 && !deadline.expired()) {
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

EventCleaner::EventCleaner(const std::string& list, const std::string& group) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw base::SystemError{"guard: cannot make a socket", errno};
  }
  socket_.reset(ends[0]);
  base::UniqueFd its{ends[1]};
  const pid_t child = ::fork();
  if (child < 0) {
    throw base::SystemError{"guard: cannot fork", errno};
  }
  if (child == 0) {
    socket_.reset();
    base::set_fault_handler(nullptr);
    base::stand_apart();
    base::keep_only(its.get());
    (void)::dup2(STDOUT_FILENO, STDERR_FILENO);
    try {
      if (!is_dismissed(its.get())) {
        clean(list, group);
      }
    } catch (const std::exception&) {  // the next session removes them
    }
    ::_exit(0);
  }
  process_ = base::Pid{child};
}

void EventCleaner::dismiss() {
  [[maybe_unused]] const auto sent = ::send(socket_.get(), "", 1, MSG_NOSIGNAL);
  while (::waitpid(process_.value(), nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace pyinject::perf
