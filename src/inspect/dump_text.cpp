#include "pyinject/inspect/dump_text.hpp"

#include "base/text.hpp"
#include "inspect/alike_text.hpp"
#include "inspect/frame_text.hpp"
#include "inspect/greenlets_text.hpp"
#include "inspect/tasks_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::inspect {

namespace {

using base::printable;

class Writer {
 public:
  explicit Writer(const TextOptions& options) : options_{options} {}

  void process(const ProcessSnapshot& process);
  void core(const CoreOrigin& core);
  void deadlocks(const ProcessSnapshot& process);
  void threads(const ProcessSnapshot& process);
  void tasks(const ProcessSnapshot& process);
  void greenlets(const ProcessSnapshot& process);
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  // SGR parameters of a terminal (ECMA-48).
  static constexpr std::string_view kBold = "1";
  static constexpr std::string_view kDim = "2";
  static constexpr std::string_view kRed = "31";
  static constexpr std::string_view kGreen = "32";
  static constexpr std::string_view kYellow = "33";

  [[nodiscard]] std::string colored(std::string_view color, std::string_view text) const {
    return options_.color ? fmt::format("\033[{}m{}\033[0m", color, text) : std::string{text};
  }
  [[nodiscard]] std::string state_of(const ProcessSnapshot& process,
                                     const ThreadSnapshot& thread) const;
  [[nodiscard]] std::string wait_of(const ThreadSnapshot& thread) const;
  // Threads that do the same.
  struct Alike {
    std::vector<const ThreadSnapshot*> threads;
    std::string name;    // of all, "worker-*"
    std::string state;   // of the first one
    std::string frames;  // likewise
    std::string key;     // what they have in common
  };
  [[nodiscard]] Alike described(const ProcessSnapshot& process, const ThreadSnapshot& thread);
  void threads(const ProcessSnapshot& process, const Alike& alike);
  void frames(const ProcessSnapshot& process, const ThreadSnapshot& thread);
  void deadlock(const ProcessSnapshot& process, const std::vector<base::Tid>& members);

  const TextOptions& options_;
  std::string text_;
};

// The program's name for it, of which the kernel may know the first 15 characters or nothing.
std::string shown_name(const ThreadSnapshot& thread) {
  const bool says_nothing = thread.python_name.empty() || thread.python_name == "MainThread";
  return printable(says_nothing ? thread.name : thread.python_name);
}

const ThreadSnapshot* find_thread(const ProcessSnapshot& process, base::Tid tid) {
  const auto found = std::ranges::find(process.threads, tid, &ThreadSnapshot::tid);
  return found == process.threads.end() ? nullptr : &*found;
}

// 'thread 4713 "query"'
std::string thread_name(const ProcessSnapshot& process, base::Tid tid) {
  const auto* const thread = find_thread(process, tid);
  return fmt::format("thread {} \"{}\"", tid.value(),
                     thread == nullptr ? std::string{} : shown_name(*thread));
}

// The innermost function outside of the modules that implement the locks.
const Frame* waiting_line(const ThreadSnapshot& thread) {
  const auto found = std::ranges::find_if(thread.frames, [](const Frame& frame) {
    const auto& file = frame.file;
    return !frame.native && !file.ends_with("/threading.py") && !file.ends_with("/queue.py") &&
           !file.ends_with("/concurrent/futures/_base.py");
  });
  return found == thread.frames.end() ? nullptr : &*found;
}

// "qsort_r  [libc.so.6]"
std::string native_function(const Frame& frame) {
  const auto name =
      frame.function.empty() ? fmt::format("0x{:x}", frame.address) : printable(frame.function);
  const std::string_view file = frame.file;
  const auto last = file.ends_with(']') ? file : file.substr(file.rfind('/') + 1);
  return last.starts_with('[') ? fmt::format("{}  {}", name, printable(last))
         : last.empty()        ? name + "  [unknown]"
                               : fmt::format("{}  [{}]", name, printable(last));
}

std::string object_of(const python::Wait& wait) {
  return fmt::format("{} 0x{:x}", printable(wait.object), wait.address);
}

// CPython does not record who has acquired a plain lock.
bool is_inferred(const python::Wait& wait) { return wait.kind == python::Wait::Kind::kLock; }

std::string Writer::wait_of(const ThreadSnapshot& thread) const {
  const auto& wait = *thread.wait;
  std::string owner;
  if (wait.owner && wait.kind == python::Wait::Kind::kJoin) {
    return colored(kRed, fmt::format("waits for thread {} to end", wait.owner->value()));
  }
  if (wait.owner) {
    owner = is_inferred(wait) ? fmt::format(" (thread {} is inside 'with')", wait.owner->value())
                              : fmt::format(" (held by thread {})", wait.owner->value());
  }
  return colored(kRed, fmt::format("waits for {}{}", object_of(wait), owner));
}

void Writer::deadlock(const ProcessSnapshot& process, const std::vector<base::Tid>& members) {
  bool inferred = false;
  for (const auto tid : members) {
    const auto* const thread = find_thread(process, tid);
    inferred = inferred || (thread != nullptr && thread->wait && is_inferred(*thread->wait));
  }
  text_ += "  " +
           colored(kRed, fmt::format("{}DEADLOCK of {}", inferred ? "probable " : "",
                                     base::counted(members.size(), "thread"))) +
           (inferred ? ", as far as the owners of locks are known:\n" : ":\n");
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto* const thread = find_thread(process, members[i]);
    const auto next = members[(i + 1) % members.size()];
    if (thread == nullptr || !thread->wait) {
      continue;
    }
    const bool join = thread->wait->kind == python::Wait::Kind::kJoin;
    const auto* const line = waiting_line(*thread);
    text_ += fmt::format(
        "    {} waits for {}{}{}\n", thread_name(process, members[i]),
        join ? "the end of " : object_of(*thread->wait) + " of ", thread_name(process, next),
        line == nullptr ? std::string{}
                        : "  " + FrameText{process, options_}.place(line->file, line->line));
  }
}

