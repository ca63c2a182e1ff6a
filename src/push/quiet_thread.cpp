#include "push/quiet_thread.hpp"

#include <csignal>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace pyinject::push {

namespace {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::thread start_quiet_thread(std::function<void()> body) {
  const BlockedSignals blocked;  // the new thread inherits the mask
  return std::thread{[body = std::move(body)] {
    // On Linux, the nice value is a thread's own. Far lower, and the thread would not keep up with
    // the recordings of a busy machine.
    constexpr int kNice = 5;
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
    body();
  }};
}

}  // namespace pyinject::push
