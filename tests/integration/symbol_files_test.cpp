// Names of C functions of a stripped library, from each place that may have its symbols.
#include "weave/symbol_files.hpp"

#include "elf/function_names.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fcntl.h>

namespace pyinject::weave {
namespace {

using std::chrono_literals::operator""ms;
using test::ChildProcess;
using test::run;

base::UniqueFd open_file(const std::string& path) {
  return base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
}

// A library, and a file for its build-id, as /usr/lib/debug has them.
class TwoFiles : public unwind::FileFinder {
 public:
  TwoFiles(std::string library, std::string by_build_id)
      : library_{std::move(library)}, by_build_id_{std::move(by_build_id)} {}
  [[nodiscard]] std::vector<base::UniqueFd> candidates(const unwind::MappedFile& file) override {
    std::vector<base::UniqueFd> found;
    found.push_back(open_file(library_));
    if (!file.build_id.empty() && !by_build_id_.empty()) {
      found.push_back(open_file(by_build_id_));
    }
    return found;
  }

 private:
  std::string library_;
  std::string by_build_id_;
};

// A stripped library with an exported and a hidden function, and the symbols of both apart from it.
class SymbolsElsewhere : public testing::Test {
 protected:
  void SetUp() override {
    const auto source = directory_.file("library.c", R"(
__attribute__((noinline)) static int hidden(int n) { return n * n + 1; }
int shown(int n) { return hidden(n) + hidden(n + 1); }
)");
    do_run({"gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", whole(), source});
    do_run({"objcopy", "--only-keep-debug", whole(), apart()});
    do_run({"objcopy", "--strip-all", whole(), stripped()});
    auto read = elf::ElfFile::open(open_file(whole()));
    auto* const elf = std::get_if<elf::ElfFile>(&read);
    ASSERT_NE(elf, nullptr);
    for (const auto& [name, symbol] :
         elf->find_symbols(std::array<std::string_view, 2>{"hidden", "shown"})) {
      (name == "shown" ? shown_ : hidden_) = symbol.address;
    }
    build_id_ = elf->build_id().value_or("");
    ASSERT_FALSE(build_id_.empty());
  }
  static void do_run(const std::vector<std::string>& words) {
    const auto result = run(words);
    ASSERT_EQ(result.status, test::ExitStatus{}) << result.err;
  }
  [[nodiscard]] std::string whole() const { return directory_ / "whole.so"; }
  [[nodiscard]] std::string apart() const { return directory_ / "apart.debug"; }
  [[nodiscard]] std::string stripped() const { return directory_ / "stripped.so"; }
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }

  // The names of the two functions in what SYMBOLS opens for the library.
  [[nodiscard]] std::vector<std::string> names(const SymbolFiles& symbols) const {
    const auto elf = symbols.open_symbols({.path = "/usr/lib/library.so"});
    return elf ? elf::function_names(*elf, std::array{hidden_, shown_})
               : std::vector<std::string>{"no file"};
  }

 private:
  test::TempDir directory_;
  base::ElfAddress hidden_;
  base::ElfAddress shown_;
  std::string build_id_;
};

TEST_F(SymbolsElsewhere, AreMissingInAStrippedFile) {
  TwoFiles files{stripped(), ""};
  EXPECT_THAT(names(SymbolFiles{files}), testing::ElementsAre("", "shown"));
}

TEST_F(SymbolsElsewhere, AreFoundInASeparateFile) {
  TwoFiles files{stripped(), apart()};
  EXPECT_THAT(names(SymbolFiles{files}), testing::ElementsAre("hidden", "shown"));
}

// As Fedora's packages are built.
TEST_F(SymbolsElsewhere, AreFoundInCompressedSectionsOfTheFile) {
  const auto table = directory() / "table";
  do_run({"objcopy", "--strip-all", "--keep-symbol=hidden", apart(), table});
  do_run({"xz", "--keep", table});
  do_run({"objcopy", "--add-section", ".gnu_debugdata=" + table + ".xz", stripped()});
  TwoFiles files{stripped(), ""};
  EXPECT_THAT(names(SymbolFiles{files}), testing::ElementsAre("hidden", "shown"));
}

TEST_F(SymbolsElsewhere, AreMissingIfTheSectionIsDamaged) {
  const auto table = directory().file("table",
                                      "\xFD"
                                      "7zXZ, but no more");
  do_run({"objcopy", "--add-section", ".gnu_debugdata=" + table, stripped()});
  TwoFiles files{stripped(), ""};
  EXPECT_THAT(names(SymbolFiles{files}), testing::ElementsAre("", "shown"));
}

class SymbolsOfServers : public SymbolsElsewhere {
 protected:
  void SetUp() override {
    if (!DebugServers::usable()) {
      GTEST_SKIP() << "no libdebuginfod";
    }
    SymbolsElsewhere::SetUp();
    ::setenv("DEBUGINFOD_CACHE_PATH", (directory() / "cache").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("DEBUGINFOD_URLS"); }
};

TEST_F(SymbolsOfServers, AreFoundByBuildId) {
  const auto place = directory().path() / "served" / "buildid" / build_id();
  std::filesystem::create_directories(place);
  std::filesystem::copy_file(apart(), place / "debuginfo");
  ChildProcess server{{"python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory",
                       directory() / "served", "0"}};
  const auto line = server.read_line(base::Deadline::after(test::kPatience));
  ASSERT_TRUE(line.has_value()) << server.err();
  constexpr std::string_view kBefore =
      " port ";  // "Serving HTTP on 127.0.0.1 port 41234 (...) ..."
  const auto port = line->substr(line->find(kBefore) + kBefore.size());
  ::setenv("DEBUGINFOD_URLS", ("http://127.0.0.1:" + port.substr(0, port.find(' '))).c_str(), 1);
  TwoFiles files{stripped(), ""};
  DebugServers servers;
  EXPECT_THAT(names(SymbolFiles{files, &servers}), testing::ElementsAre("hidden", "shown"));
  EXPECT_FALSE(servers.late());
}

TEST_F(SymbolsOfServers, AreAwaitedForALimitedTime) {
  // Accepts connections, and never answers.
  ChildProcess server{{"python3", "-u", "-c", R"(
import socket
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1])
connections = []
while True:
    connections.append(listener.accept())
)"}};
  const auto port = server.read_line(base::Deadline::after(test::kPatience));
  ASSERT_TRUE(port.has_value()) << server.err();
  ::setenv("DEBUGINFOD_URLS", ("http://127.0.0.1:" + *port).c_str(), 1);
  TwoFiles files{stripped(), ""};
  DebugServers servers{100ms};
  EXPECT_THAT(names(SymbolFiles{files, &servers}), testing::ElementsAre("", "shown"));
  EXPECT_TRUE(servers.late());
}

TEST_F(SymbolsOfServers, AreNotAskedForIfNoneIsNamed) {
  ::unsetenv("DEBUGINFOD_URLS");
  TwoFiles files{stripped(), ""};
  DebugServers servers;
  EXPECT_THAT(names(SymbolFiles{files, &servers}), testing::ElementsAre("", "shown"));
  EXPECT_FALSE(std::filesystem::exists(directory() / "cache"));
}

}  // namespace
}  // namespace pyinject::weave
