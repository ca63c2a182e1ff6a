#include "report/profile_builder.hpp"

#include <algorithm>

namespace pyinject::report {

namespace {

template <typename Item>
std::uint32_t append(std::vector<Item>& items, Item item) {
  items.push_back(std::move(item));
  return static_cast<std::uint32_t>(items.size() - 1);
}

}  // namespace

std::uint32_t ProfileBuilder::object(const std::string& path) {
  const auto [known, fresh] =
      objects_.try_emplace(path, static_cast<std::uint32_t>(profile_.objects.size()));
  if (fresh) {
    profile_.objects.push_back({.path = path});
  }
  return known->second;
}

std::uint32_t ProfileBuilder::event(Event event) {
  return append(profile_.events, std::move(event));
}

std::uint32_t ProfileBuilder::thread(Thread thread) {
  return append(profile_.threads, std::move(thread));
}

std::uint32_t ProfileBuilder::call(std::uint32_t caller, const Function& function,
                                   std::uint32_t line) {
  const auto [known, fresh_function] =
      functions_.try_emplace({function.kind, function.name, function.file, function.object},
                             static_cast<std::uint32_t>(profile_.functions.size()));
  if (fresh_function) {
    profile_.functions.push_back(function);
  }
  const auto [frame, fresh_frame] =
      frames_.try_emplace(known->second, line, profile_.frames.size());
  if (fresh_frame) {
    profile_.frames.push_back({.function = known->second, .line = line});
  }
  const auto [node, fresh_node] = nodes_.try_emplace(caller, frame, profile_.nodes.size());
  if (fresh_node) {
    profile_.nodes.push_back({.caller = caller, .frame = frame});
  }
  return node;
}

Profile ProfileBuilder::finish() && {
  std::ranges::stable_sort(profile_.samples, {}, &Sample::time);
  return std::move(profile_);
}

}  // namespace pyinject::report
