// Where the names of a recording are kept: perf's build-id cache, or next to the file.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/weave/weave_summary.hpp"

#include <string>
#include <vector>

#include <sys/stat.h>

namespace pyinject::session {

struct KeptImages {
  const std::vector<weave::NamedImage>& images;
  std::string folder;   // the directory by which the file names them
  bool beside = false;  // in FOLDER, not in the cache
  std::string perf;     // whose cache
  struct stat like;     // the file that gets them: they get its owner and mode
};

// In FOLDER also if the cache or the temporary directory fails, with a warning. Throws base::Error.
void keep_images(const KeptImages& kept, base::Logger& logger);

}  // namespace pyinject::session
