#include "live/thread_names.hpp"

#include "procfs/cmdline.hpp"
#include "procfs/stat.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pyinject::live {

namespace {

constexpr int kReadsBetweenAllNames = 10;

}  // namespace

void ThreadNames::add(const python::Target& target) {
  comms_.erase(target.id.pid);
  if (auto comms = python::ThreadComms::of(target)) {
    comms_.emplace(target.id.pid, std::move(*comms));
  }
}

void ThreadNames::forget(base::Pid pid) {
  const auto number = static_cast<std::uint32_t>(pid.value());
  named_.erase(named_.lower_bound({number, 0}), named_.upper_bound({number, UINT32_MAX}));
}

void ThreadNames::name(const sample::Stack& stack) {
  const base::Pid pid{static_cast<pid_t>(stack.pid)};
  if (named_.emplace(stack.pid, stack.tid).second) {
    if (const auto stat = procfs::read_stat(pid, base::Tid{static_cast<pid_t>(stack.tid)})) {
      profile_.name_thread(stack.pid, stack.tid, stat->name);
    }
    if (const auto words = procfs::read_cmdline(pid)) {
      profile_.name_process(stack.pid, fmt::format("{}", fmt::join(*words, " ")));
    }
  }
}

void ThreadNames::read_again() {
  if (++reads_ % kReadsBetweenAllNames == 0) {
    named_.clear();
  }
  for (auto& [pid, comms] : comms_) {
    const auto number = static_cast<std::uint32_t>(pid.value());
    for (auto& thread : comms.read()) {
      const auto tid = static_cast<std::uint32_t>(thread.tid.value());
      named_.emplace(number, tid);
      profile_.name_thread(number, tid, std::move(thread.name));
    }
  }
}

}  // namespace pyinject::live
