#include "base/text.hpp"
#include "doctor/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace pyinject::doctor {

namespace {

constexpr std::size_t kNameWidth = 19;
constexpr std::size_t kStateWidth = 8;

void add_detail(std::string& text, std::string_view label, const std::string& detail) {
  if (!detail.empty()) {
    text += fmt::format("{:{}}{:6}{}\n", "", kStateWidth, label, base::printable(detail));
  }
}

void add_checks(std::string& text, const std::vector<Check>& checks) {
  for (const auto& check : checks) {
    text += fmt::format("{:{}}{:{}} {}\n", name(check.state), kStateWidth, check.name, kNameWidth,
                        base::printable(check.found));
    add_detail(text, "cost:", check.cost);
    add_detail(text, "fix:", check.command);
    add_detail(text, check.command.empty() ? "fix:" : "or:", check.remedy);
  }
}

std::string why_not(const Outlook& engine) {
  std::string why;
  if (engine.refusal) {
    why = base::printable(python::describe(*engine.refusal));
  }
  if (!engine.blocked_by.empty()) {
    why += fmt::format("{}see {}", why.empty() ? "" : "; ", fmt::join(engine.blocked_by, ", "));
  }
  return why;
}

void add_engines(std::string& text, const std::vector<Outlook>& engines) {
  for (const auto& engine : engines) {
    text += engine.works() ? fmt::format("  --engine {:11} works\n", engine.engine)
                           : fmt::format("  --engine {:11} does not work: {}\n", engine.engine,
                                         why_not(engine));
  }
}

}  // namespace

std::string to_text(const Judgement& judgement) {
  std::string text;
  add_checks(text, judgement.checks);
  if (judgement.processes.empty()) {
    text += "\nrecord -p with a process of this user:\n";
    add_engines(text, judgement.engines);
  }
  for (const auto& process : judgement.processes) {
    const auto& status = process.status;
    text +=
        fmt::format("\npid {}: {}{}\n", status.pid.value(),
                    status.version ? "Python " + python::to_string(*status.version) : "",
                    status.interpreter.empty() ? "" : ", " + base::printable(status.interpreter));
    add_engines(text, process.engines);
    add_checks(text, process.checks);
  }
  return text;
}

}  // namespace pyinject::doctor
