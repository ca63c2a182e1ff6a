// A temporary directory for a test, removed with its contents.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pyinject::test {

class TempDir {
 public:
  TempDir();  // in TMPDIR, by default /tmp
  explicit TempDir(const std::filesystem::path& parent);
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

// The contents of the file PATH; empty if it cannot be read.
[[nodiscard]] std::string contents_of(const std::string& path);

}  // namespace pyinject::test