void Writer::deadlocks(const ProcessSnapshot& process) {
  for (const auto& members : process.deadlocks) {
    deadlock(process, members);
  }
}

void Writer::tasks(const ProcessSnapshot& process) {
  text_ += tasks_text(process, FrameText{process, options_}, options_.verbose);
  if (!process.all_tasks && !(process.core && process.tasks.empty())) {
    text_ +=
        colored(kYellow, process.core ? "  ... more asyncio tasks cannot be read from this core\n"
                                      : "  ... more asyncio tasks changed while they were read\n");
  }
}

void Writer::greenlets(const ProcessSnapshot& process) {
  const FrameText functions{process, options_};
  GreenletsForm form{.core = process.core.has_value(), .functions = &functions};
  if (options_.verbose) {
    form.most_stacks = process.greenlets.size();
  }
  text_ += greenlets_text(process.greenlets, form);
  if (!process.all_greenlets && !(process.core && process.greenlets.empty())) {
    text_ += colored(kYellow, process.core ? "  ... more greenlets cannot be read from this core\n"
                                           : "  ... more greenlets could not be read in time\n");
  }
}

void Writer::core(const CoreOrigin& core) {
  text_ += fmt::format("  core file: {}\n", printable(core.file));
  if (core.truncated()) {
    text_ += colored(kYellow, fmt::format("  the core file is truncated: it has {} of {} bytes\n",
                                          core.size, core.expected_size));
  }
  if (core.signal == 0) {
    text_ += "  no signal: a debugger wrote the core\n";
    return;
  }
  text_ += colored(kRed, fmt::format("  {}{}{}{}\n", printable(core.signal_name),
                                     core.cause.empty() ? "" : ": ", printable(core.cause),
                                     core.thread ? fmt::format(" (thread {})", core.thread->value())
                                                 : std::string{}));
}

void Writer::process(const ProcessSnapshot& process) {
  text_ += colored(kBold, fmt::format("pid {}", process.pid.value()));
  if (!process.user.empty()) {
    text_ += fmt::format(" ({})", printable(process.user));
  }
  if (process.version) {
    text_ += ", Python " + process.version_text;
  }
  text_ += fmt::format(", {}: {}\n", base::counted(process.threads.size(), "thread"),
                       printable(process.command));
  if (options_.verbose && !process.interpreter.empty()) {
    text_ += fmt::format("  interpreter: {}\n", printable(process.interpreter));
  }
  if (process.core) {
    core(*process.core);
  }
  if (process.stopped_for) {
    const std::chrono::duration<double, std::milli> time = *process.stopped_for;
    text_ += fmt::format("  stopped for {:.1f} ms\n", std::max(time.count(), 0.1));
  }
  if (process.stopped) {
    text_ += colored(kYellow, fmt::format("  stopped by a signal: kill -CONT {} continues it\n",
                                          process.pid.value()));
  }
  if (process.main_thread_exited) {
    text_ += colored(kYellow, "  its main thread has exited\n");
  }
  if (!process.no_stacks.empty()) {
    text_ +=
        colored(kYellow, fmt::format("  no Python stacks: {}\n", printable(process.no_stacks)));
  } else if (!process.no_locals.empty()) {
    text_ += colored(kYellow, fmt::format("  no variables: {}\n", printable(process.no_locals)));
  }
}

