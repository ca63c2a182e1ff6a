#include "push/series.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
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

// The samples with a set of labels.
struct Part {
  std::vector<std::uint32_t> samples{};                                // their numbers
  std::map<std::optional<std::uint32_t>, std::uint64_t> by_user = {};  // how many; nullopt: unknown
};
using Parts = std::map<Labels, Part>;

// The sets of labels of each user, those with the most samples of the user first.
std::vector<std::vector<std::pair<std::uint64_t, const Labels*>>> sets_by_user(const Parts& parts) {
  std::map<std::optional<std::uint32_t>, std::vector<std::pair<std::uint64_t, const Labels*>>> all;
  for (const auto& [labels, part] : parts) {
    for (const auto& [user, count] : part.by_user) {
      all[user].emplace_back(count, &labels);
    }
  }
  std::vector<std::vector<std::pair<std::uint64_t, const Labels*>>> ordered;
  for (auto& [user, sets] : all) {
    std::ranges::stable_sort(sets, std::ranges::greater{},
                             &std::pair<std::uint64_t, const Labels*>::first);
    ordered.push_back(std::move(sets));
  }
  return ordered;
}

// In turns: each user's largest set, then each one's second largest.
std::set<const Labels*> choose_sets(const Parts& parts, std::size_t count) {
  const auto users = sets_by_user(parts);
  std::set<const Labels*> chosen;
  bool more = true;
  for (std::size_t turn = 0; more; ++turn) {
    std::vector<std::pair<std::uint64_t, const Labels*>> sets;
    for (const auto& own : users) {
      if (turn < own.size()) {
        sets.push_back(own[turn]);
      }
    }
    more = !sets.empty();
    std::ranges::stable_sort(sets, std::ranges::greater{},
                             &std::pair<std::uint64_t, const Labels*>::first);
    for (const auto& [samples, set] : sets) {
      if (chosen.size() == count) {
        return chosen;
      }
      chosen.insert(set);
    }
  }
  return chosen;
}

struct Merged {
  Labels labels;
  std::size_t sets = 1;  // 1: none are merged
};

// Leaves kMostSeries sets of labels: the rest become one, which has the labels that all of them
// have.
Merged merge_small(Parts& parts) {
  if (parts.size() <= kMostSeries) {
    return {};
  }
  const auto kept = choose_sets(parts, kMostSeries - 1);
  std::optional<Labels> common;
  std::vector<std::uint32_t> numbers;
  std::size_t merged = 0;
  for (auto each = parts.begin(); each != parts.end();) {
    if (kept.contains(&each->first)) {
      ++each;
      continue;
    }
    ++merged;
    common = common ? std::move(common) : each->first;
    std::erase_if(*common, [&](const Label& label) {
      return label_of(each->first, label.name) != label.value;
    });
    const auto& samples = each->second.samples;
    numbers.insert(numbers.end(), samples.begin(), samples.end());
    each = parts.erase(each);
  }
  set_label(*common, kService, std::string{kOthers});
  auto& others = parts[*common].samples;
  others.insert(others.end(), numbers.begin(), numbers.end());
  std::ranges::sort(others);
  return {.labels = *std::move(common), .sets = merged};
}

// Divides the samples of a profile by the labels of their processes.
class Division {
 public:
  Division(const Profile& profile, const LabelSource& labels, const LiveProcesses& live)
      : profile_{profile},
        labels_{labels},
        live_{live},
        owners_{profile, live},
        versions_{versions_in(profile)} {}

  Parts take() {
    for (std::uint32_t number = 0; number < profile_.samples.size(); ++number) {
      const auto& own = part_of(profile_.samples[number]);
      own.part->samples.push_back(number);
      ++own.part->by_user[own.user];
    }
    return std::move(parts_);
  }

 private:
  struct Own {
    Part* part = nullptr;
    std::optional<std::uint32_t> user{};
  };

  // A pid may be that of one process in the first samples, and that of another one, which lives, in
  // later ones.
  const Own& part_of(const report::Sample& sample) {
    const auto& thread = profile_.threads[sample.thread];
    const auto start = owners_.start_of(thread.pid, sample.time);
    auto& own = known_[{thread.pid, start.has_value()}];
    if (own.part == nullptr) {
      RecordedProcess process{.pid = thread.pid,
                              .name = thread.process.empty() ? thread.name : thread.process,
                              .lives = start.has_value()};
      own = {.part = &parts_[labels_of(process, start)],
             .user = owners_.user_of(thread.pid, sample.time)};
    }
    return own;
  }

  Labels labels_of(RecordedProcess& process, std::optional<std::uint64_t> start) const {
    auto labels = labels_(process);
    if (start) {
      // The process may have exited meanwhile, and another one may have its pid.
      const auto now = live_(process.pid);
      process.lives = now && now->started == *start;
      labels = process.lives ? std::move(labels) : labels_(process);
    }
    if (const auto version = versions_.find(process.pid); version != versions_.end()) {
      set_label(labels, "python_version", version->second);
    }
    return labels;
  }

  const Profile& profile_;
  const LabelSource& labels_;
  const LiveProcesses& live_;
  Owners owners_;
  Versions versions_;
  Parts parts_;
  std::map<std::pair<std::uint32_t, bool>, Own> known_;
};

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

std::vector<Series> series_of(const Profile& profile, const LabelSource& labels,
                              const LiveProcesses& live) {
  auto parts = Division{profile, labels, live}.take();
  const auto merged = merge_small(parts);
  std::vector<Series> all;
  all.reserve(parts.size());
  for (const auto& [own, part] : parts) {
    Selection selection{profile};  // one at a time: each is as large as the tables
    for (const auto number : part.samples) {
      selection.add(profile.samples[number]);
    }
    all.push_back({.labels = own,
                   .profile = selection.take(),
                   .sets = own == merged.labels ? merged.sets : 1});
  }
  return all;
}

}  // namespace pyinject::push
