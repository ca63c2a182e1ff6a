// Reads calls and returns from perf.data. The file contains the kernel's description of the payload
// layout, which libtraceevent parses.
#include "calls/call_trace.hpp"
#include "pyinject/base/error.hpp"

#ifdef PYINJECT_TRACEEVENT

#include "base/byte_cursor.hpp"
#include "base/text.hpp"
#include "calls/tracing_data.hpp"
#include "perfdata/input.hpp"
#include "perfdata/sample_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

#include <linux/perf_event.h>
#include <traceevent/event-parse.h>

namespace pyinject::calls {

namespace {

using Bytes = std::span<const std::byte>;

// The prefix that record --functions uses, src/record/verbs/function_recorder_begin.cpp.
constexpr std::string_view kGroup = "perf_pyinject_";

struct FreeTep {
  void operator()(tep_handle* tep) const { tep_free(tep); }
};

// An event and the fields of its payload.
struct Probe {
  CallEvent::Kind kind{};
  std::uint16_t source = 0;
  tep_format_field* file = nullptr;
  tep_format_field* function = nullptr;
  tep_format_field* line = nullptr;
};

// "entry_0_2".
std::optional<Probe> probe_of(tep_event* event) {
  const auto words = base::split(event->name, '_');
  const auto source =
      words.size() == 3 ? base::parse_number<std::uint16_t>(words[1]) : std::nullopt;
  const bool entry = words.front() == "entry";
  if (!source || (!entry && words.front() != "return")) {
    return std::nullopt;
  }
  const Probe probe{.kind = entry ? CallEvent::Kind::kEntry : CallEvent::Kind::kReturn,
                    .source = *source,
                    .file = tep_find_field(event, "file"),
                    .function = tep_find_field(event, "func"),
                    .line = tep_find_field(event, "line")};
  const bool complete = probe.file != nullptr && probe.function != nullptr && probe.line != nullptr;
  return complete ? std::optional{probe} : std::nullopt;
}

// FIELD of the payload RAW, bounds-checked: libtraceevent does not check.
std::optional<unsigned long long> number_in(Bytes raw, tep_format_field* field) {
  unsigned long long value = 0;
  if (field->offset < 0 || field->size <= 0 ||
      static_cast<std::size_t>(field->offset) + static_cast<std::size_t>(field->size) >
          raw.size() ||
      tep_read_number_field(field, raw.data(), &value) != 0) {
    return std::nullopt;
  }
  return value;
}

// A string of any length: the field holds its offset and, in the upper half, its size with NUL.
std::optional<std::string_view> text_in(Bytes raw, tep_format_field* field) {
  const auto place = number_in(raw, field);
  if (!place || (static_cast<unsigned>(field->flags) & TEP_FIELD_IS_DYNAMIC) == 0) {
    return std::nullopt;
  }
  const std::size_t offset = *place & 0xffffU;
  const std::size_t size = *place >> 16U & 0xffffU;
  if (offset > raw.size() || size > raw.size() - offset) {
    return std::nullopt;
  }
  const std::string_view text{reinterpret_cast<const char*>(raw.data()) + offset, size};
  return text.substr(0, text.find('\0'));
}

class Reader {
 public:
  explicit Reader(perfdata::Input input) : input_{std::move(input)} {
    const auto data = input_.features().tracing_data();
    for (const auto& format : parse_tracing_data(data ? Bytes{*data} : Bytes{})) {
      const auto text =
          format.system.starts_with(kGroup) ? without_expressions(format.text) : std::nullopt;
      if (text) {
        (void)tep_parse_event(tep_.get(), text->data(), text->size(), format.system.c_str());
      }
    }
    for (int i = 0; i < tep_get_events_count(tep_.get()); ++i) {
      auto* const event = tep_get_event(tep_.get(), i);
      if (const auto probe = event == nullptr ? std::nullopt : probe_of(event)) {
        probes_.emplace(event->id, *probe);
      }
    }
  }

  [[nodiscard]] bool has_probes() const { return !probes_.empty(); }

  CallTrace read() {
    perfdata::Sample sample;
    while (const auto record = input_.next()) {
      switch (record->type) {
        case PERF_RECORD_SAMPLE:
          if (input_.parse(*record, sample)) {
            take(sample);
          } else {
            ++trace_.unreadable;
          }
          break;
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
          take_thread(*record);
          break;
        case PERF_RECORD_LOST:
        case PERF_RECORD_LOST_SAMPLES:
          take_loss(*record);
          break;
        default:
          break;
      }
    }
    trace_.damage = input_.damage();
    trace_.lost = lost();
    std::ranges::stable_sort(trace_.events, {}, &CallEvent::time);
    drop_repeated(trace_);
    pair_calls(trace_);
    return std::move(trace_);
  }

