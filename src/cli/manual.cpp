#include "cli/manual.hpp"

#include "base/text.hpp"
#include "cli/help.hpp"
#include "cli/help_items.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>
#include <vector>

namespace pyinject::cli {

namespace {

// TEXT, of one or more lines, for roff: groff replaces these characters by typographic ones.
std::string roff(std::string_view text) {
  std::string result;
  bool first = true;
  for (const char byte : text) {
    if (first && (byte == '.' || byte == '\'')) {
      result += "\\&";
    }
    first = byte == '\n';
    switch (byte) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += byte;
    }
  }
  return result;
}

// TEXT, of one line, in lines that the linters of manual pages accept.
std::string filled_roff(std::string_view text) {
  constexpr std::size_t kLongest = 78;
  std::string escaped;
  for (const auto word : base::split(text, ' ')) {
    escaped += roff(word) + ' ';
  }
  return filled({}, escaped, 0, kLongest);
}

std::string upper(std::string_view text) {
  std::string result{text};
  for (auto& byte : result) {
    byte = static_cast<char>(std::toupper(static_cast<unsigned char>(byte)));
  }
  return result;
}

std::string code(std::string_view lines) { return fmt::format(".EX\n{}.EE\n", roff(lines)); }

class ManualWriter {
 public:
  ManualWriter(const VerbSpec& verb, std::string_view date) {
    text_ = fmt::format(
        ".\\\" Generated from the verb's options and help text.\n"
        ".TH {} 1 {} perf\\-pyinject \"perf\\-pyinject manual\"\n"
        ".SH NAME\n{}\n",
        roff("PERF-PYINJECT-" + upper(verb.name)), date,
        filled_roff(fmt::format("perf-pyinject-{} - {}", verb.name, verb.summary)));
  }

  void add(const HelpPart& part) {
    switch (part.kind) {
      case HelpPart::Kind::kUsage:
        text_ += ".SH SYNOPSIS\n" + code(without_label(part.text)) + ".SH DESCRIPTION\n";
        fresh_ = true;
        return;
      case HelpPart::Kind::kHeading:
        add_heading(part.text);
        return;
      case HelpPart::Kind::kText:
        add_text(part.text);
        break;
      case HelpPart::Kind::kItem:
        text_ += fmt::format(".TP\n.B {}\n{}\n", quoted(part.term),
                             part.text.empty() ? "\\&" : filled_roff(part.text));
        break;
      case HelpPart::Kind::kCode:
        text_ += code(part.text);
        break;
    }
    fresh_ = false;
  }

  std::string finish() && {
    return std::move(text_) +
           ".SH SEE ALSO\n.BR perf\\-pyinject (1),\n.BR perf (1),\n.BR perf\\-record (1)\n";
  }

 private:
  static std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char byte : roff(text)) {
      result += byte == '"' ? "\\(dq" : std::string(1, byte);
    }
    return result + '"';
  }

  // "usage: A\n       B\n": without the label and its width.
  static std::string without_label(std::string_view usage) {
    std::string result;
    for (const auto line : base::split(usage, '\n')) {
      if (!line.empty()) {
        result += fmt::format("{}\n", line.substr(std::string_view{"usage: "}.size()));
      }
    }
    return result;
  }

  void add_heading(const std::string& heading) {
    const bool section = heading == "examples" || heading == "example";
    text_ += section ? std::string{".SH EXAMPLES\n"} : ".SS " + quoted(heading) + "\n";
    fresh_ = true;
  }

  void add_text(std::string_view text) {
    constexpr std::string_view kStatus = "exit status: ";
    if (text.starts_with(kStatus)) {
      text_ += ".SH EXIT STATUS\n";
      text.remove_prefix(kStatus.size());
    } else if (!fresh_) {
      text_ += ".PP\n";
    }
    text_ += filled_roff(text) + "\n";
  }

  std::string text_;
  bool fresh_ = true;  // directly below a heading
};

struct VerbOption {
  std::string_view verb;
  Option option;
};
using VerbOptions = std::vector<VerbOption>;

VerbOptions rows_of_verbs() {
  VerbOptions rows;
  for (const auto* const verb : verbs()) {
    for (const auto& option : options_of(*verb)) {
      rows.push_back({verb->name, option});
    }
  }
  return rows;
}

// Bold, and in italics what stands for a value.
std::string term_of(const Option& option) {
  const auto value = option.term.rfind(' ') + 1;
  return option.has_value() && std::isupper(static_cast<unsigned char>(option.term[value])) != 0
             ? fmt::format("{}\\fI{}\\fP", roff(option.term.substr(0, value)),
                           roff(option.term.substr(value)))
             : roff(option.term);
}

// WORDS: an option, and the verbs if the text is not about all that have it. Moves out of LEFT.
std::string option_item(std::string_view words, VerbOptions& left) {
  const auto parts = base::split(words, ' ');
  std::string term;
  std::vector<std::string_view> having;
  std::erase_if(left, [&](const VerbOption& row) {
    const bool meant =
        row.option.long_name() == parts.front() &&
        (parts.size() == 1 || std::find(parts.begin() + 1, parts.end(), row.verb) != parts.end());
    if (meant) {
      term = having.empty() ? term_of(row.option) : term;
      having.push_back(row.verb);
    }
    return meant;
  });
  if (having.empty() || (parts.size() != 1 && having.size() != parts.size() - 1)) {
    throw std::runtime_error{
        fmt::format("OPTION {}: no such option, of other verbs, or in an item above", words)};
  }
  return fmt::format(".TP\n.B \"{}\"\n", term) +
         (having.size() == verbs().size()
              ? "(all verbs)\n"
              : fmt::format(".RB ( {} )\n", fmt::join(having, " \", \" ")));
}

// Moves the options that only one verb has out of LEFT.
std::string other_options(const VerbOptions& all, VerbOptions& left) {
  const auto name = [](const VerbOption& row) { return row.option.long_name(); };
  std::string result;
  std::string_view verb;
  std::erase_if(left, [&](const VerbOption& row) {
    if (std::ranges::count(all, name(row), name) != 1) {
      return false;
    }
    if (row.verb != verb) {
      verb = row.verb;
      result += fmt::format(".TP\n.BR perf\\-pyinject\\-{} (1)\n", verb);
    }
    result += fmt::format(".B \\-\\-{}\n", roff(name(row)));
    return true;
  });
  return result;
}

}  // namespace

std::string manual_page(const VerbSpec& verb, std::string_view date) {
  ManualWriter writer{verb, date};
  for (const auto& part : help_parts(verb)) {
    writer.add(part);
  }
  return std::move(writer).finish();
}

std::string overall_manual_page(std::string_view text) {
  constexpr std::string_view kItem = ".\\\" OPTION ";
  constexpr std::string_view kOthers = ".\\\" OTHER OPTIONS";
  const auto all = rows_of_verbs();
  auto left = all;  // without an item
  std::string page;
  for (const auto line : base::split(base::trim(text), '\n')) {
    if (line.starts_with(kItem)) {
      page += option_item(line.substr(kItem.size()), left);
    } else {
      page += line == kOthers ? other_options(all, left) : fmt::format("{}\n", line);
    }
  }
  if (!left.empty()) {
    throw std::runtime_error{
        fmt::format("no item has --{} of {}", left.front().option.long_name(), left.front().verb)};
  }
  return page;
}

}  // namespace pyinject::cli
