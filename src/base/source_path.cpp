#include "base/source_path.hpp"

namespace pyinject::base {

namespace {

constexpr std::string_view kLibrary = "/lib/python3.";

}  // namespace

bool is_standard_library(std::string_view file) {
  return file.starts_with("<frozen ") || (file.find(kLibrary) != std::string_view::npos &&
                                          file.find("/site-packages/") == std::string_view::npos &&
                                          file.find("/dist-packages/") == std::string_view::npos);
}

std::string_view short_path(std::string_view file) {
  const auto library = file.rfind(kLibrary);
  if (library == std::string_view::npos || !is_standard_library(file)) {
    return file;
  }
  const auto version = file.find('/', library + kLibrary.size());
  return version == std::string_view::npos ? file : file.substr(version + 1);
}

}  // namespace pyinject::base
