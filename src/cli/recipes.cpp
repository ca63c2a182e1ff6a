#include "cli/recipes.hpp"

#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "perf/tracefs.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr auto kCallsOfFiles =
    std::to_array<std::string_view>({"openat", "read", "write", "pread64", "pwrite64", "readv",
                                     "writev", "preadv", "pwritev", "fsync", "fdatasync"});
// CPython waits in poll(2) for a socket with a timeout, and asyncio in epoll_wait(2) for all.
constexpr auto kCallsOfSockets = std::to_array<std::string_view>(
    {"connect", "accept4", "sendto", "recvfrom", "sendmsg", "recvmsg", "poll", "epoll_wait"});
constexpr auto kCallsOfLocks = std::to_array<std::string_view>({"futex"});
constexpr auto kCallsOfMemory =
    std::to_array<std::string_view>({"brk", "mmap", "munmap", "mremap"});

// In the order of weave::MemoryCall::Kind.
constexpr auto kCallsThatMap =
    std::to_array<std::string_view>({"mmap", "munmap", "mremap", "brk", "mprotect"});

constexpr std::string_view kSwitch = "sched:sched_switch";

struct Recipe {
  std::string_view name;
  std::span<const std::string_view> calls = {};  // system calls
  bool timed = false;                            // the calls
  bool kept = false;                             // the calls' memory
  std::string_view tracepoint = {};
  bool page_faults = false;
  bool cache_misses = false;
  bool probes = false;            // on malloc
  std::string_view instead = {};  // if tracepoints are missing
};

constexpr auto kRecipes = std::to_array<Recipe>({
    {.name = "io",
     .calls = kCallsOfFiles,
     .timed = true,
     .instead = "--off-cpu shows where threads wait, without tracepoints"},
    {.name = "net",
     .calls = kCallsOfSockets,
     .timed = true,
     .instead = "--off-cpu shows where threads wait, without tracepoints"},
    {.name = "alloc",
     .calls = kCallsOfMemory,
     .page_faults = true,
     .instead = "--what faults shows where memory is touched, kept or not, without tracepoints"},
    {.name = kMemoryRecipe,
     .calls = kCallsThatMap,
     .kept = true,
     .instead = "--what faults shows where memory is touched, kept or not, without tracepoints"},
    {.name = "faults", .page_faults = true},
    {.name = kMallocRecipe, .probes = true},
    {.name = "cache", .cache_misses = true},
    {.name = "locks",
     .calls = kCallsOfLocks,
     .timed = true,
     .instead = "--off-cpu shows where threads wait, without tracepoints"},
    {.name = "sched",
     .tracepoint = kSwitch,
     .instead = "--off-cpu samples the same switches, without tracepoints"},
});

// Two lists: perf report shows the events in their order, and those with samples should be first.
class Expander {
 public:
  Expander(const RecipeRequest& request, const KnownEvents& known)
      : request_{request}, known_{known} {}

  // Returns why not; empty: added.
  std::string add(const Recipe& recipe) {
    const bool traced = !recipe.calls.empty() || !recipe.tracepoint.empty();
    if (recipe.tracepoint == kSwitch && request_.off_cpu) {
      result_.notes.push_back(fmt::format(
          "--what {}: --off-cpu already samples each switch, with its time", recipe.name));
      return {};
    }
    if (traced && !known_.why_no_tracepoints.empty()) {
      return fmt::format("--what {}: {}; or {}", recipe.name, known_.why_no_tracepoints,
                         recipe.instead);
    }
    if (recipe.cache_misses && !known_.cache_misses) {
      return fmt::format(
          "--what {}: this machine counts no cache misses: it has no hardware counters, as most "
          "virtual machines; -e cpu-clock shows where the time goes",
          recipe.name);
    }
    if (recipe.kept && request_.frequency) {
      return fmt::format(
          "--what {}: with -F, only some of the calls are sampled, and what is given back is not "
          "known: omit -F",
          recipe.name);
    }
    if (recipe.probes) {
      std::ranges::for_each(request_.probes, [this](const auto& event) { add_event(event); });
    }
    if (recipe.page_faults) {
      add_event(request_.rate ? "page-faults" : "page-faults/period=1/");
    }
    if (recipe.cache_misses) {
      add_event("cache-misses");
    }
    if (!recipe.tracepoint.empty() && known_.id_of(std::string{recipe.tracepoint})) {
      add_event(std::string{recipe.tracepoint});
      return {};
    }
    if (traced && !add_calls(recipe)) {
      return fmt::format("--what {}: the kernel lacks the tracepoints ({}); {}", recipe.name,
                         recipe.calls.empty() ? recipe.tracepoint : "CONFIG_FTRACE_SYSCALLS",
                         recipe.instead);
    }
    if (recipe.kept) {
      add_blocks();
    }
    if (recipe.timed && request_.frequency) {
      result_.notes.push_back(
          fmt::format("--what {}: with -F, only some of the calls are sampled, and none is timed",
                      recipe.name));
    }
    return {};
  }

