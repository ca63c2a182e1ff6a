// Typical applications with default options: FastAPI on uvicorn with uvloop, celery with a process
// pool, numpy.linalg. Needs the directories that `scripts/pythons --apps` creates.
// PYINJECT_APPLICATION_RUNS: the number of recordings of each; default 1.
#include "base/text.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::milliseconds;

enum class Kind { kServer, kPool, kNumbers };

struct Application {
  std::string name;  // for test names
  std::string python;
  Kind kind = Kind::kServer;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const Application& application, std::ostream* stream) { *stream << application.name; }

std::string environment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string python_of(const std::string& minor) {
  const auto cache = environment("XDG_CACHE_HOME", environment("HOME", "/root") + "/.cache");
  return environment("PYINJECT_ROOTS", cache + "/perf-pyinject/roots") + "/bin/apps-python" + minor;
}

std::vector<Application> applications() {
  std::vector<Application> all;
  for (const std::string minor : {"3.13", "3.14"}) {
    const auto suffix = "_py3_" + minor.substr(2);
    all.push_back({"uvicorn" + suffix, python_of(minor), Kind::kServer});
    all.push_back({"celery" + suffix, python_of(minor), Kind::kPool});
    all.push_back({"numpy" + suffix, python_of(minor), Kind::kNumbers});
  }
  return all;
}

std::string script(const std::string& name) { return source_dir() + "/tests/targets/apps/" + name; }

// A working application; it exits when its stdin is closed.
class Running {
 public:
  explicit Running(const Application& application) : process_{command(application)} {
    const auto deadline = Deadline::after(kPatience);
    std::string line;
    while (!line.starts_with("ready")) {  // celery prints a banner
      auto next = process_.read_line(deadline);
      if (!next) {
        break;
      }
      line = std::move(*next);
    }
    EXPECT_TRUE(line.starts_with("ready")) << line << process_.err();
    const auto word = line.substr(std::min(line.find(' ') + 1, line.size()));
    if (application.kind == Kind::kServer) {
      load_ = std::make_unique<ChildProcess>(
          std::vector<std::string>{application.python, script("http_load.py"), word, "60"});
      EXPECT_EQ(load_->read_line(Deadline::after(kPatience)), "loading") << load_->err();
    } else if (application.kind == Kind::kPool) {
      busy_ = base::Pid{base::parse_number<pid_t>(word).value_or(0)};
    }
  }
  ~Running() {
    process_.close_stdin();
    (void)process_.wait(Deadline::after(kPatience));
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  // The process whose CPU time the test waits for.
  [[nodiscard]] base::Pid busy() const { return busy_.value_or(process_.pid()); }

 private:
  [[nodiscard]] std::vector<std::string> command(const Application& application) const {
    switch (application.kind) {
      case Kind::kServer:
        return {application.python, script("served_by_uvicorn.py")};
      case Kind::kPool:
        return {application.python, script("celery_pool.py"), broker_.path()};
      case Kind::kNumbers:
        return {application.python, script("linear_algebra.py")};
    }
    return {};
  }

  TempDir broker_;
  ChildProcess process_;
  std::unique_ptr<ChildProcess> load_;
  std::optional<base::Pid> busy_;
};

struct ApplicationShares {
  std::size_t samples = 0;
  std::size_t python = 0;         // with a Python function
  std::size_t marked = 0;         // incomplete, and marked as such
  std::size_t main = 0;           // of main threads
  std::size_t main_rooted = 0;    // of these: with the program's outermost function
  std::size_t main_complete = 0;  // of these: and not marked
  std::string without;            // a sample without a Python function

  void add(std::string_view sample) {
    const auto words = base::split(base::trim(sample.substr(0, sample.find('\n'))), '/');
    const bool rooted = sample.find("py::<module>:") != std::string_view::npos;
    const bool is_marked = sample.find("[truncated: ") != std::string_view::npos ||
                           sample.find("[no unwind info: ") != std::string_view::npos ||
                           sample.find("[broken stack: ") != std::string_view::npos;
    const bool has_python = sample.find("py::") != std::string_view::npos;
    ++samples;
    python += has_python ? 1 : 0;
    marked += is_marked ? 1 : 0;
    if (words.size() == 2 && words[0] == base::trim(words[1])) {
      ++main;
      main_rooted += rooted ? 1 : 0;
      main_complete += rooted && !is_marked ? 1 : 0;
    }
    if (!has_python) {
      without = sample;
    }
  }
};

ApplicationShares shares_in(const std::string& data) {
  const auto text =
      run({"perf", "script", "--max-stack", "4000", "-i", data, "-F", "pid,tid,ip,sym"},
          {.child = {}, .input = {}, .deadline = std::chrono::minutes{2}});
  ApplicationShares shares;
  std::string_view left = text.out;
  while (!left.empty()) {
    const auto end = left.find("\n\n");
    const auto sample = left.substr(0, end);
    if (!base::trim(sample).empty()) {
      shares.add(sample);
    }
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 2);
  }
  return shares;
}

class ApplicationStacks : public testing::TestWithParam<Application> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(GetParam().python)) {
      GTEST_SKIP() << GetParam().python << " is not there: scripts/pythons --apps brings it";
    }
  }
  static ApplicationShares recorded() {
    const TempDir directory;
    const std::string data = directory / "perf.data";
    const Running application{GetParam()};
    std::vector<std::string> words{tool(), "record", "-p",
                                   std::to_string(application.pid().value())};
    if (GetParam().kind == Kind::kPool) {
      words.emplace_back("--children");
    }
    words.insert(words.end(), {"-o", data, "--"});
    const auto clock = until_worked(application.busy(), milliseconds{1000});
    words.insert(words.end(), clock.begin(), clock.end());
    const auto result = run(words, {.child = {}, .input = {}, .deadline = std::chrono::minutes{3}});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_EQ(result.err.find("entered before the attach are missing"), std::string::npos)
        << result.err;
    return shares_in(data);
  }
};

TEST_P(ApplicationStacks, HavePythonFunctionsUpToTheModule) {
  const auto runs =
      base::parse_number<int>(environment("PYINJECT_APPLICATION_RUNS", "1")).value_or(1);
  ApplicationShares all;
  int without_root = 0;
  for (int i = 0; i < runs; ++i) {
    const auto one = recorded();
    ASSERT_GT(one.main, 0U);
    without_root += one.main_rooted == 0 ? 1 : 0;
    all.samples += one.samples;
    all.python += one.python;
    all.marked += one.marked;
    all.main += one.main;
    all.main_rooted += one.main_rooted;
    all.main_complete += one.main_complete;
    all.without = one.without.empty() ? all.without : one.without;
  }
  const auto permille = [](std::size_t part, std::size_t whole) {
    return std::to_string(whole == 0 ? 0 : part * 1000 / whole);
  };
  RecordProperty("samples", std::to_string(all.samples));
  RecordProperty("python_permille", permille(all.python, all.samples));
  RecordProperty("marked_permille", permille(all.marked, all.samples));
  RecordProperty("main_rooted_permille", permille(all.main_rooted, all.main));
  RecordProperty("main_complete_permille", permille(all.main_complete, all.main));
  EXPECT_TRUE(share_is_at_least({.count = all.python, .all = all.samples}, 0.99)) << all.without;
  EXPECT_TRUE(share_is_at_least({.count = all.main_rooted, .all = all.main}, 0.99));
  EXPECT_EQ(without_root, 0) << "recordings without the outermost functions";
}

INSTANTIATE_TEST_SUITE_P(Pythons, ApplicationStacks, testing::ValuesIn(applications()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace pyinject::test
