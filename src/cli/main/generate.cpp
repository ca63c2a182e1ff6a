// Writes what is generated from the table of verbs: generate DIRECTORY.
#include "cli/manual.hpp"
#include "cli/verbs.hpp"

#include <fmt/chrono.h>

#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file{path};
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file << text;
  file.close();
}

// Reproducible if SOURCE_DATE_EPOCH is set.
std::string date_of_build() {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t now = epoch == nullptr ? std::time(nullptr) : std::stoll(epoch);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: generate DIRECTORY\n";
    return 2;
  }
  try {
    const std::filesystem::path directory{argv[1]};
    const auto date = date_of_build();
    std::filesystem::remove_all(directory / "man1");
    for (const auto* const verb : pyinject::cli::verbs()) {
      write(directory / "man1" / ("perf-pyinject-" + std::string{verb->name} + ".1"),
            pyinject::cli::manual_page(*verb, date));
    }
  } catch (const std::exception& error) {
    std::cerr << "generate: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
