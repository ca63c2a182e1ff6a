// Suspended greenlets as text: those with equal stacks together. Pure.
#pragma once

#include "inspect/frame_text.hpp"
#include "python/objects/object_reader.hpp"

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::inspect {

// Greenlets of one class with equal stacks.
struct AlikeGreenlets {
  const python::SuspendedGreenlet* first = nullptr;
  std::size_t count = 0;
};

// The most frequent stacks first, those of event loops (gevent's Hub) last. GREENLETS must outlive
// the result.
[[nodiscard]] std::vector<AlikeGreenlets> alike(
    const std::vector<python::SuspendedGreenlet>& greenlets);

struct GreenletsForm {
  std::string_view indent = "  ";
  std::size_t most_stacks = 100;
  std::size_t most_functions = std::numeric_limits<std::size_t>::max();  // of each
  bool core = false;
  const FrameText* functions = nullptr;    // writes them; nullptr: names and lines only
  std::string rest = "-v or --json: all";  // how to see the others
};

// In the order of alike().
[[nodiscard]] std::string greenlets_text(const std::vector<python::SuspendedGreenlet>& greenlets,
                                         const GreenletsForm& form);

}  // namespace pyinject::inspect
