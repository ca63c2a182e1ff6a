#include "record/kept_images.hpp"

#include "base/file.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/directory.hpp"
#include "pyinject/base/error.hpp"
#include "weave/build_id_cache.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include <unistd.h>

namespace pyinject::record {

namespace {

constexpr std::chrono::seconds kCacheAnswers{60};

std::string name_of(const weave::NamedImage& image) {
  return std::filesystem::path{image.path}.filename().string();
}

void write_image(const weave::NamedImage& image, const base::Directory& directory,
                 const struct stat& like) {
  const auto name = name_of(image);
  base::NewFile file{directory, name};
  base::write_all(
      file.fd(),
      {reinterpret_cast<const char*>(image.image.bytes.data()), image.image.bytes.size()},
      directory.path_of(name));
  file.resemble(like);
  file.take_place();
}

std::string temporary_path() {
  const char* const chosen = ::secure_getenv("TMPDIR");
  return chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
}

// Exists while perf copies its files into the cache.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : parent_{temporary_path()},
        name_{fmt::format("perf-pyinject.{:08x}", std::random_device{}())},
        directory_{parent_.make(name_, S_IRWXU, ::geteuid())} {}
  ~TemporaryDirectory() {
    try {
      parent_.remove_with_files(name_);
    } catch (const base::Error&) {  // empty or full: nothing more can be done
    }
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const base::Directory& directory() const { return directory_; }

 private:
  base::Directory parent_;
  std::string name_;
  base::Directory directory_;
};

// A directory that the readers of the file may enter.
mode_t mode_of_directory(mode_t file) {
  return S_IRWXU | (file & (S_IRGRP | S_IROTH)) | ((file & (S_IRGRP | S_IROTH)) >> 2U);
}

// While it exists, processes that are started grant others no more rights than LIKE does. perf
// creates directories with this umask; it links files or copies them with a mode of its own.
class OwnMask {
 public:
  explicit OwnMask(const struct stat& like)
      : before_{::umask(~mode_of_directory(like.st_mode) & 0777U)} {}
  ~OwnMask() { ::umask(before_); }
  OwnMask(const OwnMask&) = delete;
  OwnMask& operator=(const OwnMask&) = delete;

 private:
  mode_t before_;
};

}  // namespace

std::optional<std::string> put_into_cache(const KeptImages& kept) {
  try {
    const TemporaryDirectory temporary;
    const OwnMask mask{kept.like};
    for (const auto& image : kept.images) {
      write_image(image, temporary.directory(), kept.like);
      const auto path = temporary.directory().path_of(name_of(image));
      if (auto problem =
              weave::add_to_build_id_cache(kept.perf, path, base::Deadline::after(kCacheAnswers))) {
        return problem;
      }
    }
  } catch (const base::Error& error) {
    return error.what();
  }
  return std::nullopt;
}

void keep_images(const KeptImages& kept, base::Logger& logger) {
  if (kept.images.empty()) {
    return;
  }
  if (!kept.beside) {
    const auto problem = put_into_cache(kept);
    if (!problem) {
      return;
    }
    logger.warning("{}: the names are in {} instead, where perf report finds them", *problem,
                   base::printable(kept.folder));
  }
  const auto place = base::Place::of(kept.folder);
  const auto directory =
      place.directory.make(place.name, mode_of_directory(kept.like.st_mode), kept.like.st_uid);
  for (const auto& image : kept.images) {
    write_image(image, directory, kept.like);
  }
}

}  // namespace pyinject::record