  Expansion take() {
    events_.insert(events_.end(), ends_.begin(), ends_.end());
    result_.events = fmt::format("{}", fmt::join(events_, ","));
    return std::move(result_);
  }

 private:
  void add_event(const std::string& event) {
    if (std::ranges::find(events_, event) == events_.end()) {
      events_.push_back(event);
    }
  }

  // False: the kernel has none of them.
  bool add_calls(const Recipe& recipe) {
    bool any = false;
    for (const auto& call : recipe.calls) {
      const auto enter = fmt::format("syscalls:sys_enter_{}", call);
      const auto exit = fmt::format("syscalls:sys_exit_{}", call);
      const auto entered = known_.id_of(enter);
      if (!entered) {
        continue;
      }
      any = true;
      if (recipe.kept) {
        add_memory_call(enter, exit,
                        static_cast<weave::MemoryCall::Kind>(&call - recipe.calls.data()));
        continue;
      }
      add_event(enter);
      if (const auto left = known_.id_of(exit); recipe.timed && !request_.frequency && left) {
        ends_.push_back(exit + "/call-graph=no/");
        result_.timed_calls.push_back({.enter = *entered, .exit = *left});
      }
    }
    return any;
  }

  // Stacks say who maps memory, not who gives it back.
  void add_memory_call(const std::string& enter, const std::string& exit,
                       weave::MemoryCall::Kind kind) {
    const auto entered = known_.id_of(enter);
    const auto left = known_.id_of(exit);
    if (!entered || !left) {
      return;
    }
    if (kind == weave::MemoryCall::Kind::kUnmap) {
      ends_.push_back(enter + "/call-graph=no/");
    } else {
      add_event(enter);
    }
    ends_.push_back(exit + "/call-graph=no/");
    result_.memory_calls.push_back({.kind = kind, .enter = *entered, .exit = *left});
  }

  void add_blocks() {
    for (const auto& event : request_.blocks) {
      const bool is_free = event.find(":heap_free") != std::string::npos;
      if (const auto id = known_.id_of(event)) {
        is_free ? ends_.push_back(event + "/call-graph=no/") : add_event(event);
        result_.memory_calls.push_back(
            {.kind = is_free ? weave::MemoryCall::Kind::kFree : weave::MemoryCall::Kind::kAllocate,
             .enter = *id});
      }
    }
  }

  const RecipeRequest& request_;
  const KnownEvents& known_;
  std::vector<std::string> events_;
  std::vector<std::string> ends_;
  Expansion result_;
};

// Whether perf could open the event: other errors than its absence are for perf to report.
bool counts_cache_misses() {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_HARDWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_HW_CACHE_MISSES;
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  const base::UniqueFd event{
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC))};
  return event.valid() ||
         (errno != ENOENT && errno != EOPNOTSUPP && errno != ENODEV && errno != ENOSYS);
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  std::ranges::transform(kRecipes, std::back_inserter(names),
                         [](const auto& recipe) { return std::string{recipe.name}; });
  return names;
}

std::vector<std::string> parse_recipes(const std::string& list) {
  std::vector<std::string> names;
  for (const auto name : base::split(list, ',')) {
    if (std::ranges::find(kRecipes, name, &Recipe::name) == kRecipes.end()) {
      throw CommandLineError{fmt::format("--what {}: expected a list of {}", base::printable(list),
                                         fmt::join(recipe_names(), ", ")),
                             record::kUsage};
    }
    if (std::ranges::find(names, name) == names.end()) {
      names.emplace_back(name);
    }
  }
  return names;
}

KnownEvents events_of_this_machine() {
  KnownEvents known;
  known.cache_misses = counts_cache_misses();
  const auto tracefs = perf::find_tracefs();
  if (!tracefs) {
    known.why_no_tracepoints = perf::kTracefsMissing;
  } else if (const auto events = *tracefs + "/events"; ::access(events.c_str(), R_OK | X_OK) != 0) {
    known.why_no_tracepoints = fmt::format("{}: {}: run as root", events, base::errno_text(errno));
  }
  known.id_of = [tracefs](const std::string& tracepoint) {
    return tracefs ? perf::tracepoint_id(*tracefs, tracepoint) : std::nullopt;
  };
  return known;
}

std::variant<Expansion, std::string> expand(const RecipeRequest& request,
                                            const KnownEvents& known) {
  Expander expander{request, known};
  for (const auto& recipe : kRecipes) {
    if (std::ranges::find(request.names, recipe.name) == request.names.end()) {
      continue;
    }
    if (auto why_not = expander.add(recipe); !why_not.empty()) {
      return why_not;
    }
  }
  return expander.take();
}

}  // namespace pyinject::cli
