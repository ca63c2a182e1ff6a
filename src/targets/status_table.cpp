#include "base/columns.hpp"
#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/targets/status_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::targets {

namespace {

using Row = std::vector<std::string>;

std::string or_dash(const std::string& text) { return text.empty() ? "-" : base::printable(text); }

Row row_of(const ProcessStatus& status) {
  const char* const pointers =
      status.frame_pointers ? (*status.frame_pointers ? "yes" : "no") : "-";
  return {std::to_string(status.pid.value()),
          or_dash(status.user),
          status.version ? python::to_string(*status.version) : "-",
          pointers,
          verdict(status),
          or_dash(status.command)};
}

std::string rows_of(const std::vector<ProcessStatus>& processes, std::size_t width) {
  std::vector<Row> rows{Row{"PID", "USER", "PYTHON", "FP", "STATE", "COMMAND"}};
  for (const auto& status : processes) {
    rows.push_back(row_of(status));
  }
  return base::to_columns(rows, {.right_aligned = {0}, .width = width});
}

// A remark about one process, or several with the same text.
struct Note {
  std::string kind;  // notes of the same kind are folded
  std::string text;
  base::Pid pid;
};

std::string owner_text(const ProcessStatus& status) {
  if (status.owner == python::OwnerState::kGone) {
    return fmt::format(
        "the perf-pyinject that switched its trampoline on was killed: perf-pyinject deactivate -p "
        "{}, or --abandoned for all such processes",
        status.pid.value());
  }
  if (status.owner == python::OwnerState::kUnknown) {
    return "the perf-pyinject that switched its trampoline on was in another pid namespace and may "
           "still run";
  }
  return {};
}

void append_notes(const ProcessStatus& status, std::vector<Note>& notes) {
  const auto add = [&](std::string_view kind, std::string text) {
    notes.push_back({.kind = std::string{kind}, .text = std::move(text), .pid = status.pid});
  };
  if (status.refusal) {
    add(python::name(status.refusal->reason), base::printable(python::describe(*status.refusal)));
  }
  if (auto text = owner_text(status); !text.empty()) {
    add(python::name(status.owner), std::move(text));
  }
  for (const auto& warning : status.warnings) {
    const auto text = "warning: " + base::printable(warning);
    add(text, text);
  }
}

std::vector<Note> take_kind(std::vector<Note>& notes) {
  const auto kind = notes.front().kind;
  const auto others = std::stable_partition(notes.begin(), notes.end(),
                                            [&](const auto& note) { return note.kind == kind; });
  std::vector<Note> taken{notes.begin(), others};
  notes.erase(notes.begin(), others);
  return taken;
}

// "3 processes: Python 3.11.2 (python_too_old): ...", with the text of the first note.
std::string folded(const std::vector<Note>& notes) {
  const auto& first = notes.front();
  if (notes.size() == 1) {
    return fmt::format("pid {}: {}\n", first.pid.value(), first.text);
  }
  if (!std::ranges::all_of(notes, [&](const auto& note) { return note.text == first.text; })) {
    return fmt::format("{} processes (-v: each), such as pid {}: {}\n", notes.size(),
                       first.pid.value(), first.text);
  }
  std::string_view text = first.text;
  constexpr std::string_view kOne = "it is ";
  if (text.starts_with(kOne)) {
    text.remove_prefix(kOne.size());
  }
  return fmt::format("{} processes: {}\n", notes.size(), text);
}

std::string explanations_of(const StatusReport& report, bool verbose) {
  std::vector<Note> notes;
  for (const auto& status : report.processes) {
    if (verbose && !status.interpreter.empty()) {
      notes.push_back({.kind = {},
                       .text = "interpreter: " + base::printable(status.interpreter),
                       .pid = status.pid});
    }
    append_notes(status, notes);
  }
  std::string text;
  while (!notes.empty()) {
    if (verbose) {
      text += folded({notes.front()});
      notes.erase(notes.begin());
    } else {
      text += folded(take_kind(notes));
    }
  }
  return text;
}

// "1 process", "2 processes".
std::string processes(std::size_t count) { return base::counted(count, "process", "processes"); }

}  // namespace

std::string unlisted(const StatusReport& report) {
  std::string text;
  if (report.not_examined != 0) {
    text += fmt::format("{} could not be examined in time: too many or too large files mapped\n",
                        processes(report.not_examined));
  }
  if (report.unreadable != 0) {
    text += fmt::format("{} could not be inspected: {}\n", processes(report.unreadable),
                        procfs::how_to_get(procfs::Capability::kSysPtrace));
  }
  return text;
}

std::string to_table(const StatusReport& report, const TableOptions& options) {
  if (report.processes.empty()) {
    return "no Python process is visible\n" + unlisted(report);
  }
  auto text = rows_of(report.processes, options.width);
  if (const auto explanations = explanations_of(report, options.verbose); !explanations.empty()) {
    text += "\n" + explanations;
  }
  return text + unlisted(report);
}

}  // namespace pyinject::targets
