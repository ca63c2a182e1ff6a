#include "export/json_text.hpp"

#include <nlohmann/json.hpp>

namespace pyinject::exports {

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pyinject::exports
