// The source of functions, with the share of each line. Pure but for the reader of sources.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/events.hpp"
#include "report/selection.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pyinject::report {

struct SourceFile {
  std::vector<std::string> lines;  // empty: the file cannot be read
  std::string note{};              // why not, or what is doubtful about it; may be empty
  std::time_t changed = 0;         // when the file was changed last
};
// PID: a recorded process that has code of PATH.
using ReadSource = std::function<SourceFile(const std::string& path, std::uint32_t pid)>;

struct LineCounts {
  std::uint64_t self = 0;   // in the units of Table::weight
  std::uint64_t total = 0;  // each sample once
};

struct AnnotatedFunction {
  RowKey key;
  std::uint32_t pid = 0;                                     // a process that ran it
  std::vector<LineCounts> counts;                            // of all lines, by column
  std::map<std::uint32_t, std::vector<LineCounts>> lines{};  // with samples
  SourceFile source{};
  // The lines that its source has, as far as they say something: from its definition to the last
  // one with samples.
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct Annotation {
  std::vector<EventColumn> columns;  // as of EventTable, ALL in the units of Table::weight
  std::vector<AnnotatedFunction> functions;
};

// The functions named OPTIONS.function, else the MOST with the most samples of the first event
// (--sort). Empty: no function has a line.
[[nodiscard]] Annotation annotate(const Profile& profile, const ViewOptions& options,
                                  std::size_t most, const ReadSource& read);

}  // namespace pyinject::report
