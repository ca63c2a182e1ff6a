// An option of a verb. Its row stands once: parsing, --help, the manual page and the completions of
// the shells use it.
#pragma once

#include "pyinject/weave/weave_flags.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::cli {

// What shells offer after an option or a verb.
enum class Completed {
  kNothing,
  kUnknown,  // a value that a shell cannot know
  kWord,     // one of some words
  kList,     // some of them, with commas
  kPids,     // of Pythons, with commas
  kPerfPid,
  kUsers,
  kRecordings,
  kFiles,
  kDirectories,
  kCommand,  // after "--"
};

// Its line in --help. The manual page and the completions have all options.
enum class HelpLine { kOwn, kWithNext, kNone };

struct Option {
  std::string_view term;  // "-p, --pid LIST", "--children"
  std::string_view help{};
  Completed value = Completed::kUnknown;         // if it has one
  std::string_view brief{};                      // for completions, if not the beginning of HELP
  std::string_view words{};                      // "text json", of kWord and kList
  std::vector<std::string> (*list)() = nullptr;  // or these
  std::string_view heading{};  // above it; empty: it belongs to the group of the one before
  HelpLine line = HelpLine::kOwn;
  bool repeats = false;                     // all its values count
  std::string_view needs = {};              // long name of an option without which it is refused
  bool weave::WeaveFlags::*flag = nullptr;  // it sets this, and does nothing else

  [[nodiscard]] constexpr std::string_view long_name() const {
    const auto begin = term.find("--") + 2;
    return term.substr(begin, term.find(' ', begin) - begin);
  }
  // 0: none.
  [[nodiscard]] constexpr char short_name() const { return term[1] == '-' ? '\0' : term[1]; }
  [[nodiscard]] constexpr bool has_value() const {
    return term.find(' ', term.find("--")) != std::string_view::npos;
  }
  // "LIST"; empty: it has none.
  [[nodiscard]] constexpr std::string_view value_name() const {
    return has_value() ? term.substr(term.rfind(' ') + 1) : std::string_view{};
  }
  // The same option with another text.
  [[nodiscard]] constexpr Option with(std::string_view text) const {
    auto copy = *this;
    copy.help = text;
    return copy;
  }
};

// OPTION as the first one below HEADING.
constexpr Option under(std::string_view heading, Option option) {
  option.heading = heading;
  return option;
}

// OPTION on one line with the next one: "-q, -v  only warnings; more messages".
constexpr Option with_next(Option option) {
  option.line = HelpLine::kWithNext;
  return option;
}

constexpr Option not_in_help(Option option) {
  option.line = HelpLine::kNone;
  return option;
}

constexpr Option needing(std::string_view needed, Option option) {
  option.needs = needed;
  return option;
}

constexpr Option setting(bool weave::WeaveFlags::*flag, Option option) {
  option.flag = flag;
  return option;
}

constexpr Option repeated(Option option) {
  option.repeats = true;
  return option;
}

}  // namespace pyinject::cli
