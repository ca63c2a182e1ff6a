#include "report/collections.hpp"

#include "report/machinery.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pyinject::report {

namespace {

// CPython 3.12 to 3.15: gc_collect_main() and, where the compiler inlines it, its callers
// (Modules/gcmodule.c, Python/gc.c, Python/gc_free_threading.c).
bool is_collector(const Function& function) {
  const std::string_view name = function.name;
  return function.kind == Kind::kNative &&
         (name.starts_with("gc_collect") || name.starts_with("_PyGC_Collect") ||
          name.starts_with("PyGC_Collect") || name.starts_with("_Py_RunGC"));
}

// By node: whether it is a collector or has one among its callers.
std::vector<bool> nodes_of_collectors(const Profile& profile) {
  if (std::ranges::none_of(profile.functions, is_collector)) {
    return {};
  }
  std::vector<bool> collectors;
  collectors.reserve(profile.functions.size());
  for (const auto& function : profile.functions) {
    collectors.push_back(is_collector(function));
  }
  std::vector<bool> nodes(profile.nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const auto& node = profile.nodes[i];
    nodes[i] = nodes[node.caller] || collectors[profile.frames[node.frame].function];
  }
  return nodes;
}

class CollectionAdder {
 public:
  CollectionAdder(Profile& profile,
                  const std::function<std::uint32_t(std::uint32_t, std::uint32_t)>& child)
      : profile_{profile}, child_{child}, interpreters_{profile} {}

  // STACK with the frame, or as it is.
  [[nodiscard]] std::uint32_t stack(std::uint32_t stack);

 private:
  [[nodiscard]] std::uint32_t frame(std::uint32_t python);

  Profile& profile_;
  const std::function<std::uint32_t(std::uint32_t, std::uint32_t)>& child_;
  Interpreters interpreters_;
  std::uint32_t frame_ = 0;
  bool has_frame_ = false;
};

// PYTHON: any Python function's frame.
std::uint32_t CollectionAdder::frame(std::uint32_t python) {
  if (!has_frame_) {
    has_frame_ = true;
    const auto known = std::ranges::find_if(profile_.functions, is_garbage_collector);
    const auto function = static_cast<std::uint32_t>(known - profile_.functions.begin());
    if (known == profile_.functions.end()) {
      profile_.functions.push_back({.kind = Kind::kPython,
                                    .name = kGarbageCollector,
                                    .object = function_of(profile_, python).object});
    }
    const auto frame = std::ranges::find(profile_.frames, function, &Frame::function);
    frame_ = static_cast<std::uint32_t>(frame - profile_.frames.begin());
    if (frame == profile_.frames.end()) {
      profile_.frames.push_back({.function = function});
    }
  }
  return frame_;
}

std::uint32_t CollectionAdder::stack(std::uint32_t stack) {
  const auto frames = frames_of(profile_, stack);
  const auto python = std::ranges::find_if(frames, [this](std::uint32_t each) {
    return function_of(profile_, each).kind == Kind::kPython;
  });
  const bool collects = std::ranges::any_of(frames, [&](std::uint32_t each) {
    const auto& function = function_of(profile_, each);
    return is_collector(function) && interpreters_.have(function.object, frames);
  });
  if (!collects || python == frames.end() || is_garbage_collector(function_of(profile_, *python))) {
    return stack;
  }
  auto node = stack;
  for (auto each = frames.begin(); each != python; ++each) {
    node = profile_.nodes[node].caller;
  }
  node = child_(node, frame(*python));
  for (auto each = std::make_reverse_iterator(python); each != frames.rend(); ++each) {
    node = child_(node, *each);
  }
  return node;
}

}  // namespace

void add_collections(
    Profile& profile,
    const std::function<std::uint32_t(std::uint32_t caller, std::uint32_t frame)>& child) {
  const auto nodes = nodes_of_collectors(profile);
  if (nodes.empty()) {
    return;
  }
  CollectionAdder adder{profile, child};
  std::unordered_map<std::uint32_t, std::uint32_t> known;
  for (auto& sample : profile.samples) {
    // The BPF program reads CPython's own flag.
    const bool told = sample.does != sample::Does::kUnknown;
    if (!told && nodes[sample.stack]) {
      const auto [entry, fresh] = known.try_emplace(sample.stack, sample.stack);
      if (fresh) {
        entry->second = adder.stack(sample.stack);
      }
      sample.stack = entry->second;
    }
  }
}

}  // namespace pyinject::report
