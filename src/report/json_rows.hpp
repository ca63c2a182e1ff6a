// What the JSON of all views has in common. Only for .cpp files of this directory.
#pragma once

#include "report/selection.hpp"
#include "report/text_parts.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace pyinject::report {

// {"version", "view", "tables": []}
[[nodiscard]] inline nlohmann::json json_of_view(View view) {
  return {{"version", 1}, {"view", name_of(view)}, {"tables", nlohmann::json::array()}};
}

[[nodiscard]] inline nlohmann::json json_of_key(const RowKey& key) {
  nlohmann::json json{{"name", key.name}};
  if (!key.file.empty()) {
    json["file"] = key.file;
  }
  if (key.line != 0) {
    json["line"] = key.line;
  }
  return json;
}

// Invalid UTF-8 is replaced.
[[nodiscard]] inline std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace pyinject::report
