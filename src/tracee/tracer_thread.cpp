#include "tracee/tracer_thread.hpp"

#include "open_stop.hpp"
#include "pyinject/base/error.hpp"
#include "tracee/stopped_process.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

namespace pyinject::tracee {

namespace {

constexpr std::size_t kPrepared = 2;
// Without room for more threads. A thread in state D may never stop.
constexpr std::chrono::seconds kLastPatience{1};

struct Job {
  const std::function<void()>& work;
  std::exception_ptr failure = {};
  bool done = false;
  bool reusable = false;  // the thread traces nothing
};

// Value reported on this thread since its work started.
thread_local std::optional<bool> t_detached;

class Tracer {
 public:
  Tracer() {
    try {
      thread_ = std::thread{[this] { run(); }};
    } catch (const std::system_error& error) {
      throw base::SystemError{"cannot start a thread that stops targets", error.code().value()};
    }
  }
  ~Tracer() {
    {
      const std::scoped_lock lock{mutex_};
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  void work(Job& job) {
    std::unique_lock lock{mutex_};
    job_ = &job;
    changed_.notify_all();
    changed_.wait(lock, [&job] { return job.done; });
  }

 private:
  void run() {
    (void)::prctl(PR_SET_NAME, kTracerName);
    std::unique_lock lock{mutex_};
    while (true) {
      changed_.wait(lock, [this] { return ending_ || job_ != nullptr; });
      if (job_ == nullptr) {
        return;
      }
      Job& job = *std::exchange(job_, nullptr);
      lock.unlock();
      t_detached.reset();
      try {
        job.work();
      } catch (...) {
        job.failure = std::current_exception();
      }
      const bool reusable = t_detached.value_or(true);
      lock.lock();
      job.reusable = reusable;
      job.done = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Job* job_ = nullptr;
  bool ending_ = false;
  std::thread thread_;
};

class TracerThreads {
 public:
  void prepare() {
    const std::scoped_lock lock{mutex_};
    while (idle_.size() < kPrepared) {
      idle_.push_back(std::make_unique<Tracer>());
    }
  }

  void work(const std::function<void()>& work) {
    auto tracer = take();
    Job job{.work = work};
    {
      const OpenStop open;
      tracer->work(job);
      if (!job.reusable) {
        auto next = another();
        if (next == nullptr && detaches_the_rest(*tracer)) {
          next = std::move(tracer);
        }
        tracer = std::move(next);
      }
    }
    give_back(std::move(tracer));
    if (job.failure) {
      std::rethrow_exception(job.failure);
    }
  }

 private:
  // Null: the system provides none.
  static std::unique_ptr<Tracer> another() {
    try {
      return std::make_unique<Tracer>();
    } catch (const base::SystemError&) {
      return nullptr;
    }
  }

  // If there is no other, a thread that could not be stopped in time must not cost this one.
  static bool detaches_the_rest(Tracer& tracer) {
    const std::function<void()> detach = [] {
      report_detached(detach_remaining(base::Deadline::after(kLastPatience)));
    };
    Job job{.work = detach};
    tracer.work(job);
    return job.reusable;
  }

  std::unique_ptr<Tracer> take() {
    std::unique_lock lock{mutex_};
    while (true) {
      if (!idle_.empty()) {
        auto tracer = std::move(idle_.back());
        idle_.pop_back();
        ++busy_;
        return tracer;
      }
      try {
        auto tracer = std::make_unique<Tracer>();
        ++busy_;
        return tracer;
      } catch (const base::SystemError&) {
        if (busy_ == 0) {
          throw;
        }
      }
      const auto before = busy_;
      returned_.wait(lock, [&] { return !idle_.empty() || busy_ < before; });
    }
  }

  // Null: the thread has exited; replaces it if the system permits.
  void give_back(std::unique_ptr<Tracer> tracer) {
    std::unique_lock lock{mutex_};
    --busy_;
    if (!tracer && idle_.size() + busy_ < kPrepared) {
      tracer = another();  // the exit of the last one has made room; else take() retries
    }
    if (tracer && idle_.size() < kPrepared) {
      idle_.push_back(std::move(tracer));
    }
    lock.unlock();
    returned_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Tracer>> idle_;
  std::size_t busy_ = 0;
};

// The threads of this process: they do not survive a fork, such as that of the guard.
TracerThreads& tracer_threads() {
  struct Owned {
    pid_t process = ::getpid();
    std::unique_ptr<TracerThreads> threads = std::make_unique<TracerThreads>();

    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { leave_to_parent(); }
    // The parent's threads cannot be joined here.
    bool leave_to_parent() {
      const bool forked = process != ::getpid();
      if (forked) {
        (void)threads.release();
      }
      return forked;
    }
  };
  static std::mutex mutex;
  static Owned owned;
  const std::scoped_lock lock{mutex};
  if (owned.leave_to_parent()) {
    owned.threads = std::make_unique<TracerThreads>();
    owned.process = ::getpid();
  }
  return *owned.threads;
}

}  // namespace

void on_tracer_thread(const std::function<void()>& work) { tracer_threads().work(work); }

void report_detached(bool all) { t_detached = t_detached.value_or(true) && all; }

void prepare_tracer_threads() { tracer_threads().prepare(); }

}  // namespace pyinject::tracee
