#include "inspect/greenlets_text.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

namespace pyinject::inspect {

namespace {

using base::printable;
using python::SuspendedGreenlet;

constexpr std::size_t kMostStacks = 100;

struct Alike {
  const SuspendedGreenlet* first = nullptr;
  std::size_t count = 0;
};

std::vector<Alike> alike(const std::vector<SuspendedGreenlet>& greenlets) {
  std::vector<const SuspendedGreenlet*> sorted;
  sorted.reserve(greenlets.size());
  for (const auto& greenlet : greenlets) {
    sorted.push_back(&greenlet);
  }
  const auto is_equal = [](const SuspendedGreenlet& a, const SuspendedGreenlet& b) {
    return a.type == b.type && a.certain == b.certain && a.frames == b.frames;
  };
  const auto key = [](const python::AsyncFrame& frame) {
    return std::tie(frame.names.qualname, frame.names.file, frame.line);
  };
  std::ranges::stable_sort(sorted, [&](const auto* a, const auto* b) {
    return std::tie(a->type, a->certain) != std::tie(b->type, b->certain)
               ? std::tie(a->type, a->certain) < std::tie(b->type, b->certain)
               : std::ranges::lexicographical_compare(a->frames, b->frames, {}, key, key);
  });
  std::vector<Alike> groups;
  for (const auto* const greenlet : sorted) {
    if (groups.empty() || !is_equal(*groups.back().first, *greenlet)) {
      groups.push_back({.first = greenlet, .count = 0});
    }
    ++groups.back().count;
  }
  std::ranges::stable_sort(groups, [](const Alike& a, const Alike& b) {
    const bool a_is_hub = a.first->type == "Hub";
    const bool b_is_hub = b.first->type == "Hub";
    return a_is_hub != b_is_hub ? b_is_hub : a.count > b.count;
  });
  return groups;
}

}  // namespace

std::string greenlets_text(const ProcessSnapshot& process, bool all) {
  if (process.greenlets.empty()) {
    return {};
  }
  auto text = fmt::format("  {} suspended\n",
                          base::counted(process.greenlets.size(), "greenlet is", "greenlets are"));
  const auto groups = alike(process.greenlets);
  const auto shown = all ? groups.size() : std::min(groups.size(), kMostStacks);
  for (const auto& [greenlet, count] : std::span{groups}.first(shown)) {
    text += fmt::format("    {} ({}){}\n", base::counted(count, "greenlet", "greenlets"),
                        printable(greenlet->type),
                        greenlet->certain ? ""
                        : process.core    ? ": not all of it can be read"
                                          : ": changed while it was read");
    for (const auto& frame : greenlet->frames) {
      if (frame.names.qualname.empty() && frame.names.file.empty()) {
        text += "      [unknown]\n";
        continue;
      }
      text += fmt::format("      {}  {}:{}\n", printable(frame.names.qualname),
                          printable(frame.names.file),
                          frame.line == 0 ? std::string{"?"} : std::to_string(frame.line));
    }
  }
  if (shown != groups.size()) {
    text += fmt::format("    ... {} (-v or --json: all)\n",
                        base::counted(groups.size() - shown, "more stack"));
  }
  return text;
}

}  // namespace pyinject::inspect
