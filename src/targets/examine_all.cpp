#include "targets/examine_all.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace pyinject::targets {

namespace {

using std::chrono::nanoseconds;

// CPU time, not wall time: a slow disk or a busy machine is not the target's fault. An ordinary
// Python takes 1 to 5 ms.
constexpr std::chrono::milliseconds kOwnTime{200};
// For all first turns, by the clock: a file system may not answer at all.
constexpr std::chrono::seconds kFirstTurns{10};
constexpr std::size_t kMostThreads = 8;

// Calls WORK with 0 to COUNT - 1, in several threads if they can be created.
void for_each_side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr problem;
  const auto run = [&] {
    try {
      for (auto i = next++; i < count; i = next++) {
        work(i);
      }
    } catch (...) {
      const std::scoped_lock lock{mutex};
      problem = std::current_exception();
      next = count;
    }
  };
  const auto processors = std::max<std::size_t>(std::thread::hardware_concurrency(), 2);
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < std::min({2 * processors, kMostThreads, count})) {
      threads.emplace_back(run);
    }
  } catch (const std::system_error&) {
    // The existing threads, at least this one, do the work.
  }
  run();
  for (auto& thread : threads) {
    thread.join();
  }
  if (problem) {
    std::rethrow_exception(problem);
  }
}

bool is_examined(const Examined& one) {
  const auto* const refused = std::get_if<python::Refused>(&one.detection);
  return refused == nullptr || refused->refusal.reason != python::Reason::kNotExamined;
}

}  // namespace

std::vector<Examined> examine_all(python::Detector& detector, const std::vector<base::Pid>& pids,
                                  const base::Cancellation& cancellation, nanoseconds patience) {
  std::vector<Examined> all(pids.size());
  const auto examine = [&](std::size_t which, const base::Cancellation& until) {
    const auto begin = base::Deadline::Clock::now();
    all[which].detection = detector.detect(pids[which], until);
    all[which].duration += base::Deadline::Clock::now() - begin;
  };
  const auto first_turns = base::Deadline::after(std::max<nanoseconds>(kFirstTurns, patience));
  for_each_side_by_side(pids.size(), [&](std::size_t which) {
    // Those after the ones that did not answer get a little time at least.
    const auto until = std::max(first_turns.when(), base::Deadline::after(kOwnTime).when());
    examine(which,
            base::Cancellation{cancellation, base::Deadline{until}, base::CpuLimit{kOwnTime}});
  });
  std::vector<std::size_t> slow;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_examined(all[i])) {
      slow.push_back(i);
    }
  }
  const base::Cancellation shared{cancellation, base::Deadline::after(patience)};
  for_each_side_by_side(slow.size(), [&](std::size_t number) {
    if (!shared.stopped()) {
      examine(slow[number], shared);
    }
  });
  return all;
}

}  // namespace pyinject::targets
