// What a page of flame graphs holds.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace pyinject::test {

// The data of the page in file PATH. Throws if it has none.
[[nodiscard]] nlohmann::json data_of_page(const std::string& path);

}  // namespace pyinject::test
