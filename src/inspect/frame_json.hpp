// The JSON of a stack's frame. `export -f jsonl` writes the same: kind, function, file, line.
#pragma once

#include "base/text.hpp"
#include "pyinject/python/objects.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::inspect {

[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json{} : nlohmann::ordered_json(base::printable(text));
}

// LINE: 0: unknown.
[[nodiscard]] inline nlohmann::ordered_json frame_json(const char* kind,
                                                       const std::string& function,
                                                       const std::string& file,
                                                       std::uint32_t line) {
  return {{"kind", kind},
          {"function", text_or_null(function)},
          {"file", text_or_null(file)},
          {"line", line == 0 ? nlohmann::ordered_json{} : nlohmann::ordered_json(line)}};
}

// Adds the variables to FRAME, if they were read.
inline void add_locals(nlohmann::ordered_json& frame, const std::optional<python::Locals>& locals) {
  if (!locals) {
    return;
  }
  if (locals->late) {
    frame["locals_late"] = true;
    return;
  }
  frame["locals"] = nlohmann::ordered_json::array();
  for (const auto& variable : locals->variables) {
    frame["locals"].push_back({{"name", base::printable(variable.name)},
                               {"value", base::printable(variable.value)},
                               {"argument", variable.argument}});
  }
  frame["locals_left_out"] = locals->left_out;
}

[[nodiscard]] inline nlohmann::ordered_json frames_json(
    const std::vector<python::AsyncFrame>& frames) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& frame : frames) {
    auto one = frame_json("python", frame.names.qualname, frame.names.file, frame.line);
    add_locals(one, frame.locals);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace pyinject::inspect
