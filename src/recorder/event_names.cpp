#include "recorder/event_names.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pyinject::recorder {

namespace {

struct KnownEvent {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t config;
};

// linux, tools/perf/util/parse-events.c, event_symbols_hw and event_symbols_sw.
constexpr auto kKnown = std::to_array<KnownEvent>({
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
});

struct Part {
  std::string_view name;
  std::uint64_t value;
};
constexpr auto kCaches = std::to_array<Part>({{"L1-dcache", PERF_COUNT_HW_CACHE_L1D},
                                              {"L1-icache", PERF_COUNT_HW_CACHE_L1I},
                                              {"LLC", PERF_COUNT_HW_CACHE_LL},
                                              {"dTLB", PERF_COUNT_HW_CACHE_DTLB},
                                              {"iTLB", PERF_COUNT_HW_CACHE_ITLB},
                                              {"branch", PERF_COUNT_HW_CACHE_BPU},
                                              {"node", PERF_COUNT_HW_CACHE_NODE}});
constexpr std::uint64_t operation(std::uint64_t op, std::uint64_t result) {
  return op << 8U | result << 16U;
}
constexpr auto kAccess = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
constexpr auto kMiss = PERF_COUNT_HW_CACHE_RESULT_MISS;
constexpr auto kOperations =
    std::to_array<Part>({{"-loads", operation(PERF_COUNT_HW_CACHE_OP_READ, kAccess)},
                         {"-load-misses", operation(PERF_COUNT_HW_CACHE_OP_READ, kMiss)},
                         {"-stores", operation(PERF_COUNT_HW_CACHE_OP_WRITE, kAccess)},
                         {"-store-misses", operation(PERF_COUNT_HW_CACHE_OP_WRITE, kMiss)},
                         {"-prefetches", operation(PERF_COUNT_HW_CACHE_OP_PREFETCH, kAccess)},
                         {"-prefetch-misses", operation(PERF_COUNT_HW_CACHE_OP_PREFETCH, kMiss)}});

std::optional<KnownEvent> cache_event(std::string_view name) {
  for (const auto& cache : kCaches) {
    for (const auto& operation : kOperations) {
      if (name.size() == cache.name.size() + operation.name.size() &&
          name.starts_with(cache.name) && name.ends_with(operation.name)) {
        return KnownEvent{name, PERF_TYPE_HW_CACHE, cache.value | operation.value};
      }
    }
  }
  return std::nullopt;
}

std::optional<KnownEvent> known_event(std::string_view name) {
  const auto* const found = std::ranges::find(kKnown, name, &KnownEvent::name);
  if (found != kKnown.end()) {
    return *found;
  }
  if (name.starts_with('r')) {
    if (const auto config = base::parse_number<std::uint64_t>(name.substr(1), 16)) {
      return KnownEvent{name, PERF_TYPE_RAW, *config};
    }
  }
  return cache_event(name);
}

// "u", "k", "ukh", "p": false: another one.
bool modify(std::string_view modifiers, perf_event_attr& attr) {
  if (modifiers.empty() || modifiers.find_first_not_of("ukhGHp") != std::string_view::npos) {
    return false;
  }
  if (modifiers.find_first_of("ukh") != std::string_view::npos) {
    attr.exclude_user = modifiers.find('u') == std::string_view::npos ? 1 : 0;
    attr.exclude_kernel = modifiers.find('k') == std::string_view::npos ? 1 : 0;
    attr.exclude_hv = modifiers.find('h') == std::string_view::npos ? 1 : 0;
  }
  if (modifiers.find_first_of("GH") != std::string_view::npos) {
    attr.exclude_guest = modifiers.find('G') == std::string_view::npos ? 1 : 0;
    attr.exclude_host = modifiers.find('H') == std::string_view::npos ? 1 : 0;
  }
  constexpr std::uint64_t kMostPrecise = 3;
  attr.precise_ip =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(std::ranges::count(modifiers, 'p')),
                              kMostPrecise) &
      3U;
  return true;
}

