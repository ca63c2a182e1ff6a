// Requests to end what goes on, as a pollable descriptor.
//
// For example:
//   targets::StopSwitch stop;
//   std::thread later{[&] { stop.request(); }};
//   pollfd wait{.fd = stop.fd(), .events = POLLIN, .revents = 0};
//   (void)::poll(&wait, 1, -1);
//   later.join();
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/session_names.hpp"

#include <csignal>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace pyinject::targets {

struct StopSignal {
  int number = 0;
  bool from_kernel = false;  // sent by a terminal: its whole foreground process group got it
};

// A request has the number of the signal that it stands for. None is lost: fd() stays readable
// until it is taken.
class StopRequests {
 public:
  virtual ~StopRequests() = default;
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // Calls LISTENER with each request, in another thread: requests are noticed while the caller is
  // busy; next() still returns them. Calls it at once if there are some already. Replaces the
  // listener before; an empty one: none any more. Throws base::SystemError, and then listens to
  // nothing, if a thread cannot be created.
  virtual void listen(std::function<void(int)> listener);
  [[nodiscard]] virtual int fd() const { return arrived_.get(); }
  // Returns the next request without waiting.
  [[nodiscard]] virtual std::optional<StopSignal> next_with_origin();
  [[nodiscard]] std::optional<int> next();
  // The signals that a command of this program is to ignore from its start.
  [[nodiscard]] virtual const std::vector<int>& ignored_before() const;

 protected:
  // Throws base::SystemError if there is no descriptor.
  StopRequests();
  void add(StopSignal request);

 private:
  base::UniqueFd arrived_;  // an eventfd: readable while QUEUE_ is not empty
  std::mutex mutex_;        // protects the members below
  std::deque<StopSignal> queue_;
  std::function<void(int)> listener_;
};

// Requests that the program makes itself.
class StopSwitch : public StopRequests {
 public:
  // From any thread, which then is the one that calls a listener.
  void request(int signal = SIGINT) { add({.number = signal, .from_kernel = false}); }
};

}  // namespace pyinject::targets
