// A profile in a file whose name tells the format.
#pragma once

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
  // The file appears when this returns, with what is missing of PROFILE, which was recorded just
  // now, among its notes. TITLE, LEAD: of a page (exports::FlamegraphOptions). Throws base::Error.
  void write(report::Profile profile, const std::string& title, const std::string& lead,
             base::Logger& logger);

 private:
  std::string path_;
  OutputFile file_;
};

}  // namespace pyinject::cli