 private:
  // null: another event that the user requested
  [[nodiscard]] const Probe* probe_of_event(const perfdata::Event& event) const {
    const auto found =
        event.attr.type == PERF_TYPE_TRACEPOINT ? probes_.find(event.attr.config) : probes_.end();
    return found == probes_.end() ? nullptr : &found->second;
  }

  void take(const perfdata::Sample& sample) {
    const auto* const probe = probe_of_event(*sample.event);
    if (probe == nullptr) {
      return;
    }
    const auto raw = perfdata::payload_of(sample);
    const auto file = text_in(raw, probe->file);
    const auto name = text_in(raw, probe->function);
    const auto line = number_in(raw, probe->line);
    if (!file || !name || !line) {
      ++trace_.unreadable;
      return;
    }
    trace_.events.push_back({.time = sample.time,
                             .pid = sample.pid,
                             .tid = sample.tid,
                             .function = number_of(*name, *file),
                             .line = static_cast<std::int32_t>(*line),
                             .source = probe->source,
                             .kind = probe->kind});
  }

  std::uint32_t number_of(std::string_view name, std::string_view file) {
    key_.assign(name).append(1, '\0').append(file);
    const auto next = static_cast<std::uint32_t>(trace_.functions.size());
    const auto [found, is_new] = numbers_.try_emplace(key_, next);
    if (is_new) {
      trace_.functions.push_back({.name = std::string{name}, .file = std::string{file}, .line = 0});
    }
    return found->second;
  }

  void take_thread(const perfdata::Record& record) {
    const auto task = perfdata::parse_task(record);
    if (task && task->time != 0) {
      trace_.events.push_back({.time = task->time,
                               .pid = task->pid,
                               .tid = task->tid,
                               .kind = CallEvent::Kind::kThread});
    }
  }

  // The same losses are reported twice: by the kernel as they happen (LOST, for all events of a
  // buffer, but not at the end), and by perf from each event's counters (LOST_SAMPLES, since 6.1).
  void take_loss(const perfdata::Record& record) {
    base::ByteCursor cursor{record.bytes};
    cursor.take(sizeof(perf_event_header));
    if (record.type == PERF_RECORD_LOST) {
      cursor.number<std::uint64_t>();  // the reporting event, not the one with the losses
      lost_records_ += cursor.number<std::uint64_t>();
      return;
    }
    told_by_event_ = true;
    const auto* const event = input_.event_of(record);
    if (event == nullptr || probe_of_event(*event) != nullptr) {
      lost_samples_ += cursor.number<std::uint64_t>();
    }
  }

  [[nodiscard]] std::uint64_t lost() const {
    const bool others = std::ranges::any_of(input_.events(), [this](const perfdata::Event& event) {
      return probe_of_event(event) == nullptr && !event.is_dummy();
    });
    return others && told_by_event_ ? lost_samples_ : std::max(lost_records_, lost_samples_);
  }

  perfdata::Input input_;
  std::unique_ptr<tep_handle, FreeTep> tep_{tep_alloc()};
  std::unordered_map<std::uint64_t, Probe> probes_;  // by event id
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::string key_;
  std::uint64_t lost_records_ = 0;
  std::uint64_t lost_samples_ = 0;  // of calls and returns
  bool told_by_event_ = false;
  CallTrace trace_;
};

}  // namespace

bool can_read_calls() { return true; }

CallTrace read_calls(const std::string& path) {
  auto opened = perfdata::Input::open(path);
  if (const auto* const why = std::get_if<perfdata::UnsupportedFile>(&opened)) {
    throw base::Error{fmt::format("{}: {}", base::printable(path), why->why)};
  }
  Reader reader{std::get<perfdata::Input>(std::move(opened))};
  if (!reader.has_probes()) {
    throw base::Error{
        fmt::format("{} contains no function calls: perf-pyinject record --functions records them",
                    base::printable(path))};
  }
  return reader.read();
}

}  // namespace pyinject::calls

#else

namespace pyinject::calls {

bool can_read_calls() { return false; }

CallTrace read_calls(const std::string& path) {
  throw base::Error{path +
                    ": this perf-pyinject was built without libtraceevent (libtraceevent-dev) and "
                    "cannot read function calls"};
}

}  // namespace pyinject::calls

#endif
