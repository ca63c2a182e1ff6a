// A folder of its own for one test, removed with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace pyinject::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pyinject-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name = {}) const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  // Returns its path.
  std::string write(const std::string& name, const std::string& text, bool executable = false) {
    std::ofstream{path(name)} << text;
    if (executable) {
      std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
    }
    return path(name);
  }

 private:
  std::string path_;
};

}  // namespace pyinject::test