std::string call_of(const ThreadSnapshot& thread) {
  return thread.call ? "in " + printable(to_string(*thread.call)) : std::string{};
}

// "stopped" and "stopped, in read(fd 0: /dev/null)".
std::string with_call(std::string_view state, const ThreadSnapshot& thread) {
  return fmt::format("{}{}{}", state, thread.call ? ", " : "", call_of(thread));
}

std::string activity_of(const ThreadSnapshot& thread) {
  switch (thread.activity) {
    case Activity::kOnProcessor:
      return fmt::format("running on CPU {}", thread.processor);
    case Activity::kRunnable:
      return fmt::format("runnable, last on CPU {}", thread.processor);
    case Activity::kRunningOrRunnable:
      return fmt::format("running or runnable, CPU {}", thread.processor);
    case Activity::kSleeping:
      return thread.call ? call_of(thread) : "sleeping";
    case Activity::kUninterruptible:
      return with_call("uninterruptible", thread);
    case Activity::kStopped:
      return with_call("stopped", thread);
    case Activity::kTraced:
      return with_call("stopped by a tracer", thread);
    case Activity::kZombie:
      return "zombie";
    case Activity::kUnknown:
      return "not blocked in a system call";
    case Activity::kOther:
      break;
  }
  return with_call("unknown state", thread);
}

std::string Writer::state_of(const ProcessSnapshot& process, const ThreadSnapshot& thread) const {
  std::string gil;  // and the signal
  if (process.core && process.core->signal != 0 && process.core->thread == thread.tid) {
    gil = colored(kRed, "received " + printable(process.core->signal_name)) + ", ";
  }
  if (thread.gil == sample::Gil::kHeld) {
    gil += colored(kGreen, "holds the GIL") + ", ";
  } else if (thread.gil == sample::Gil::kWaitedFor) {
    const auto holder = thread.gil_holder
                            ? fmt::format(" (held by thread {})", thread.gil_holder->value())
                            : std::string{};
    gil += colored(kRed, "waits for the GIL" + holder) + ", ";
  }
  auto state = gil + (thread.wait ? wait_of(thread) + ", " : "") + activity_of(thread);
  if (!thread.kernel.empty()) {
    state += colored(kDim, fmt::format(" [{}]", printable(thread.kernel.front())));
  }
  if (thread.ran_meanwhile) {
    state += colored(kYellow, " (ran while it was read)");
  }
  return state;
}

void Writer::frames(const ProcessSnapshot& process, const ThreadSnapshot& thread) {
  const auto remark = [&](std::string_view text) {
    text_ += colored(kYellow, fmt::format("    ... {}\n", text));
  };
  if (options_.verbose) {
    for (const auto& function : thread.kernel) {
      text_ += colored(kDim, fmt::format("    {}  [kernel]\n", printable(function)));
    }
  }
  if (thread.unreadable) {
    remark(process.core ? "its Python functions cannot be read from this core"
                        : "its Python functions were changing and could not be read");
  }
  if (!thread.settled) {
    remark("inner functions changed while they were read");
  }
  for (const auto& frame : thread.frames) {
    if (frame.native) {
      text_ += colored(kDim, fmt::format("    {}\n", native_function(frame)));
      continue;
    }
    text_ += FrameText{process, options_}.lines(frame.function, frame.file, frame.line,
                                                frame.locals, "    ");
  }
  if (!thread.complete && process.core) {
    remark(fmt::format("{} functions may be missing: this core does not hold all of its memory",
                       thread.frames.empty() ? "Python" : "outer"));
  } else if (!thread.complete) {
    remark("outer functions are missing: the stack is too deep");
  }
  if (!thread.native_missing.empty()) {
    remark("C functions are missing: " + printable(thread.native_missing));
  }
}

