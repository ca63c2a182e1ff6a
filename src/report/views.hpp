// A view of a profile as text, for people or for programs.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/annotation.hpp"
#include "report/call_tree.hpp"
#include "report/report_text.hpp"
#include "report/view_options.hpp"
#include "report/waits.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::report {

enum class Format : std::uint8_t { kText, kJson, kCsv };

struct ShowOptions {
  ViewOptions view{};
  TextOptions text{};
  Format format = Format::kText;
  double least = 1;          // percent, kTree
  ReadSource read_source{};  // kAnnotate
};

// Nothing is left to show, and why.
struct NothingToShow {
  std::string why;
};

// Whether some frame has a line: record --lines.
[[nodiscard]] bool has_lines(const Profile& profile);

[[nodiscard]] std::variant<std::string, NothingToShow> show(const Profile& profile,
                                                            const ShowOptions& options);

// What NOW has more and less than BEFORE, of a view of functions.
[[nodiscard]] std::variant<std::string, NothingToShow> show_difference(const Profile& before,
                                                                       const Profile& now,
                                                                       const ShowOptions& options);

[[nodiscard]] std::string to_text(const std::vector<Tree>& trees, const TextOptions& options);
[[nodiscard]] std::string to_json(const std::vector<Tree>& trees);
[[nodiscard]] std::string to_csv(const std::vector<Tree>& trees);

[[nodiscard]] std::string to_text(const WaitTable& waits, const TextOptions& options);
[[nodiscard]] std::string to_json(const WaitTable& waits, const TextOptions& options);
[[nodiscard]] std::string to_csv(const WaitTable& waits, const TextOptions& options);

[[nodiscard]] std::string to_text(const EventTable& events, const TextOptions& options);
[[nodiscard]] std::string to_json(const EventTable& events, const TextOptions& options);
[[nodiscard]] std::string to_csv(const EventTable& events, const TextOptions& options);

[[nodiscard]] std::string to_text(const Annotation& annotation, const TextOptions& options);
[[nodiscard]] std::string to_json(const Annotation& annotation);
[[nodiscard]] std::string to_csv(const Annotation& annotation);

}  // namespace pyinject::report
