#include "open_stop.hpp"

#include "pyinject/base/error.hpp"
#include "tracee/shared_stops.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <new>

#include <sys/mman.h>

namespace pyinject::tracee {

namespace {

struct Page {
  std::atomic<std::uint64_t> serial;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<OpenStops>> open;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "two processes use them");

Page* g_page = nullptr;  // never unmapped
std::atomic<Page*> g_noted_in{nullptr};

std::mutex g_sharing;

constexpr std::array<int, 3> kDeferred{SIGTSTP, SIGTTIN, SIGTTOU};

// The signal that arrived while a stop was open; 0: none.
std::atomic<int> g_deferred{0};

void defer(int signal) { g_deferred = signal; }

// All stops of the process share the signal dispositions.
class JobControl {
 public:
  void stop_begins() {
    std::unique_lock lock{mutex_};
    // Otherwise overlapping stops would defer it as long as targets are being stopped.
    none_open_.wait(lock, [this] { return open_ == 0 || g_deferred == 0; });
    if (open_++ == 0) {
      take_over();
    }
  }

  void stop_ends() {
    const std::scoped_lock lock{mutex_};
    if (--open_ != 0) {
      return;
    }
    give_back();
    if (const int signal = g_deferred.exchange(0); signal != 0) {
      (void)::raise(signal);  // this stops the process
    }
    none_open_.notify_all();
  }

 private:
  void take_over() {
    struct sigaction note {};
    note.sa_handler = defer;
    note.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kDeferred.size(); ++i) {
      struct sigaction before {};
      taken_[i] = ::sigaction(kDeferred[i], &note, &before) == 0;
      if (taken_[i] && ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL)) {
        ::sigaction(kDeferred[i], &before, nullptr);
        taken_[i] = false;
      }
    }
  }

  void give_back() const {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    for (std::size_t i = 0; i < kDeferred.size(); ++i) {
      if (taken_[i]) {
        ::sigaction(kDeferred[i], &usual, nullptr);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable none_open_;
  int open_ = 0;
  std::array<bool, kDeferred.size()> taken_{};
};

JobControl& job_control() {
  static JobControl instance;
  return instance;
}

}  // namespace

void share_stops() {
  const std::scoped_lock lock{g_sharing};
  if (g_page != nullptr) {
    return;
  }
  void* const memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw base::SystemError{"cannot map a page to share with the guard", errno};
  }
  g_page = new (memory) Page{};
  g_noted_in = g_page;
}

void keep_own_stops_private() { g_noted_in = nullptr; }

OpenStops shared_stops() {
  OpenStops result{};
  if (g_page != nullptr) {
    std::ranges::transform(g_page->open, result.begin(),
                           [](const auto& slot) { return slot.load(); });
  }
  return result;
}

OpenStop::OpenStop() {
  job_control().stop_begins();
  Page* const page = g_noted_in;
  if (page == nullptr) {
    return;
  }
  const auto serial = ++page->serial;
  for (auto& slot : page->open) {
    std::uint64_t none = 0;
    if (slot.compare_exchange_strong(none, serial)) {
      slot_ = &slot;
      return;
    }
  }
}

OpenStop::~OpenStop() {
  if (slot_ != nullptr) {
    *slot_ = 0;
  }
  job_control().stop_ends();
}

}  // namespace pyinject::tracee
