// A report as text for people, and for programs. Pure.
#pragma once

#include "why/report.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace pyinject::why {

// Of the terminal that shows a report.
struct TextOptions {
  bool bold = false;     // it understands control sequences
  std::size_t rows = 0;  // 0: no terminal, or unknown
};

// The first line is the verdict; groups of threads with less work are left out of more than 40
// lines. More than fits on the screen ends with it again. Text from the
// process is made printable.
[[nodiscard]] std::string to_text(const Report& report, const TextOptions& options = {});
// One page for a ticket or a chat. WHERE: when and on which host.
[[nodiscard]] std::string to_markdown(const Report& report, std::string_view where);
// docs/why-json.md describes the format. Ends with a line feed.
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace pyinject::why
