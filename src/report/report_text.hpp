// Tables of a profile for people and for programs.
#pragma once

#include "report/tables.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace pyinject::report {

struct TextOptions {
  View view = View::kFunctions;
  std::size_t most = 0;   // rows of each table; 0: all
  std::size_t width = 0;  // of the terminal; 0: unknown
};

// Names are made printable.
[[nodiscard]] std::string to_text(const std::vector<Table>& tables, const TextOptions& options);
// docs/report.md describes the fields. Invalid UTF-8 is replaced.
[[nodiscard]] std::string to_json(const std::vector<Table>& tables, const TextOptions& options);
// RFC 4180, with a line of names.
[[nodiscard]] std::string to_csv(const std::vector<Table>& tables, const TextOptions& options);

}  // namespace pyinject::report
