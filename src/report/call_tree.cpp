#include "report/call_tree.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace pyinject::report {

namespace {

constexpr std::uint32_t kNoFunction = ~std::uint32_t{0};

struct TreeNode {
  std::uint32_t row = kNoFunction;
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  std::vector<std::uint32_t> called{};
};

// Node 0 is the root: all samples.
class TreeBuilder {
 public:
  void add(const std::vector<std::uint32_t>& path, std::uint64_t weight);
  [[nodiscard]] std::vector<TreeRow> rows(const Selection& selection, const TreeOptions& options);
  [[nodiscard]] std::uint64_t weight() const { return nodes_.front().total; }

 private:
  std::uint32_t child(std::uint32_t caller, std::uint32_t row);
  std::size_t shown(TreeNode& node, const TreeOptions& options) const;

  std::vector<TreeNode> nodes_{TreeNode{}};
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

std::uint32_t TreeBuilder::child(std::uint32_t caller, std::uint32_t row) {
  const auto [entry, fresh] = numbers_.try_emplace(std::uint64_t{caller} << 32U | row,
                                                   static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) {
    nodes_.push_back({.row = row});
    nodes_[caller].called.push_back(entry->second);
  }
  return entry->second;
}

// PATH: innermost first.
void TreeBuilder::add(const std::vector<std::uint32_t>& path, std::uint64_t weight) {
  std::uint32_t node = 0;
  nodes_[node].total += weight;
  if (path.empty()) {
    node = child(node, kNoFunction);
    nodes_[node].total += weight;
  }
  for (std::size_t i = path.size(); i-- > 0;) {
    node = child(node, path[i]);
    nodes_[node].total += weight;
  }
  nodes_[node].self += weight;
}

// Sorts what NODE calls. Returns the number of those with rows.
std::size_t TreeBuilder::shown(TreeNode& node, const TreeOptions& options) const {
  std::ranges::stable_sort(node.called, std::ranges::greater{},
                           [this](std::uint32_t number) { return nodes_[number].total; });
  const auto least = options.least / 100 * static_cast<double>(weight());
  const auto first_folded = std::ranges::find_if(node.called, [&](std::uint32_t number) {
    return static_cast<double>(nodes_[number].total) < least;
  });
  const auto count = static_cast<std::size_t>(first_folded - node.called.begin());
  return options.most == 0 ? count : std::min(count, options.most);
}

std::vector<TreeRow> TreeBuilder::rows(const Selection& selection, const TreeOptions& options) {
  struct Open {
    std::uint32_t node = 0;
    std::size_t shown = 0;
    std::size_t next = 0;
  };
  std::vector<TreeRow> result;
  std::vector<Open> open{{.node = 0, .shown = shown(nodes_[0], options)}};
  while (!open.empty()) {
    auto& top = open.back();
    const auto& called = nodes_[top.node].called;
    const auto depth = open.size() - 1;
    if (top.next == top.shown) {
      TreeRow rest{.depth = depth, .key = {}, .folded = called.size() - top.shown};
      for (auto i = top.shown; i < called.size(); ++i) {
        rest.self += nodes_[called[i]].self;
        rest.total += nodes_[called[i]].total;
      }
      if (rest.folded != 0) {
        result.push_back(rest);
      }
      open.pop_back();
      continue;
    }
    const auto number = called[top.next++];
    auto& node = nodes_[number];
    result.push_back({.depth = depth,
                      .key = node.row == kNoFunction ? RowKey{} : selection.key(node.row),
                      .self = node.self,
                      .total = node.total});
    open.push_back({.node = number, .shown = shown(node, options)});
  }
  return result;
}

}  // namespace

std::vector<Tree> make_trees(const Profile& profile, const ViewOptions& options,
                             const TreeOptions& tree) {
  Selection selection{profile, options};
  std::map<std::uint32_t, TreeBuilder> builders;  // by event
  selection.visit([&](const Slice& slice, const StackFacts& facts) {
    builders[slice.event].add(facts.path, slice.weight);
  });
  std::vector<Tree> trees;
  trees.reserve(builders.size());
  for (auto& [event, builder] : builders) {
    trees.push_back({.event = profile.events[event].name,
                     .unit = profile.events[event].unit,
                     .weight = builder.weight(),
                     .rows = builder.rows(selection, tree)});
  }
  std::stable_partition(trees.begin(), trees.end(),
                        [](const Tree& each) { return each.unit != Unit::kWaits; });
  return trees;
}

}  // namespace pyinject::report
