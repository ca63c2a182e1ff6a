#include "record/kept_images.hpp"

#include "base/budget.hpp"
#include "base/file.hpp"
#include "base/format.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/directory.hpp"
#include "pyinject/base/error.hpp"
#include "weave/build_id_cache.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include <unistd.h>

namespace pyinject::record {

namespace {

constexpr std::chrono::seconds kCacheAnswers{60};
constexpr std::uint64_t kMostReplaced = std::uint64_t{256} << 20U;  // bytes of a recording

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

// Without what perf takes for a list, or for a name of its own.
std::string name_of_replaced(const std::string& path) {
  const auto name = path.substr(path.rfind('/') + 1);
  auto plain = name.substr(0, name.find(' '));
  std::erase(plain, ',');
  return plain.empty() ? "replaced" : plain;
}

void copy(const weave::ReplacedFile& replaced, const base::Directory& directory,
          const std::string& name, base::Allowance& allowance) {
  struct stat facts {};
  if (::fstat(replaced.file.get(), &facts) != 0) {
    throw base::SystemError{"cannot inspect it", errno};
  }
  if (!allowance.take(static_cast<std::uint64_t>(facts.st_size))) {
    throw base::Error{"the replaced files are too large"};
  }
  base::NewFile file{directory, name};
  std::vector<char> buffer(std::size_t{1} << 20U);
  for (off_t at = 0; at < facts.st_size;) {
    const auto got = ::pread(replaced.file.get(), buffer.data(), buffer.size(), at);
    if (got <= 0) {
      throw base::SystemError{"cannot read it", got == 0 ? EIO : errno};
    }
    base::write_all(file.fd(), {buffer.data(), static_cast<std::size_t>(got)},
                    directory.path_of(name));
    at += got;
  }
  file.take_place();
}

// Exists while perf copies its files into the cache.
class TemporaryDirectory {
 public:
  [[nodiscard]] const base::Directory& directory() const { return directory_; }

 private:
  base::ScratchDirectory scratch_{"."};
  base::Directory directory_{scratch_.path()};
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

void keep_replaced(const std::vector<weave::ReplacedFile>& files, const std::string& perf,
                   const struct stat& like, base::Logger& logger) {
  base::Allowance allowance{kMostReplaced};
  for (const auto& replaced : files) {
    std::optional<std::string> problem;
    try {
      if (perf.empty()) {
        throw base::Error{"there is no perf whose build-id cache could get them"};
      }
      const TemporaryDirectory temporary;
      const OwnMask mask{like};
      const auto name = name_of_replaced(replaced.path);
      copy(replaced, temporary.directory(), name, allowance);
      problem = weave::add_to_build_id_cache(perf, temporary.directory().path_of(name),
                                             base::Deadline::after(kCacheAnswers));
    } catch (const base::Error& error) {
      problem = error.what();
    }
    if (problem) {
      logger.warning("{}: its C functions have no names: {}", base::printable(replaced.path),
                     *problem);
    }
  }
}

void keep_images(const KeptImages& kept, base::Logger& logger) {
  if (kept.images.empty() || (!kept.beside && kept.perf.empty())) {
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
  std::optional<base::Directory> directory;
  try {
    directory.emplace(
        place.directory.make(place.name, mode_of_directory(kept.like.st_mode), kept.like.st_uid));
  } catch (const base::Error& error) {  // another user's, or a link: the recording has them, too
    logger.warning("{}: perf report will find no Python names; perf-pyinject report shows them",
                   error.what());
    return;
  }
  for (const auto& image : kept.images) {
    write_image(image, *directory, kept.like);
  }
}

}  // namespace pyinject::record
