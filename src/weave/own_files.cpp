#include "weave/own_files.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/weave/symbol_image.hpp"

#include <sys/mman.h>

namespace pyinject::weave {

OwnFiles::OwnFiles(const perfdata::Input& input) {
  for (const auto& one : input.features().build_ids()) {
    build_ids_[one.file] = base::hexadecimal(one.id);
  }
  for (auto& image : input.features().images()) {
    if (const auto id = proven_build_id(image); !id.empty()) {
      images_.emplace(base::hexadecimal(id), std::move(image));
    }
  }
}

unwind::MappedFile OwnFiles::identified(unwind::MappedFile file) const {
  if (const auto id = build_ids_.find(file.path); file.build_id.empty() && id != build_ids_.end()) {
    file.build_id = id->second;
  }
  return file;
}

base::UniqueFd OwnFiles::image(const std::string& build_id) const {
  const auto found = images_.find(build_id);
  base::UniqueFd file;
  if (found == images_.end()) {
    return file;
  }
  file = base::UniqueFd{::memfd_create("names", MFD_CLOEXEC)};
  try {
    if (file.valid()) {
      base::write_all(file.get(),
                      {reinterpret_cast<const char*>(found->second.data()), found->second.size()},
                      "names");
    }
  } catch (const base::SystemError&) {  // no memory
    file.reset();
  }
  return file;
}

}  // namespace pyinject::weave
