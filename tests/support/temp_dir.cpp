#include "support/temp_dir.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>

namespace pyinject::test {

TempDir::TempDir() : TempDir{std::filesystem::temp_directory_path()} {}

TempDir::TempDir(const std::filesystem::path& parent) {
  auto name = (parent / "pyinject-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw base::SystemError{"cannot make a directory like " + name, errno};
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::file(std::string_view name, std::string_view content) const {
  auto path = *this / name;
  const base::UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (!fd.valid()) {
    throw base::SystemError{"cannot write " + path, errno};
  }
  base::write_all(fd.get(), content, path);
  return path;
}

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

}  // namespace pyinject::test
