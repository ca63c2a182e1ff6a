#include "cli/help_items.hpp"

#include "base/text.hpp"
#include "cli/verb_options.hpp"

#include <fmt/format.h>

#include <utility>

namespace pyinject::cli {

namespace {

using Kind = HelpPart::Kind;

class HelpParser {
 public:
  void add(std::string_view line) {
    const auto indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) {
      usage_ = false;
      ended_ = true;
      return;
    }
    if (usage_) {
      add_line(Kind::kUsage, line);
    } else if (indent == 0) {
      add_text(line);
    } else if (code_) {
      add_line(Kind::kCode, line.substr(indent));
    } else {
      add_indented(line, indent);
    }
    ended_ = false;
  }

  void add(const Option& option) {
    if (!option.heading.empty()) {
      parts_.push_back({Kind::kHeading, {}, std::string{option.heading}});
    }
    parts_.push_back({Kind::kItem, std::string{option.term}, std::string{option.help}});
  }

  std::vector<HelpPart> finish() && { return std::move(parts_); }

 private:
  void add_text(std::string_view line) {
    const bool heading = line.ends_with(':') && (ended_ || !continues(Kind::kText));
    if (heading) {
      code_ = line.starts_with("example");
      parts_.push_back({Kind::kHeading, {}, std::string{line.substr(0, line.size() - 1)}});
      return;
    }
    code_ = code_ && line.starts_with(' ');
    if (line.starts_with("example") && line.find(':') != std::string_view::npos) {
      parts_.push_back({Kind::kHeading, {}, std::string{line.substr(0, line.find(':'))}});
      code_ = true;
      return;
    }
    join(Kind::kText, line);
  }

  void add_indented(std::string_view line, std::size_t indent) {
    const auto words = line.substr(indent);
    if (indent > 2) {
      join(Kind::kItem, words);
      return;
    }
    const auto gap = words.find("  ");
    const auto text = gap == std::string_view::npos ? gap : words.find_first_not_of(' ', gap);
    if (text != std::string_view::npos) {
      parts_.push_back(
          {Kind::kItem, std::string{words.substr(0, gap)}, std::string{words.substr(text)}});
    } else {
      parts_.push_back({Kind::kItem, std::string{words}, {}});
    }
  }

  [[nodiscard]] bool continues(Kind kind) const {
    return !ended_ && !parts_.empty() && parts_.back().kind == kind;
  }

  void join(Kind kind, std::string_view words) {
    if (!continues(kind)) {
      parts_.push_back({kind, {}, {}});
    }
    auto& text = parts_.back().text;
    text += text.empty() ? "" : " ";
    text += words;
  }

  void add_line(Kind kind, std::string_view line) {
    if (parts_.empty() || parts_.back().kind != kind) {
      parts_.push_back({kind, {}, {}});
    }
    parts_.back().text += std::string{line} + "\n";
  }

  std::vector<HelpPart> parts_;
  bool usage_ = true;
  bool ended_ = true;  // the latest line was empty
  bool code_ = false;
};

}  // namespace

std::vector<HelpPart> help_parts(const VerbSpec& verb) {
  HelpParser parser;
  for (const auto line : base::split(verb.help, '\n')) {
    if (line == kOptionsMark) {
      for (const auto& option : options_of(verb)) {
        parser.add(option);
      }
    } else if (line == kChoicesMark) {
      for (const auto& [name, help] : verb.choices()) {
        parser.add(fmt::format("  {}  {}", name, help));
      }
    } else {
      parser.add(line);
    }
  }
  return std::move(parser).finish();
}

}  // namespace pyinject::cli
