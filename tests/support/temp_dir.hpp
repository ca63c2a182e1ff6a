// A folder of the test's own, removed with all it holds.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pyinject::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return (path_ / name).string();
  }
  // Writes the file NAME and returns its path.
  [[nodiscard]] std::string file(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

// Of the file PATH, all; empty when it cannot be read.
[[nodiscard]] std::string contents_of(const std::string& path);

}  // namespace pyinject::test
