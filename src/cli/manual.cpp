#include "cli/manual.hpp"

#include "base/text.hpp"
#include "cli/help.hpp"
#include "cli/help_items.hpp"

#include <fmt/format.h>

#include <cctype>
#include <utility>

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

}  // namespace

std::string manual_page(const VerbSpec& verb, std::string_view date) {
  ManualWriter writer{verb, date};
  for (const auto& part : help_parts(verb)) {
    writer.add(part);
  }
  return std::move(writer).finish();
}

}  // namespace pyinject::cli
