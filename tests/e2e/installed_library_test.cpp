// The library as other projects use it: from its installation prefix, without this source tree.
#include "base/text.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/error.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

namespace pyinject::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kBuilds{300};

// One installation, which no test changes.
class InstalledLibrary : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    installed_.emplace();
    execute({"cmake", "--install", build_dir(), "--prefix", prefix()});
  }
  static void TearDownTestSuite() { installed_.reset(); }

  static RunResult execute(const std::vector<std::string>& argv, const ChildOptions& options = {}) {
    auto result = run(argv, {.child = options, .input = {}, .deadline = kBuilds});
    EXPECT_EQ(result.status, ExitStatus{}) << testing::PrintToString(argv) << "\n"
                                           << result.out << result.err;
    return result;
  }

  [[nodiscard]] static std::string prefix() { return *installed_ / "prefix"; }
  [[nodiscard]] std::string in_directory(const std::string& name) const {
    return directory_ / name;
  }
  [[nodiscard]] static std::string directory_of(const std::string& name) {
    for (const auto& file : std::filesystem::recursive_directory_iterator{prefix()}) {
      if (file.path().filename() == name) {
        return file.path().parent_path();
      }
    }
    throw base::Error{name + " was not installed"};
  }
  // With pkg-config's path to the package.
  [[nodiscard]] static ChildOptions with_package() {
    ChildOptions environment;
    environment.env["PKG_CONFIG_PATH"] = directory_of("pyinject.pc");
    return environment;
  }
  [[nodiscard]] static std::string library_flags() {
    const auto told =
        execute({"pkg-config", "--cflags", "--libs", "--static", "pyinject"}, with_package());
    return std::string{base::trim(told.out)};
  }
  // pyinject/python/reason.hpp ...
  [[nodiscard]] static std::vector<std::string> headers() {
    const std::filesystem::path include = prefix() + "/include";
    std::vector<std::string> found;
    for (const auto& file : std::filesystem::recursive_directory_iterator{include}) {
      if (file.is_regular_file()) {
        found.push_back(file.path().lexically_relative(include));
      }
    }
    return found;
  }

 private:
  static inline std::optional<TempDir> installed_;
  TempDir directory_;
};

// Some seconds of processor time each: a run for a change compiles one part of them.
constexpr std::size_t kParts = 6;
class InstalledHeaders : public InstalledLibrary,
                         public testing::WithParamInterface<std::size_t> {};

TEST_P(InstalledHeaders, CompileAlone) {
  auto all = headers();
  ASSERT_THAT(all, Contains("pyinject/targets/manager.hpp"));
  std::ranges::sort(all);
  std::size_t index = 0;
  std::erase_if(all, [&](const std::string& /*header*/) { return index++ % kParts != GetParam(); });
  ASSERT_GT(all.size(), 2U);
  const std::string refers = in_directory("refers_to_its_version.cpp");
  std::ofstream{refers} << "#ifndef PYINJECT_VERSION_SYMBOL\n#error no version.hpp\n#endif\n";
  std::string program = "printf '%s\\n' \"$@\" | xargs -P 2 -I @ ";
  program += "g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I " + prefix() +
             "/include -include @ " + refers;
  std::vector<std::string> argv{"sh", "-c", program, "sh"};
  argv.insert(argv.end(), all.begin(), all.end());
  execute(argv);
}

INSTANTIATE_TEST_SUITE_P(Cases, InstalledHeaders, testing::Range(std::size_t{0}, kParts),
                         [](const auto& each) { return "part_" + std::to_string(each.param); });

// The indented lines below "For example:" in HEADER.
std::string example_of(const std::string& header) {
  std::ifstream text{header};
  std::string example;
  bool in_example = false;
  for (std::string line; std::getline(text, line) && line != "#pragma once";) {
    if (in_example) {
      example += line.substr(std::min<std::size_t>(line.size(), 2)) + "\n";
    }
    in_example = in_example || line == "// For example:";
  }
  return example;
}

// They take for granted what most programs have: processes, a logger, a profile.
TEST_F(InstalledLibrary, HeadersHaveExamplesThatCompile) {
  constexpr auto kNames = R"(
#include "pyinject/fake/detector.hpp"
#include "pyinject/fake/injector.hpp"
#include "pyinject/fake/logger.hpp"
#include "pyinject/fake/manager.hpp"
#include "pyinject/fake/process_watch.hpp"
#include "pyinject/pyinject.hpp"
#include <algorithm>
#include <fstream>
#include <iostream>
#include <thread>
#include <fcntl.h>
#include <poll.h>
using namespace pyinject;
struct Names {
  base::Pid pid;
  const python::Target& target;
  python::Detector& detector;
  python::Injector& injector;
  targets::Manager& manager;
  base::Logger& logger;
  const report::Profile& profile;
};
)";
  std::string program = kNames;
  std::size_t number = 0;
  for (const auto& header : headers()) {
    const auto example = example_of(prefix() + "/include/" + header);
    if (header == "pyinject/version.hpp") {
      continue;
    }
    EXPECT_FALSE(example.empty()) << header;
    program += fmt::format("// {}\n", header) +
               (example.find("int main()") != std::string::npos
                    ? example
                    : fmt::format("struct Example{} : Names {{ void run(); }};\n"
                                  "void Example{}::run() {{\n{}}}\n",
                                  number, number, example));
    ++number;
  }
  const auto source = in_directory("examples.cpp");
  std::ofstream{source} << program;
  execute({"g++", "-std=c++20", "-fsyntax-only", "-I", prefix() + "/include", source});
}

