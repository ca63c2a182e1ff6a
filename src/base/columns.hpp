// Tables for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pyinject::base {

struct ColumnOptions {
  std::vector<std::size_t> right_aligned = {};  // numbers of columns
  std::size_t width = 0;  // of the terminal: the last column is cut to it; 0: it is not cut
};

// ROWS have the same number of cells, of valid UTF-8. Each column but the last is as wide as its
// widest cell.
[[nodiscard]] std::string to_columns(const std::vector<std::vector<std::string>>& rows,
                                     const ColumnOptions& options);

}  // namespace pyinject::base
