#include "inspect/frame_text.hpp"

#include "base/source_path.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace pyinject::inspect {

using base::printable;

std::string FrameText::place(std::string_view file, std::uint32_t line) const {
  return fmt::format("{}:{}", printable(options_.verbose ? file : base::short_path(file)),
                     line == 0 ? std::string{"?"} : std::to_string(line));
}

std::string FrameText::variables(const std::optional<python::Locals>& locals,
                                 std::string_view indent) const {
  if (!locals) {
    return process_.has_locals && process_.no_locals.empty()
               ? fmt::format("{}    ... its variables {}\n", indent,
                             process_.core ? "cannot be read from this core"
                                           : "changed while they were read")
               : "";
  }
  if (locals->late) {
    return fmt::format("{}    ... its variables were not read, for lack of time\n", indent);
  }
  std::string text;
  for (const auto& variable : locals->variables) {
    text +=
        fmt::format("{}    {}: {}\n", indent, printable(variable.name), printable(variable.value));
  }
  return locals->left_out == 0
             ? text
             : text + fmt::format("{}    ... {}\n", indent,
                                  base::counted(locals->left_out, "more variable"));
}

std::string FrameText::lines(const std::string& function, const std::string& file,
                             std::uint32_t line, const std::optional<python::Locals>& locals,
                             std::string_view indent) const {
  constexpr std::size_t kMostOfSource = 120;
  const auto at = place(file, line);
  auto text = fmt::format("{}{}  {}\n", indent, printable(function),
                          options_.color ? fmt::format("\033[2m{}\033[0m", at) : at);  // dim
  if (const auto source =
          options_.source_line && line != 0 ? options_.source_line(file, line) : std::string{};
      !source.empty()) {
    text += fmt::format("{}    {}\n", indent, printable(source, kMostOfSource));
  }
  return text + variables(locals, indent);
}

}  // namespace pyinject::inspect