TEST_F(InstalledLibrary, HeadersIncludeNothingForeign) {
  const std::regex include{R"re(\s*#\s*include\s*([<"])([^>"]+)[>"])re"};
  const std::set<std::string> of_the_system{"sys/stat.h", "sys/types.h", "unistd.h"};
  const auto all = headers();
  for (const auto& header : all) {
    std::ifstream text{prefix() + "/include/" + header};
    for (std::string line; std::getline(text, line);) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) {
        continue;
      }
      if (match[1] == "\"") {
        EXPECT_THAT(all, Contains(match[2])) << header << ": not installed";
      } else {
        const std::string name = match[2];
        EXPECT_TRUE(name.find_first_of("/.") == std::string::npos || of_the_system.contains(name))
            << header << " includes <" << name << ">";
      }
    }
  }
}

TEST_F(InstalledLibrary, BuildsAndRunsItsExamplesByFindPackage) {
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  const std::string build = in_directory("build");
  execute({"cmake", "-S", source_dir() + "/examples", "-B", build, "-G", "Ninja",
           "-DCMAKE_PREFIX_PATH=" + prefix()});
  execute({"cmake", "--build", build, "--target", "continuous_profiler", "dump_process",
           "profile_to_pprof"});

  ServedTree target{*python};
  EXPECT_THAT(execute({build + "/dump_process", target.pid()}).out, HasSubstr("\n    <module>  "));
  EXPECT_THAT(execute({build + "/profile_to_pprof", target.pid(), "2", "folded"}).out,
              HasSubstr(";py::serve:"));
  // The profiler prints the target's state every second while its command runs.
  ChildProcess profiler{{build + "/continuous_profiler", "1", target.pid(), tool(), "status",
                         "--json", "-p", target.pid()}};
  std::string seen;
  for (int cycles = 0; cycles < 2;) {
    const auto line = profiler.read_line(base::Deadline::after(kPatience));
    ASSERT_TRUE(line.has_value()) << seen << profiler.err();
    seen += *line + "\n";
    cycles += line->starts_with("1 process recorded") ? 1 : 0;
  }
  target.serve(10);
  profiler.signal(SIGTERM);
  EXPECT_EQ(profiler.wait(base::Deadline::after(kPatience)), ExitStatus{}) << profiler.err();
  EXPECT_THAT(seen, HasSubstr("\"trampoline\": \"on by us\""));
  EXPECT_THAT(seen, HasSubstr("1 process recorded\n"));
  EXPECT_THAT(profiler.err(), IsEmpty());
  EXPECT_EQ(trampoline_of(target.pid()), "off");
  target.serve(10);
}

// It would crash, or worse, where a class has changed.
TEST_F(InstalledLibrary, DoesNotLinkWithHeadersOfAnotherVersion) {
  const auto include = in_directory("include");
  std::filesystem::copy(prefix() + "/include", include, std::filesystem::copy_options::recursive);
  execute(
      {"sed", "-i", "s/compiled_for_version_/&of_this_test_/", include + "/pyinject/version.hpp"});
  const auto source = in_directory("main.cpp");
  std::ofstream{source} << "#include \"pyinject/base/pid.hpp\"\nint main() {}\n";
  const auto compile = [&](const std::string& headers) {
    return run({"sh", "-c",
                "g++ -std=c++20 -I " + headers + " " + source + " -o " + in_directory("program") +
                    " " + library_flags()},
               {.child = {}, .input = {}, .deadline = kBuilds});
  };
  const auto right = compile(prefix() + "/include");
  EXPECT_EQ(right.status, ExitStatus{}) << right.err;
  const auto wrong = compile(include);
  EXPECT_NE(wrong.status, ExitStatus{});
  EXPECT_THAT(wrong.err, HasSubstr("compiled_for_version_of_this_test_"));
}

TEST_F(InstalledLibrary, BuildsAndRunsListProcessesByPkgConfig) {
  const auto python = plain_interpreter(15);
  if (!python) {
    GTEST_SKIP() << "no CPython 3.15 (scripts/pythons)";
  }
  const auto environment = with_package();
  EXPECT_THAT(
      execute({tool(), "--version"}).out,
      testing::StartsWith("perf-pyinject " +
                          execute({"pkg-config", "--modversion", "pyinject"}, environment).out));
  const std::string program = in_directory("list_processes");
  execute({"sh", "-c",
           "g++ -std=c++20 " + source_dir() + "/examples/list_processes.cpp -o " + program + " " +
               library_flags()});
  ServedTree target{*python};
  EXPECT_THAT(execute({program, target.pid()}).out, HasSubstr("ready"));
}

}  // namespace
}  // namespace pyinject::test
