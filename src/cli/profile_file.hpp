// A profile in a file whose name tells the format.
#pragma once

#include "cli/output_file.hpp"
#include "cli/profile_source.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/report/profile.hpp"

#include <string>
#include <utility>

namespace pyinject::cli {

class ProfileFile {
 public:
  // Throws CommandLineError if PATH, the value of -o, ends neither with ".html", a flame graph, nor
  // with the suffix of a format of `export`.
  static void require_suffix(const std::string& path);

  // Throws base::Error.
  explicit ProfileFile(std::string path) : path_{std::move(path)}, file_{path_} {}
  struct Head {
    std::string title;    // exports::FlamegraphOptions
    std::string lead{};   // likewise
    bool sources = true;  // whether the page has them
  };
  // The file appears when this returns, with what is missing of PROFILE, which was recorded just
  // now, among its notes. HEAD: of a page. Throws base::Error.
  void write(report::Profile profile, const Head& head, base::Logger& logger);

 private:
  std::string path_;
  OutputFile file_;
};

}  // namespace pyinject::cli