// Threads that run or are kept from it before those that wait for work.
int rank(const ThreadSnapshot& thread) {
  const bool runs =
      thread.activity == Activity::kOnProcessor || thread.activity == Activity::kRunnable ||
      thread.activity == Activity::kRunningOrRunnable || thread.activity == Activity::kUnknown;
  const bool blocked = thread.gil == sample::Gil::kWaitedFor ||
                       (thread.wait && thread.wait->owner) ||
                       thread.activity == Activity::kUninterruptible;
  return runs || thread.gil == sample::Gil::kHeld ? 0 : blocked ? 1 : 2;
}

bool has_python(const ThreadSnapshot& thread) {
  return thread.unreadable ||
         std::ranges::any_of(thread.frames, [](const Frame& frame) { return !frame.native; });
}

Writer::Alike Writer::described(const ProcessSnapshot& process, const ThreadSnapshot& thread) {
  Alike alike{.threads = {&thread},
              .name = shown_name(thread),
              .state = state_of(process, thread),
              .frames = {},
              .key = {}};
  const auto before = std::exchange(text_, {});
  frames(process, thread);
  alike.frames = std::exchange(text_, before);
  if (thread.tid.value() == process.pid.value()) {
    alike.key = "main";
  } else {
    alike.key = fmt::format("{}\n{}\n{}\n{}", base::without_digits(alike.name),
                            fmt::join(thread.interpreters, ","), without_addresses(alike.state),
                            without_addresses(alike.frames));
  }
  return alike;
}

void Writer::threads(const ProcessSnapshot& process, const Alike& alike) {
  constexpr std::size_t kNamed = 6;
  const auto& first = *alike.threads.front();
  const auto count = alike.threads.size();
  std::string ids;
  for (std::size_t i = 0; i < std::min(count, kNamed); ++i) {
    ids += fmt::format("{}{}", i == 0 ? "" : ", ", alike.threads[i]->tid.value());
  }
  if (count > kNamed) {
    ids += fmt::format(" and {} more", count - kNamed);
  }
  text_ += "  " + colored(kBold, count == 1 ? fmt::format("thread {}", ids)
                                            : fmt::format("{} threads", count));
  if (!alike.name.empty() || !process.core) {
    text_ += fmt::format(" \"{}\"", alike.name);
  }
  if (count > 1) {
    text_ += fmt::format(" ({})", ids);
  }
  if (first.tid.value() == process.pid.value()) {
    text_ += " (main)";
  }
  if (!first.interpreters.empty() && first.interpreters != std::vector<std::int64_t>{0}) {
    text_ += fmt::format(" (interpreter{} {})", first.interpreters.size() == 1 ? "" : "s",
                         fmt::join(first.interpreters, ", "));
  }
  text_ += fmt::format(": {}\n{}", alike.state, alike.frames);
}

void Writer::threads(const ProcessSnapshot& process) {
  std::vector<const ThreadSnapshot*> order;
  for (const auto& thread : process.threads) {
    if (thread.shown) {
      order.push_back(&thread);
    }
  }
  std::ranges::stable_sort(order, {}, [](const ThreadSnapshot* thread) {
    return std::pair{!has_python(*thread), rank(*thread)};
  });
  std::vector<Alike> all;
  std::map<std::string, std::size_t> numbers;
  for (const auto* const thread : order) {
    auto alike = described(process, *thread);
    const auto [number, fresh] = numbers.try_emplace(alike.key, all.size());
    if (fresh || options_.verbose) {
      all.push_back(std::move(alike));
      continue;
    }
    auto& known = all[number->second];
    known.threads.push_back(thread);
    if (known.name != alike.name) {
      known.name = base::without_digits(alike.name);
    }
    known.state = common_text(known.state, alike.state);
    known.frames = common_text(known.frames, alike.frames);
  }
  for (const auto& alike : all) {
    threads(process, alike);
  }
}

}  // namespace

std::string to_text(const ProcessSnapshot& process, const TextOptions& options) {
  Writer writer{options};
  writer.process(process);
  writer.deadlocks(process);
  writer.threads(process);
  writer.tasks(process);
  writer.greenlets(process);
  return writer.take();
}

}  // namespace pyinject::inspect
