#include "perf/event_cleaner.hpp"

#include "base/stand_apart.hpp"
#include "perf/uprobe_events.hpp"
#include "pyinject/base/deadline.hpp"

#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

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
  auto started = base::start_apart([&](int socket) {
    (void)::dup2(STDOUT_FILENO, STDERR_FILENO);
    try {
      if (!is_dismissed(socket)) {
        clean(list, group);
      }
    } catch (const std::exception&) {  // the next session removes them
    }
  });
  process_ = started.pid;
  socket_ = std::move(started.socket);
}

void EventCleaner::dismiss() {
  [[maybe_unused]] const auto sent = ::send(socket_.get(), "", 1, MSG_NOSIGNAL);
  while (::waitpid(process_.value(), nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace pyinject::perf
