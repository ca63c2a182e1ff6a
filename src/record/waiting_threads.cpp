#include "record/waiting_threads.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "memory/process_memory.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "record/recording_clock.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <variant>

namespace pyinject::record {

namespace {

constexpr std::chrono::milliseconds kPatienceForWaits{500};
constexpr std::size_t kMostWaits = 16384;  // threads
constexpr std::uint64_t kMostBytesOfWaits = std::uint64_t{128} << 20U;

// Number of context switches of a waiting task. nullopt: it runs or has exited.
std::optional<std::uint64_t> switches_of_waiting(base::Pid pid, base::Tid tid) {
  const auto status = procfs::read_status(pid, tid);
  constexpr std::string_view kNotWaiting = "RXZ";
  return status && kNotWaiting.find(status->state) == std::string_view::npos
             ? std::optional{status->switches}
             : std::nullopt;
}

std::shared_ptr<base::RecordingBudget> budget_of_waits() {
  auto budget = std::make_shared<base::RecordingBudget>();
  budget->bytes = base::Budget{kMostBytesOfWaits};
  return budget;
}

std::uint32_t spender(base::Pid pid) { return static_cast<std::uint32_t>(pid.value()); }

}  // namespace

WaitingThreads::WaitingThreads(base::Logger& logger)
    : logger_{logger},
      budget_{budget_of_waits()},
      deadline_{base::Deadline::after(kPatienceForWaits)},
      waits_{budget_} {}

void WaitingThreads::look(std::span<const python::Target* const> targets,
                          std::span<const base::Pid> others, std::optional<clockid_t> clock) {
  deadline_ = base::Deadline::after(kPatienceForWaits);
  const auto try_at = [&](base::Pid pid, const python::Target* target) {
    try {
      look_at(pid, target, clock);
    } catch (const base::Error& error) {
      logger_.warning("--off-cpu: pid {}: its waiting threads cannot be read: {}", pid.value(),
                      error.what());
    }
  };
  for (const auto* const target : targets) {
    try_at(target->id.pid, target);
  }
  for (const auto pid : others) {
    const bool done =
        std::ranges::any_of(targets, [pid](const auto* target) { return target->id.pid == pid; });
    if (!done) {
      try_at(pid, nullptr);
    }
  }
}

std::vector<WaitingThreads::Seen> WaitingThreads::waiting_threads(base::Pid pid) {
  std::vector<Seen> threads;
  for (const auto tid : procfs::list_tasks(pid)) {
    if (deadline_.expired() || seen_.size() + threads.size() == kMostWaits) {
      ++not_looked_at_;
      continue;
    }
    if (const auto switches = switches_of_waiting(pid, tid)) {
      threads.push_back({.pid = pid, .tid = tid, .switches = *switches, .kernel = {}});
    }
  }
  return threads;
}

void WaitingThreads::look_at(base::Pid pid, const python::Target* target,
                             std::optional<clockid_t> clock) {
  auto threads = waiting_threads(pid);
  const auto now = clock ? base::now_by(*clock) : 0;
  auto stacks = target != nullptr ? python_stacks(*target, threads) : Stacks{};
  for (auto& thread : threads) {
    weave::WaitingThread waiting{
        .pid = spender(pid), .tid = static_cast<std::uint32_t>(thread.tid.value()), .seen = now};
    if (deadline_.expired()) {
      waiting.seen = weave::WaitingThread::kNotAgain;
      ++only_python_;
    } else if (!read_place(thread, waiting)) {
      continue;  // it ran: perf has a sample of its current wait
    }
    if (const auto found = stacks.find(thread.tid); found != stacks.end()) {
      auto& stack = found->second;
      stack.pid = waiting.pid;
      stack.tid = waiting.tid;
      stack.time = waiting.seen;
      waits_.stacks.add(stack);
    }
    waits_.threads.push_back(std::move(waiting));
    seen_.push_back(std::move(thread));
  }
}

// False: it has run since its Python stack was read.
bool WaitingThreads::read_place(Seen& thread, weave::WaitingThread& waiting) {
  thread.kernel = procfs::read_kernel_stack(thread.pid, thread.tid);
  if (const auto place = procfs::read_user_place(thread.pid, thread.tid)) {
    waiting.program_counter = place->program_counter;
    waiting.stack_pointer = place->stack_pointer;
    copy_stack(waiting);
  }
  const bool waits = switches_of_waiting(thread.pid, thread.tid) == thread.switches;
  budget_->bytes.give_back(waiting.pid, waits ? 0 : waiting.stack.size());
  return waits;
}

WaitingThreads::Stacks WaitingThreads::python_stacks(const python::Target& target,
                                                     std::span<const Seen> threads) {
  Stacks stacks;
  if (threads.empty() || deadline_.expired()) {
    return stacks;
  }
  auto opened = python::StackReader::of(target);
  if (const auto* const why = std::get_if<std::string>(&opened)) {
    logger_.warning("--off-cpu: pid {}: the Python stacks of waiting threads cannot be read: {}",
                    target.id.pid.value(), *why);
    return stacks;
  }
  auto& reader = std::get<python::StackReader>(opened);
  std::vector<base::Tid> tids;
  std::ranges::transform(threads, std::back_inserter(tids), &Seen::tid);
  const auto pid = target.id.pid;
  for (const auto& read : reader.read(tids)) {
    auto& stack = stacks[read.tid];
    stack.truncated = !read.complete;
    for (const auto& frame : read.frames) {
      const auto code = number_of(pid, frame.code_serial);
      stack.frames.push_back({.activation = frame.address.value(),
                              .code = code,
                              .line = frame.line,
                              .outermost = frame.outermost});
      if (waits_.stacks.name(spender(pid), code) != nullptr) {
        continue;
      }
      auto names = reader.names(frame);
      if (names && budget_->bytes.take(spender(pid), names->qualname.size() + names->file.size())) {
        waits_.stacks.name({.number = code,
                            .qualname = std::move(names->qualname),
                            .file = std::move(names->file),
                            .first_line = names->first_line});
      }
    }
  }
  for (const auto tid : reader.unread()) {
    stacks[tid].truncated = true;
    ++without_python_;
  }
  return stacks;
}

// Unique among the code objects of all processes.
std::uint64_t WaitingThreads::number_of(base::Pid pid, std::uint64_t serial) {
  const auto next = weave::Waits::kCode | (codes_.size() + 1);
  return codes_.try_emplace({pid, serial}, next).first->second;
}

// As much as perf would copy by default for Python, limited by the memory budget.
void WaitingThreads::copy_stack(weave::WaitingThread& thread) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kPages = 9;  // 32 KiB, wherever in its page the stack starts
  std::vector<std::byte> bytes(kPages * kPage - thread.stack_pointer % kPage);
  std::array<memory::ReadPiece, kPages> pieces{};
  auto left = std::span{bytes};
  auto from = thread.stack_pointer;
  for (auto& piece : pieces) {
    const auto size = std::min(left.size(), kPage - from % kPage);
    piece.from = base::RemoteAddress{from};
    piece.into = left.first(size);
    left = left.subspan(size);
    from += size;
  }
  memory::ProcessMemory{base::Pid{static_cast<pid_t>(thread.pid)}}.read_each(pieces);
  const auto* const missing = std::ranges::find(pieces, false, &memory::ReadPiece::done);
  std::size_t size = 0;
  std::for_each(pieces.cbegin(), missing, [&](const auto& piece) { size += piece.into.size(); });
  thread.stack_cut = missing == pieces.end();
  if (!budget_->bytes.take(thread.pid, size)) {
    thread.stack_cut = true;
    size = 0;
  }
  thread.stack.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

void WaitingThreads::look_again() {
  const auto deadline = base::Deadline::after(kPatienceForWaits);
  for (std::size_t i = 0; i < seen_.size() && !deadline.expired(); ++i) {
    try {
      waits_.threads[i].throughout =
          switches_of_waiting(seen_[i].pid, seen_[i].tid) == seen_[i].switches;
    } catch (const base::Error& error) {
      logger_.debug("--off-cpu: tid {}: {}", seen_[i].tid.value(), error.what());
    }
  }
}

void WaitingThreads::find_kernel_functions() {
  std::vector<procfs::KernelFrame*> frames;
  for (auto& thread : seen_) {
    std::ranges::transform(thread.kernel, std::back_inserter(frames),
                           [](auto& frame) { return &frame; });
  }
  procfs::find_kernel_addresses(frames);
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const auto& kernel = seen_[i].kernel;
    auto& thread = waits_.threads[i];
    if (kernel.empty()) {
      continue;
    }
    thread.kernel_name = kernel.front().name;
    if (std::ranges::all_of(kernel, [](const auto& frame) { return frame.address != 0; })) {
      std::ranges::transform(kernel, std::back_inserter(thread.kernel),
                             &procfs::KernelFrame::address);
    }
  }
}

weave::Waits* WaitingThreads::waits() {
  if (waits_.threads.empty()) {
    return nullptr;
  }
  if (!std::exchange(found_, true)) {
    find_kernel_functions();
  }
  return &waits_;
}

void WaitingThreads::warn() const {
  if (not_looked_at_ != 0) {
    logger_.warning(
        "--off-cpu: {} not read within {} ms: waits that began before the recording are missing",
        base::counted(not_looked_at_, "thread was", "threads were"), kPatienceForWaits.count());
  }
  if (only_python_ != 0) {
    logger_.warning(
        "--off-cpu: only the Python functions of {} are shown: the rest was not read within {} ms",
        base::counted(only_python_, "waiting thread"), kPatienceForWaits.count());
  }
  if (without_python_ != 0) {
    logger_.warning("--off-cpu: the Python functions of {} could not be read",
                    base::counted(without_python_, "waiting thread"));
  }
}

}  // namespace pyinject::record
