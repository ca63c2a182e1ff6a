// Prints all figures as one Markdown document: bench_pyinject [--quick] [--runs N] [--only PART]
// [SECTION ...]
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace pyinject;  // NOLINT(google-build-using-namespace): a program's one file

struct Section {
  std::string name;
  void (*print)(const bench::Effort&);
};
const std::array kSections{Section{"pauses", bench::pauses},     Section{"rivals", bench::rivals},
                           Section{"speeds", bench::speeds},     Section{"calls", bench::calls},
                           Section{"engines", bench::engines},   Section{"tools", bench::tools},
                           Section{"watching", bench::watching}, Section{"growth", bench::growth}};

constexpr const char* kUsage =
    R"(usage: bench_pyinject [--quick] [--runs N] [--only PART] [SECTION ...]
  --quick      a few runs of everything: is it complete?
  --runs N     how many stops of each kind; 200
  --only PART  interpreters with PART in their name
  SECTION      pauses, rivals, speeds, calls, engines, tools, watching, growth; all
)";

// Only a few runs of each measurement.
bench::Effort quick() {
  using std::chrono::milliseconds;
  return {.runs = 1,
          .slow_runs = 1,
          .toggles = 20,
          .rounds = 2,
          .window = milliseconds{20},
          .threads = {1, 4},
          .only = ""};
}

// Returns false if a part could not be measured. The other sections are still printed.
bool print(const Section& section, const bench::Effort& effort) {
  try {
    section.print(effort);
    return true;
  } catch (const base::Error& error) {
    fmt::print(stderr, "bench_pyinject: {}: {}\n", section.name, error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments{argv + 1, argv + argc};
    bench::Effort effort =
        std::ranges::count(arguments, "--quick") != 0 ? quick() : bench::Effort{};
    std::vector<std::string> asked;
    for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
      const bool known = std::ranges::any_of(
          kSections, [&](const auto& section) { return section.name == *argument; });
      if (*argument == "--only" && argument + 1 != arguments.end()) {
        effort.only = *++argument;
      } else if (*argument == "--runs" && argument + 1 != arguments.end()) {
        effort.runs = std::max<std::size_t>(
            base::parse_number<std::size_t>(*++argument).value_or(effort.runs), 1);
      } else if (known) {
        asked.push_back(*argument);
      } else if (*argument != "--quick") {
        (void)std::fputs(kUsage, stderr);
        return 2;
      }
    }
    // Writing to a rival's target that has exited must be an error that is counted.
    (void)std::signal(SIGPIPE, SIG_IGN);
    bench::leave_one_processor();
    bench::print_machine();
    bench::print_load("Begin");
    bool complete = true;
    for (const auto& section : kSections) {
      if (asked.empty() || std::ranges::count(asked, section.name) != 0) {
        complete = print(section, effort) && complete;
      }
    }
    return complete ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_pyinject: {}\n", error.what());
    return 1;
  }
}
