#include "push/series.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace pyinject::push {

namespace {

using report::Profile;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Copies the samples of some processes with the entries of the tables that they use.
class Selection {
 public:
  explicit Selection(const Profile& from)
      : from_{from},
        objects_(from.objects.size(), kNone),
        functions_(from.functions.size(), kNone),
        frames_(from.frames.size(), kNone),
        nodes_(from.nodes.size(), kNone),
        threads_(from.threads.size(), kNone) {
    nodes_.front() = 0;
    to_.events = from.events;
    to_.notes = from.notes;
    to_.clock = from.clock;
  }

  void add(const report::Sample& sample) {
    auto copy = sample;
    copy.stack = node(sample.stack);
    copy.thread = entry(sample.thread, threads_, from_.threads, to_.threads);
    to_.samples.push_back(copy);
  }
  [[nodiscard]] Profile take() { return std::move(to_); }

 private:
  template <typename Entry>
  static std::uint32_t entry(std::uint32_t number, std::vector<std::uint32_t>& known,
                             const std::vector<Entry>& from, std::vector<Entry>& to) {
    auto& place = known.at(number);
    if (place == kNone) {
      place = static_cast<std::uint32_t>(to.size());
      to.push_back(from[number]);
    }
    return place;
  }

  std::uint32_t function(std::uint32_t number) {
    const bool fresh = functions_.at(number) == kNone;
    const auto place = entry(number, functions_, from_.functions, to_.functions);
    auto& copy = to_.functions[place];
    if (fresh) {
      const bool has_object =
          (copy.kind == report::Kind::kNative || copy.kind == report::Kind::kKernel) &&
          copy.object < from_.objects.size();
      copy.object = has_object ? entry(copy.object, objects_, from_.objects, to_.objects) : 0;
    }
    return place;
  }

  std::uint32_t frame(std::uint32_t number) {
    const bool fresh = frames_.at(number) == kNone;
    const auto place = entry(number, frames_, from_.frames, to_.frames);
    if (fresh) {
      to_.frames[place].function = function(to_.frames[place].function);
    }
    return place;
  }

  // Callers come first, as in every Profile.
  std::uint32_t node(std::uint32_t number) {
    std::vector<std::uint32_t> fresh;
    for (; nodes_.at(number) == kNone; number = from_.nodes[number].caller) {
      fresh.push_back(number);
    }
    auto caller = nodes_[number];
    while (!fresh.empty()) {
      to_.nodes.push_back({.caller = caller, .frame = frame(from_.nodes[fresh.back()].frame)});
      caller = static_cast<std::uint32_t>(to_.nodes.size() - 1);
      nodes_[fresh.back()] = caller;
      fresh.pop_back();
    }
    return caller;
  }

  const Profile& from_;
  Profile to_;
  std::vector<std::uint32_t> objects_;
  std::vector<std::uint32_t> functions_;
  std::vector<std::uint32_t> frames_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> threads_;
};

// By pid.
using Versions = std::map<std::uint32_t, std::string>;

Versions versions_in(const Profile& profile) {
  std::vector<std::string> by_object;
  for (const auto& object : profile.objects) {
    by_object.push_back(python_version_in(object.path));
  }
  Versions versions;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // pid, node
  for (const auto& sample : profile.samples) {
    const auto pid = profile.threads[sample.thread].pid;
    for (auto node = sample.stack; node != 0 && seen.emplace(pid, node).second;
         node = profile.nodes[node].caller) {
      const auto& function = profile.functions[profile.frames[profile.nodes[node].frame].function];
      if (function.kind == report::Kind::kNative && function.object < by_object.size() &&
          !by_object[function.object].empty()) {
        versions.try_emplace(pid, by_object[function.object]);
      }
    }
  }
  return versions;
}

constexpr std::string_view kService = "service_name";
constexpr std::string_view kOthers = "other";

struct Merged {
  Labels labels;
  std::size_t sets = 1;  // 1: none are merged
};

// Leaves kMostSeries sets of labels: those with the fewest samples become one, which has the labels
// that all of them have.
Merged merge_small(std::map<Labels, std::vector<std::uint32_t>>& samples) {
  if (samples.size() <= kMostSeries) {
    return {};
  }
  std::vector<std::pair<std::size_t, const Labels*>> sizes;
  sizes.reserve(samples.size());
  for (const auto& [labels, numbers] : samples) {
    sizes.emplace_back(numbers.size(), &labels);
  }
  const auto kept = sizes.begin() + static_cast<std::ptrdiff_t>(kMostSeries - 1);
  std::ranges::nth_element(sizes, kept, std::ranges::greater{},
                           &std::pair<std::size_t, const Labels*>::first);
  const auto merged = static_cast<std::size_t>(sizes.end() - kept);
  Labels common = *kept->second;
  std::vector<std::uint32_t> numbers;
  for (auto each = kept; each != sizes.end(); ++each) {
    std::erase_if(common, [&](const Label& label) {
      return label_of(*each->second, label.name) != label.value;
    });
    const auto node = samples.extract(*each->second);
    numbers.insert(numbers.end(), node.mapped().begin(), node.mapped().end());
  }
  std::ranges::sort(numbers);
  set_label(common, kService, std::string{kOthers});
  auto& others = samples[common];
  others.insert(others.end(), numbers.begin(), numbers.end());
  return {.labels = std::move(common), .sets = merged};
}

}  // namespace

std::string python_version_in(const std::string& path) {
  std::string_view name{path};
  name.remove_prefix(name.rfind('/') + 1);
  if (name.starts_with("lib")) {
    name.remove_prefix(3);
  }
  constexpr std::string_view kPython = "python3.";
  if (!name.starts_with(kPython)) {
    return {};
  }
  const auto digits = name.substr(kPython.size());
  const auto length = std::min(digits.find_first_not_of("0123456789"), digits.size());
  constexpr std::size_t kMost = 3;
  return length == 0 || length > kMost ? std::string{}
                                       : "3." + std::string{digits.substr(0, length)};
}

std::vector<Series> series_of(const Profile& profile, const LabelSource& labels) {
  const auto versions = versions_in(profile);
  std::map<Labels, std::vector<std::uint32_t>> samples;  // their numbers
  std::map<std::uint32_t, std::vector<std::uint32_t>*> by_pid;
  for (std::uint32_t number = 0; number < profile.samples.size(); ++number) {
    const auto& thread = profile.threads[profile.samples[number].thread];
    auto& own_samples = by_pid[thread.pid];
    if (own_samples == nullptr) {
      auto own = labels(thread.pid, thread.process.empty() ? thread.name : thread.process);
      const auto version = versions.find(thread.pid);
      if (version != versions.end()) {
        set_label(own, "python_version", version->second);
      }
      own_samples = &samples[std::move(own)];
    }
    own_samples->push_back(number);
  }
  const auto merged = merge_small(samples);
  std::vector<Series> all;
  all.reserve(samples.size());
  for (const auto& [own, numbers] : samples) {
    Selection selection{profile};  // one at a time: each is as large as the tables
    for (const auto number : numbers) {
      selection.add(profile.samples[number]);
    }
    all.push_back({.labels = own,
                   .profile = selection.take(),
                   .sets = own == merged.labels ? merged.sets : 1});
  }
  return all;
}

}  // namespace pyinject::push
