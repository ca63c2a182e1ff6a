#include "report/merge.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace pyinject::report {

namespace {

// Numbers values of the merged profile, each once.
template <typename Key, typename Value>
class Numbering {
 public:
  explicit Numbering(std::vector<Value>& values) : values_{values} {}
  std::uint32_t number(const Key& key, const Value& value) {
    const auto [entry, fresh] =
        numbers_.try_emplace(key, static_cast<std::uint32_t>(values_.size()));
    if (fresh) {
      values_.push_back(value);
    }
    return entry->second;
  }

 private:
  std::vector<Value>& values_;
  std::map<Key, std::uint32_t> numbers_;
};

class Merger {
 public:
  void add(const Profile& profile);
  [[nodiscard]] Profile finish();

 private:
  // Numbers of the merged profile, by those of PROFILE.
  template <typename Value, typename Number>
  static std::vector<std::uint32_t> map(const std::vector<Value>& values, Number&& number) {
    std::vector<std::uint32_t> numbers(values.size());
    std::ranges::transform(values, numbers.begin(), number);
    return numbers;
  }
  [[nodiscard]] std::vector<std::uint32_t> map_stacks(const Profile& profile);

  Profile merged_;
  Numbering<std::pair<std::string, std::string>, Object> objects_{merged_.objects};
  Numbering<std::tuple<Kind, std::string, std::string, std::uint32_t, std::uint64_t>, Function>
      functions_{merged_.functions};
  Numbering<std::pair<std::uint32_t, std::uint32_t>, Frame> frames_{merged_.frames};
  Numbering<std::pair<std::uint32_t, std::uint32_t>, Node> nodes_{merged_.nodes};
  Numbering<std::pair<std::string, Unit>, Event> events_{merged_.events};
  Numbering<std::tuple<std::uint32_t, std::uint32_t, std::string, std::string>, Thread> threads_{
      merged_.threads};
};

std::vector<std::uint32_t> Merger::map_stacks(const Profile& profile) {
  const auto objects = map(profile.objects, [this](const Object& object) {
    return objects_.number({object.path, object.build_id}, object);
  });
  const auto functions = map(profile.functions, [&](Function function) {
    if (function.kind == Kind::kNative || function.kind == Kind::kKernel) {
      function.object = objects.empty() ? 0 : objects.at(function.object);
    }
    return functions_.number(
        {function.kind, function.name, function.file, function.object, function.address}, function);
  });
  const auto frames = map(profile.frames, [&](const Frame& frame) {
    const auto function = functions[frame.function];
    return frames_.number({function, frame.line}, {.function = function, .line = frame.line});
  });
  std::vector<std::uint32_t> nodes(profile.nodes.size());  // the root is number 0 in all
  for (std::size_t i = 1; i < nodes.size(); ++i) {         // callers come first
    const Node node{.caller = nodes[profile.nodes[i].caller],
                    .frame = frames[profile.nodes[i].frame]};
    nodes[i] = nodes_.number({node.caller, node.frame}, node);
  }
  return nodes;
}

void Merger::add(const Profile& profile) {
  const auto nodes = map_stacks(profile);
  const auto events = map(profile.events, [this](const Event& event) {
    return events_.number({event.name, event.unit}, event);
  });
  const auto threads = map(profile.threads, [this](const Thread& thread) {
    return threads_.number({thread.pid, thread.tid, thread.name, thread.process}, thread);
  });
  merged_.samples.reserve(merged_.samples.size() + profile.samples.size());
  for (auto sample : profile.samples) {
    sample.stack = nodes[sample.stack];
    sample.event = events[sample.event];
    sample.thread = threads[sample.thread];
    merged_.samples.push_back(sample);
  }
  merged_.forks.insert(merged_.forks.end(), profile.forks.begin(), profile.forks.end());
  merged_.lost += profile.lost;
  for (const auto& note : profile.notes) {
    if (std::ranges::find(merged_.notes, note) == merged_.notes.end()) {
      merged_.notes.push_back(note);
    }
  }
}

Profile Merger::finish() {
  std::ranges::stable_sort(merged_.samples, {}, &Sample::time);
  std::ranges::stable_sort(merged_.forks, {}, [](const Fork& fork) {
    return std::pair{fork.pid, fork.time};
  });
  return std::move(merged_);
}

}  // namespace

Profile merge(std::vector<Profile> profiles) {
  if (profiles.size() == 1) {
    return std::move(profiles.front());
  }
  Merger merger;
  for (const auto& profile : profiles) {
    merger.add(profile);
  }
  auto merged = merger.finish();
  const auto& first = profiles.front().clock;
  const bool same = std::ranges::all_of(
      profiles, [&](const Profile& profile) { return profile.clock.id == first.id; });
  merged.clock = same ? first : Clock{};
  const auto& engine = profiles.front().engine;
  const bool alike = std::ranges::all_of(
      profiles, [&](const Profile& profile) { return profile.engine == engine; });
  merged.engine = alike ? engine : "";
  return merged;
}

}  // namespace pyinject::report
