// What a recording knows about its files by itself: their build-ids, and the images with its names.
#pragma once

#include "perfdata/input.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "unwind/address_spaces.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace pyinject::weave {

class OwnFiles {
 public:
  // Throws SystemError if INPUT cannot be read.
  explicit OwnFiles(const perfdata::Input& input);

  // FILE with the build-id of the recording's list if its mapping has none.
  [[nodiscard]] unwind::MappedFile identified(unwind::MappedFile file) const;

  // The image with BUILD_ID; invalid: none, or no descriptor.
  [[nodiscard]] base::UniqueFd image(const std::string& build_id) const;

  // By build-id, in hexadecimal. An image is here only if that is proven (symbol_image.hpp).
  [[nodiscard]] const std::map<std::string, std::vector<std::byte>>& images() const {
    return images_;
  }

 private:
  std::map<std::string, std::string> build_ids_;  // by path
  std::map<std::string, std::vector<std::byte>> images_;
};

}  // namespace pyinject::weave
