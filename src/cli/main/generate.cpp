// Writes what is generated from the table of verbs: generate MANUAL COMPLETIONS DIRECTORY. MANUAL
// is perf-pyinject.1 with marks for the options, COMPLETIONS has the shells' files without their
// tables; options.json is for other programs.
#include "cli/completions.hpp"
#include "cli/manual.hpp"
#include "cli/options_json.hpp"
#include "cli/verbs.hpp"

#include <fmt/chrono.h>

#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
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

std::string read(const std::filesystem::path& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::string with_table(const std::filesystem::path& path, const std::string& table) {
  auto text = read(path);
  const auto mark = text.find(pyinject::cli::kTableMark);
  if (mark == std::string::npos) {
    throw std::runtime_error{path.string() + " has no line for the table"};
  }
  return text.replace(mark, pyinject::cli::kTableMark.size(), table);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: generate MANUAL COMPLETIONS DIRECTORY\n";
    return 2;
  }
  try {
    const std::filesystem::path source{argv[2]};
    const std::filesystem::path directory{argv[3]};
    const auto date = date_of_build();
    std::filesystem::remove_all(directory / "man1");
    write(directory / "man1" / "perf-pyinject.1",
          pyinject::cli::overall_manual_page(read(argv[1])));
    for (const auto* const verb : pyinject::cli::verbs()) {
      write(directory / "man1" / ("perf-pyinject-" + std::string{verb->name} + ".1"),
            pyinject::cli::manual_page(*verb, date));
    }
    write(directory / "options.json", pyinject::cli::options_json());
    write(directory / "bash" / "perf-pyinject",
          with_table(source / "perf-pyinject.bash", pyinject::cli::bash_table()));
    write(directory / "zsh" / "_perf-pyinject",
          with_table(source / "perf-pyinject.zsh", pyinject::cli::zsh_table()));
    write(directory / "fish" / "perf-pyinject.fish",
          with_table(source / "perf-pyinject.fish", pyinject::cli::fish_table()));
  } catch (const std::exception& error) {
    std::cerr << "generate: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
