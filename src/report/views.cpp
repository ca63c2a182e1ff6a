#include "report/views.hpp"

#include "report/difference.hpp"
#include "report/events.hpp"
#include "report/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::report {

namespace {

constexpr std::size_t kAnnotatedFunctions = 3;
constexpr std::string_view kNoSample = "no sample is left after the filters";

using Shown = std::variant<std::string, NothingToShow>;

NothingToShow nothing(std::string_view why) { return {.why = std::string{why}}; }

Shown show_tables(const Profile& profile, const ShowOptions& options) {
  const auto tables = make_tables(profile, options.view);
  if (tables.empty()) {
    return nothing(kNoSample);
  }
  auto text = options.text;
  text.view = options.view.view;
  return options.format == Format::kJson  ? to_json(tables, text)
         : options.format == Format::kCsv ? to_csv(tables, text)
                                          : to_text(tables, text);
}

Shown show_trees(const Profile& profile, const ShowOptions& options) {
  const auto trees =
      make_trees(profile, options.view, {.least = options.least, .most = options.text.most});
  if (trees.empty()) {
    return nothing(kNoSample);
  }
  return options.format == Format::kJson  ? to_json(trees)
         : options.format == Format::kCsv ? to_csv(trees)
                                          : to_text(trees, options.text);
}

Shown show_waits(const Profile& profile, const ShowOptions& options) {
  const auto waits = make_waits(profile, options.view);
  if (waits.count == 0) {
    const bool recorded = std::ranges::any_of(
        profile.events, [](const Event& event) { return event.unit == Unit::kWaits; });
    return nothing(recorded ? "no wait is left after the filters"
                            : "there are no waits in it: record with --off-cpu");
  }
  return options.format == Format::kJson  ? to_json(waits, options.text)
         : options.format == Format::kCsv ? to_csv(waits, options.text)
                                          : to_text(waits, options.text);
}

Shown show_events(const Profile& profile, const ShowOptions& options) {
  const auto events = make_events(profile, options.view);
  if (events.rows.empty() && !events.others) {
    return nothing(kNoSample);
  }
  return options.format == Format::kJson  ? to_json(events, options.text)
         : options.format == Format::kCsv ? to_csv(events, options.text)
                                          : to_text(events, options.text);
}

Shown show_annotation(const Profile& profile, const ShowOptions& options) {
  const auto most = options.text.most == 0 ? kAnnotatedFunctions : options.text.most;
  const auto annotation = annotate(profile, options.view, most, options.read_source);
  if (annotation.functions.empty()) {
    return nothing(!has_lines(profile) ? "no line numbers in this recording; record with --lines"
                   : options.view.function.empty() ? kNoSample
                                                   : "no sample of this function is left");
  }
  return options.format == Format::kJson  ? to_json(annotation)
         : options.format == Format::kCsv ? to_csv(annotation)
                                          : to_text(annotation, options.text);
}

}  // namespace

bool has_lines(const Profile& profile) {
  return std::ranges::any_of(profile.frames, [](const Frame& frame) { return frame.line != 0; });
}

Shown show_difference(const Profile& before, const Profile& now, const ShowOptions& options) {
  auto view_before = options.view;  // its processes had other numbers
  view_before.pids.clear();
  view_before.tids.clear();
  const auto differences = compare(make_tables(before, view_before), make_tables(now, options.view),
                                   options.view.by_total);
  if (differences.empty()) {
    return nothing("the recordings have no samples of the same event");
  }
  auto text = options.text;
  text.view = options.view.view;
  return options.format == Format::kJson  ? to_json(differences, text)
         : options.format == Format::kCsv ? to_csv(differences, text)
                                          : to_text(differences, text);
}

Shown show(const Profile& profile, const ShowOptions& options) {
  switch (options.view.view) {
    case View::kTree:
      return show_trees(profile, options);
    case View::kWaits:
      return show_waits(profile, options);
    case View::kEvents:
      return show_events(profile, options);
    case View::kAnnotate:
      return show_annotation(profile, options);
    default:
      return show_tables(profile, options);
  }
}

}  // namespace pyinject::report