// "period=1", "call-graph=no": false: another one.
bool add_term(std::string_view term, NamedEvent& event) {
  const auto equals = std::min(term.find('='), term.size());
  const auto name = term.substr(0, equals);
  const auto value = term.substr(std::min(equals + 1, term.size()));
  const auto number = base::parse_number<std::uint64_t>(value);
  if (name == "period" && number && *number > 0) {
    event.period = number;
  } else if (name == "freq" && number && *number > 0) {
    event.frequency = number;
  } else if (name == "call-graph" && (value == "no" || value == "fp")) {
    event.callchain = value == "fp";
  } else {
    return false;
  }
  return true;
}

// At commas that are not within slashes.
std::vector<std::string_view> split_events(std::string_view list) {
  std::vector<std::string_view> events;
  bool in_terms = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !in_terms)) {
      events.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '/') {
      in_terms = !in_terms;
    }
  }
  return events;
}

std::variant<NamedEvent, std::string> parse_event(std::string_view text,
                                                  const TracepointId& tracepoint) {
  NamedEvent event;
  const auto slash = text.find('/');
  auto name = text.substr(0, slash);
  std::string_view modifiers;
  bool modified = false;
  if (slash != std::string_view::npos) {
    const auto end = text.find('/', slash + 1);
    if (end == std::string_view::npos) {
      return fmt::format("-e {}: a / is missing", base::printable(text));
    }
    for (const auto term : base::split(text.substr(slash + 1, end - slash - 1), ',')) {
      if (!add_term(term, event)) {
        return std::string{};
      }
    }
    modified = end + 1 < text.size();
    modifiers = text.substr(end + 1);
    if (modifiers.starts_with(':')) {
      modifiers.remove_prefix(1);
    }
  }
  // "sched:sched_switch", "sched:sched_switch:k", "cycles:k"
  if (const auto colon = name.rfind(':');
      colon != std::string_view::npos && !modified && !tracepoint(name) &&
      name.find_first_not_of("ukhGHIpPSDWe", colon + 1) == std::string_view::npos) {
    modified = true;
    modifiers = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  event.attr.size = sizeof event.attr;
  if (const auto known = known_event(name)) {
    event.attr.type = known->type;
    event.attr.config = known->config;
  } else if (const auto id = tracepoint(name)) {
    event.attr.type = PERF_TYPE_TRACEPOINT;
    event.attr.config = *id;
  } else {
    return name.find(':') != std::string_view::npos
               ? fmt::format("-e {}: there is no such tracepoint, or tracefs is not readable",
                             base::printable(name))
               : std::string{};
  }
  event.attr.exclude_guest = 1;
  if (modified && !modify(modifiers, event.attr)) {
    return std::string{};
  }
  // As perf 6.1 names them.
  event.name = slash != std::string_view::npos && event.attr.type != PERF_TYPE_TRACEPOINT
                   ? std::string{text}
               : modified ? fmt::format("{}:{}", name, modifiers)
                          : std::string{name};
  return event;
}

}  // namespace

std::variant<std::vector<NamedEvent>, std::string> parse_events(std::string_view list,
                                                                const TracepointId& tracepoint) {
  std::vector<NamedEvent> events;
  for (const auto text : split_events(list)) {
    auto parsed = parse_event(base::trim(text), tracepoint);
    if (auto* const why = std::get_if<std::string>(&parsed)) {
      return std::move(*why);
    }
    events.push_back(std::move(std::get<NamedEvent>(parsed)));
  }
  return events;
}

NamedEvent default_event() {
  NamedEvent event{.name = "cycles"};
  event.attr.size = sizeof event.attr;
  event.attr.type = PERF_TYPE_HARDWARE;
  event.attr.config = PERF_COUNT_HW_CPU_CYCLES;
  event.attr.exclude_guest = 1;
  return event;
}

NamedEvent processor_clock() {
  auto event = default_event();
  event.name = "cpu-clock";
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = PERF_COUNT_SW_CPU_CLOCK;
  return event;
}

}  // namespace pyinject::recorder
