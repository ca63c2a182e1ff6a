// Stores the names of a recording: in perf's build-id cache or next to the file.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/weave/weave_summary.hpp"
#include "weave/weave.hpp"

#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace pyinject::record {

struct KeptImages {
  const std::vector<weave::NamedImage>& images;
  std::string folder;   // the directory of the images in the file's paths
  bool beside = false;  // in FOLDER, not in the cache
  std::string perf;     // owner of the cache; empty: there is none, the recording has the names
  struct stat like;     // the recorded file, which sets owner and mode
};

// Falls back to FOLDER, with a warning, if the cache or the temporary directory fails. If FOLDER
// cannot be used, warns that only the recording itself has the names. Throws base::Error.
void keep_images(const KeptImages& kept, base::Logger& logger);

// Adds FILES to the build-id cache of PERF, so that their C functions have names. LIKE: as above.
// Warns of what cannot be added.
void keep_replaced(const std::vector<weave::ReplacedFile>& files, const std::string& perf,
                   const struct stat& like, base::Logger& logger);

// Adds the images to the build-id cache of KEPT.perf, without that. nullopt: success, else why not.
[[nodiscard]] std::optional<std::string> put_into_cache(const KeptImages& kept);

}  // namespace pyinject::record
