#include "report/selection.hpp"

#include "base/source_path.hpp"
#include "report/names.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace pyinject::report {

namespace {

constexpr std::uint32_t kNoRow = 1;
constexpr std::uint32_t kFirstRow = 2;

template <typename Values, typename Value>
bool admits_value(const Values& wanted, const Value& value) {
  return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

struct SliceKey {
  std::uint32_t stack = 0;
  std::uint32_t event = 0;
  std::uint32_t thread = 0;
  sample::Does does = sample::Does::kUnknown;
  bool operator==(const SliceKey&) const = default;
};

struct SliceHash {
  std::size_t operator()(const SliceKey& key) const {
    constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
    const auto others =
        (std::uint64_t{key.event} << 32U | key.thread) * 4 + static_cast<std::uint64_t>(key.does);
    return (key.stack + others * kOdd) * kOdd >> 16U;
  }
};

bool is_import_system(std::string_view file) {
  return file.starts_with("<frozen importlib._bootstrap");  // and _bootstrap_external
}

// "json.decoder" for "/usr/lib/python3.14/json/decoder.py", "shop" for "/srv/shop.py".
std::string module_name(std::string_view file) {
  constexpr std::string_view kFrozen = "<frozen ";
  constexpr std::string_view kPackages = "-packages/";
  if (is_import_system(file)) {
    return "(import system)";
  }
  if (file.starts_with(kFrozen)) {
    return std::string{file.substr(kFrozen.size(), file.size() - kFrozen.size() - 1)};
  }
  auto path = base::short_path(file);
  if (const auto packages = file.rfind(kPackages); packages != std::string_view::npos) {
    path = file.substr(packages + kPackages.size());
  } else if (path == file) {
    path = file.substr(file.rfind('/') + 1);
  }
  for (const std::string_view ending : {".py", "/__init__"}) {
    path.remove_suffix(path.ends_with(ending) ? ending.size() : 0);
  }
  std::string name{path};
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

RowNames::RowNames(const Profile& profile, const ViewOptions& options, bool lines)
    : profile_{profile}, options_{options}, lines_{lines}, known_(profile.frames.size()) {}

bool RowNames::has_row(const Function& function) const {
  switch (options_.by) {
    case By::kPython:
      return function.kind == Kind::kPython;
    case By::kNative:
      return function.kind == Kind::kNative || function.kind == Kind::kKernel;
    case By::kMixed:
      return function.kind != Kind::kMark;
  }
  return false;
}

std::optional<std::uint32_t> RowNames::row_of(std::uint32_t frame) {
  auto& known = known_[frame];
  if (known == 0) {
    const auto& function = function_of(profile_, frame);
    known = kNoRow;
    if (has_row(function)) {
      RowKey key{.name = options_.view == View::kImports ? module_name(function.file)
                                                         : name_of(profile_, function),
                 .file = file_of(profile_, function),
                 .line = lines_ ? profile_.frames[frame].line : 0};
      const auto [entry, fresh] = rows_.try_emplace(key, static_cast<std::uint32_t>(keys_.size()));
      if (fresh) {
        keys_.push_back(std::move(key));
      }
      known = entry->second + kFirstRow;
    }
  }
  return known == kNoRow ? std::nullopt : std::optional{known - kFirstRow};
}

bool RowNames::is_mine(std::uint32_t frame) const {
  const auto& function = function_of(profile_, frame);
  const std::string_view directory = options_.mine;
  const std::string_view file = function.file;
  return function.kind == Kind::kPython && file.starts_with(directory) &&
         (file.size() == directory.size() || directory.ends_with('/') ||
          file[directory.size()] == '/');
}

Selection::Selection(const Profile& profile, const ViewOptions& options, bool lines)
    : profile_{profile},
      options_{options},
      first_{profile.samples.empty() ? 0 : profile.samples.front().time},
      names_{profile, options, lines},
      leaves_{profile} {
  if (!options.function.empty() && options.view != View::kAnnotate) {
    for (const auto& function : profile.functions) {
      asked_for_.push_back(name_of(profile, function) == options.function);
    }
  }
}

bool Selection::admits(const Sample& sample) const {
  const auto& thread = profile_.threads[sample.thread];
  const auto seconds = static_cast<double>(sample.time - first_) / 1e9;
  return admits_value(options_.pids, thread.pid) && admits_value(options_.tids, thread.tid) &&
         (options_.comm.empty() || thread.name == options_.comm) &&
         seconds >= options_.from.value_or(0) && (!options_.until || seconds < *options_.until);
}

// The modules whose code the stack executes because they are imported, by the frames of that code.
void Selection::choose_imports(StackFacts& facts) {
  std::optional<std::uint32_t> module;  // whose code runs, by whatever
  std::optional<std::uint32_t> system;
  for (const auto frame : facts.frames) {
    const auto& function = function_of(profile_, frame);
    if (function.kind != Kind::kPython) {
      continue;
    }
    if (is_import_system(function.file)) {
      system = frame;
      if (module) {
        facts.path.push_back(*names_.row_of(*std::exchange(module, std::nullopt)));
      }
    } else if (function.name == "<module>") {
      module = frame;
    }
  }
  if (facts.path.empty() && system) {  // it looks for the first module
    facts.path.push_back(*names_.row_of(*system));
  }
  if (!facts.path.empty()) {
    facts.self = facts.path.front();
  }
}

void Selection::choose_rows(StackFacts& facts) {
  bool mine = options_.mine.empty();
  for (const auto frame : facts.frames) {
    const auto row = names_.row_of(frame);
    if (!row) {
      continue;
    }
    mine = mine || names_.is_mine(frame);
    if (mine && !facts.self) {
      facts.self = row;
    }
    if (options_.view != View::kTree || options_.mine.empty() || names_.is_mine(frame)) {
      facts.path.push_back(*row);
    }
  }
}

StackFacts Selection::facts_of(std::uint32_t stack, sample::Does does) {
  StackFacts facts{.frames = frames_of(profile_, stack)};
  facts.leaf = facts.frames.empty() ? Leaf::kNative : leaves_.leaf_of(facts.frames, does);
  facts.marks = take_marks(profile_, facts.frames);
  facts.admitted = (options_.task.empty() || facts.marks.task_or_greenlet() == options_.task) &&
                   (asked_for_.empty() || std::ranges::any_of(facts.frames, [&](auto frame) {
                      return asked_for_[profile_.frames[frame].function];
                    }));
  if (facts.admitted) {
    options_.view == View::kImports ? choose_imports(facts) : choose_rows(facts);
    facts.all = facts.path;
    std::ranges::sort(facts.all);
    facts.all.erase(std::unique(facts.all.begin(), facts.all.end()), facts.all.end());
  }
  return facts;
}

std::vector<Slice> Selection::slices() const {
  std::unordered_map<SliceKey, std::uint32_t, SliceHash> numbers;
  std::vector<Slice> result;
  for (const auto& sample : profile_.samples) {
    if (!admits(sample)) {
      continue;
    }
    const auto [entry, fresh] = numbers.try_emplace(
        {sample.stack, sample.event, sample.thread, sample.does}, result.size());
    if (fresh) {
      result.push_back({.stack = sample.stack,
                        .event = sample.event,
                        .thread = sample.thread,
                        .does = sample.does});
    }
    auto& slice = result[entry->second];
    ++slice.samples;
    slice.weight += weight_of(profile_, sample);
    slice.period += sample.period;
  }
  std::ranges::stable_sort(result, {}, [](const Slice& slice) {
    return std::pair{slice.stack, slice.does};
  });
  return result;
}

void Selection::visit(const std::function<void(const Slice&, const StackFacts&)>& take) {
  std::optional<StackFacts> facts;
  std::pair<std::uint32_t, sample::Does> last;
  for (const auto& slice : slices()) {
    if (!facts || last != std::pair{slice.stack, slice.does}) {
      last = {slice.stack, slice.does};
      facts = facts_of(slice.stack, slice.does);
    }
    if (facts->admitted) {
      take(slice, *facts);
    }
  }
}

}  // namespace pyinject::report
