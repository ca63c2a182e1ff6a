#include "report/annotation.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace pyinject::report {

namespace {

using Place = std::pair<std::string, std::string>;  // name, file

void add(LineCounts& counts, std::uint64_t self, std::uint64_t total) {
  counts.self += self;
  counts.total += total;
}

// "add" of "Cart.add.<locals>.<lambda>"; empty: of a module or a comprehension.
std::string defined_name(std::string_view name) {
  const auto last = name.substr(name.rfind('.') + 1);
  return last.starts_with('<') ? "" : std::string{last};
}

bool defines(std::string_view line, const std::string& name) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  for (const std::string_view word : {"def ", "async def ", "class "}) {
    if (line.starts_with(word)) {
      line.remove_prefix(word.size());
      return line.starts_with(name) && line.size() > name.size() &&
             std::string_view{"([: "}.find(line[name.size()]) != std::string_view::npos;
    }
  }
  return false;
}

// The line of the definition of NAME, if it is near above LINE.
std::optional<std::uint32_t> definition_of(const SourceFile& source, const std::string& name,
                                           std::uint32_t line) {
  constexpr std::uint32_t kMostLines = 1000;
  if (name.empty() || line > source.lines.size()) {
    return std::nullopt;
  }
  for (auto at = line; at > 0 && line - at < kMostLines; --at) {
    if (defines(source.lines[at - 1], name)) {
      return at;
    }
  }
  return std::nullopt;
}

void add_source(AnnotatedFunction& function, const ReadSource& read) {
  constexpr std::uint32_t kContext = 2;
  function.source = read(function.key.file, function.pid);
  const auto first = function.lines.begin()->first;
  const auto last = function.lines.rbegin()->first;
  const auto size = static_cast<std::uint32_t>(function.source.lines.size());
  function.first = definition_of(function.source, defined_name(function.key.name), first)
                       .value_or(first > kContext ? first - kContext : 1);
  function.last = std::max(last, std::min(last + kContext, size));
}

class Annotator {
 public:
  Annotator(const Profile& profile, const ViewOptions& options)
      : profile_{profile}, options_{options}, selection_{profile, options, true} {}

  [[nodiscard]] Annotation make(std::size_t most);

 private:
  void add_slice(const Slice& slice, const StackFacts& facts, std::size_t column);
  AnnotatedFunction& function_of_row(std::uint32_t row, std::uint32_t thread);
  LineCounts& line_of_row(std::uint32_t row, const Slice& slice, std::size_t column);

  const Profile& profile_;
  const ViewOptions& options_;
  Selection selection_;
  Annotation result_;
  std::map<Place, AnnotatedFunction> functions_;
};

AnnotatedFunction& Annotator::function_of_row(std::uint32_t row, std::uint32_t thread) {
  const auto& key = selection_.key(row);
  auto& function = functions_[{key.name, key.file}];
  if (function.counts.empty()) {
    function.key = {.name = key.name, .file = key.file};
    function.pid = profile_.threads[thread].pid;
    function.counts.resize(result_.columns.size());
  }
  return function;
}

LineCounts& Annotator::line_of_row(std::uint32_t row, const Slice& slice, std::size_t column) {
  auto& counts = function_of_row(row, slice.thread).lines[selection_.key(row).line];
  counts.resize(result_.columns.size());
  return counts[column];
}

void Annotator::add_slice(const Slice& slice, const StackFacts& facts, std::size_t column) {
  result_.columns[column].all += slice.weight;
  std::vector<AnnotatedFunction*> seen;  // a function of which several lines are in the stack
  for (const auto row : facts.all) {
    if (selection_.key(row).line == 0) {
      continue;
    }
    line_of_row(row, slice, column).total += slice.weight;
    auto& function = function_of_row(row, slice.thread);
    if (std::ranges::find(seen, &function) == seen.end()) {
      seen.push_back(&function);
      function.counts[column].total += slice.weight;
    }
  }
  if (facts.self && selection_.key(*facts.self).line != 0) {
    line_of_row(*facts.self, slice, column).self += slice.weight;
    add(function_of_row(*facts.self, slice.thread).counts[column], slice.weight, 0);
  }
}

Annotation Annotator::make(std::size_t most) {
  const auto events = make_events(profile_, options_);
  std::map<std::string, std::size_t> numbers;
  for (const auto& column : events.columns) {
    numbers[column.event] = result_.columns.size();
    result_.columns.push_back({.event = column.event, .unit = column.unit});
  }
  selection_.visit([&](const Slice& slice, const StackFacts& facts) {
    add_slice(slice, facts, numbers.at(profile_.events[slice.event].name));
  });
  for (auto& [place, function] : functions_) {
    if (options_.function.empty() || place.first == options_.function) {
      result_.functions.push_back(std::move(function));
    }
  }
  std::ranges::stable_sort(result_.functions, [this](const auto& left, const auto& right) {
    const auto& l = left.counts.front();
    const auto& r = right.counts.front();
    return options_.by_total ? l.total > r.total
                             : std::pair{l.self, l.total} > std::pair{r.self, r.total};
  });
  if (!options_.function.empty()) {
    return std::move(result_);
  }
  auto& functions = result_.functions;
  if (!options_.by_total && !functions.empty()) {
    // Functions that only call others have nothing to show next to their lines.
    functions.erase(std::remove_if(functions.begin() + 1, functions.end(),
                                   [](const AnnotatedFunction& function) {
                                     return std::ranges::all_of(
                                         function.counts,
                                         [](const LineCounts& counts) { return counts.self == 0; });
                                   }),
                    functions.end());
  }
  functions.resize(std::min(functions.size(), most));
  return std::move(result_);
}

}  // namespace

Annotation annotate(const Profile& profile, const ViewOptions& options, std::size_t most,
                    const ReadSource& read) {
  auto result = Annotator{profile, options}.make(most);
  for (auto& function : result.functions) {
    add_source(function, read);
  }
  return result;
}

}  // namespace pyinject::report
