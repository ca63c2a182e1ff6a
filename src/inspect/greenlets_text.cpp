#include "inspect/greenlets_text.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace pyinject::inspect {

namespace {

using base::printable;
using python::SuspendedGreenlet;

void add_functions(const SuspendedGreenlet& greenlet, const GreenletsForm& form,
                   std::string& text) {
  const ProcessSnapshot process;
  const TextOptions options;
  const FrameText plain{process, options};
  const auto& functions = form.functions != nullptr ? *form.functions : plain;
  const auto shown = std::min(greenlet.frames.size(), form.most_functions);
  for (const auto& frame : std::span{greenlet.frames}.first(shown)) {
    if (frame.names.qualname.empty() && frame.names.file.empty()) {
      text += fmt::format("{}    [unknown]\n", form.indent);
      continue;
    }
    text += functions.lines(frame, fmt::format("{}    ", form.indent));
  }
  if (shown != greenlet.frames.size()) {
    text += fmt::format("{}    ... {} ({})\n", form.indent,
                        base::counted(greenlet.frames.size() - shown, "outer function"), form.rest);
  }
}

}  // namespace

std::vector<AlikeGreenlets> alike(const std::vector<SuspendedGreenlet>& greenlets) {
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
  std::vector<AlikeGreenlets> groups;
  for (const auto* const greenlet : sorted) {
    if (groups.empty() || !is_equal(*groups.back().first, *greenlet)) {
      groups.push_back({.first = greenlet, .count = 0});
    }
    ++groups.back().count;
  }
  std::ranges::stable_sort(groups, [](const AlikeGreenlets& a, const AlikeGreenlets& b) {
    const bool a_is_hub = a.first->type == "Hub";
    const bool b_is_hub = b.first->type == "Hub";
    return a_is_hub != b_is_hub ? b_is_hub : a.count > b.count;
  });
  return groups;
}

std::string greenlets_text(const std::vector<SuspendedGreenlet>& greenlets,
                           const GreenletsForm& form) {
  if (greenlets.empty()) {
    return {};
  }
  auto text = fmt::format("{}{} suspended\n", form.indent,
                          base::counted(greenlets.size(), "greenlet is", "greenlets are"));
  const auto groups = alike(greenlets);
  const auto shown = std::min(groups.size(), form.most_stacks);
  for (const auto& [greenlet, count] : std::span{groups}.first(shown)) {
    text += fmt::format("{}  {} ({}){}\n", form.indent,
                        base::counted(count, "greenlet", "greenlets"), printable(greenlet->type),
                        greenlet->certain ? ""
                        : form.core       ? ": not all of it can be read"
                                          : ": changed while it was read");
    add_functions(*greenlet, form, text);
  }
  if (shown != groups.size()) {
    text += fmt::format("{}  ... {} ({})\n", form.indent,
                        base::counted(groups.size() - shown, "more stack"), form.rest);
  }
  return text;
}

}  // namespace pyinject::inspect
