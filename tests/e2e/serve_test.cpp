// Profiles over HTTP of a real Python process, by the real tool.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "support/child_process.hpp"
#include "support/http_client.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace pyinject::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A reader of pprof that shares no code with the tool: prints "FUNCTION VALUE" of the Python
// function that has the largest second value, the time, with the C functions that it calls.
constexpr auto kReader = R"(
import collections, gzip, sys
def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]; at += 1
        value |= (byte & 127) << shift; shift += 7
        if byte < 128: return value, at
def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0: value, at = varint(data, at)
        else:
            size, at = varint(data, at)
            value = data[at:at + size]; at += size
        yield key >> 3, value
def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at); found.append(value)
    return found
strings, samples, lines, names, time = [], [], {}, {}, 0
for number, value in fields(gzip.open(sys.argv[1]).read()):
    if number == 2: samples.append(dict(fields(value)))
    elif number == 4:
        location = dict(fields(value))
        if 2 not in location: lines[location[1]] = dict(fields(location[4]))[1]  # not in a mapping
    elif number == 5:
        function = dict(fields(value)); names[function[1]] = function[2]
    elif number == 6: strings.append(value.decode())
    elif number == 9: time = value
own = collections.Counter()
for sample in samples:
    innermost = next((lines[one] for one in numbers(sample[1]) if one in lines), None)
    if innermost: own[strings[names[innermost]]] += numbers(sample[2])[1]
assert time > 1700000000 * 10**9, time
print(*own.most_common(1)[0])
)";

class Serve : public testing::Test {
 protected:
  void SetUp() override {
    const auto python = find_build({.minor = 14});
    if (!python) {
      GTEST_SKIP() << "no CPython 3.14 (scripts/pythons)";
    }
    service_.emplace(*python, target_source("services.py"),
                     PythonOptions{.interpreter_args = {}, .args = {"python"}, .child = {}});
    ChildOptions options;
    options.env["TMPDIR"] = temporary_.path();
    tool_.emplace(std::vector<std::string>{tool(), "serve", "--listen", "127.0.0.1:0", "-p", pid()},
                  options);
    await(*tool_, "/debug/pprof/\n");
    const auto& said = tool_->err();
    const auto end = said.find("/debug/pprof/");
    const auto colon = said.rfind(':', end);
    port_ = base::parse_number<std::uint16_t>(said.substr(colon + 1, end - colon - 1)).value_or(0);
  }
  [[nodiscard]] std::string pid() const { return std::to_string(service_->pid().value()); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] ChildProcess& server() { return *tool_; }
  [[nodiscard]] PythonProcess& service() { return *service_; }
  [[nodiscard]] const TempDir& directory() const { return directory_; }
  // Whether no recording, and nothing of one, is there.
  [[nodiscard]] bool nothing_left() const { return std::filesystem::is_empty(temporary_.path()); }
  [[nodiscard]] std::string metrics() const { return http_get(port_, "/metrics").body; }
  // Waits until the profile that a request has begun is being recorded.
  void await_recording() const {
    const auto deadline = base::Deadline::after(kPatience);
    while (!has_recording() && !deadline.expired()) {
      std::this_thread::yield();
    }
    ASSERT_TRUE(has_recording());
  }
  [[nodiscard]] std::string state() const { return run({tool(), "status", "-p", pid()}).out; }

 private:
  [[nodiscard]] bool has_recording() const {
    std::error_code gone;  // entries come and go
    std::filesystem::recursive_directory_iterator all{temporary_.path(), gone};
    for (; !gone && all != std::filesystem::recursive_directory_iterator{}; all.increment(gone)) {
      if (all->path().filename() == "perf.data") {
        return true;
      }
    }
    return false;
  }

  TempDir directory_;
  TempDir temporary_;
  std::optional<PythonProcess> service_;
  std::optional<ChildProcess> tool_;
  std::uint16_t port_ = 0;
};

TEST_F(Serve, AnswersWithAProfileOfTheProgram) {
  const auto before = state();
  const auto reply = http_get(port(), "/debug/pprof/profile?seconds=1&pid=" + pid());
  ASSERT_EQ(reply.status, 200) << reply.body << server().err();
  const auto file = directory().file("profile.pb.gz", reply.body);
  const auto read = run({"python3", "-c", kReader, file});
  EXPECT_EQ(read.status, ExitStatus{}) << read.err;
  EXPECT_THAT(read.out, StartsWith("compute "));
  EXPECT_TRUE(nothing_left());
  EXPECT_THAT(metrics(), HasSubstr("perf_pyinject_profiles_total{event=\"cpu\"} 1\n"));
  EXPECT_THAT(metrics(), HasSubstr("perf_pyinject_targets 1\n"));
  EXPECT_EQ(state(), before);
  service().expect_alive();
}

TEST_F(Serve, RefusesProcessesThatItDoesNotServe) {
  const auto other = http_get(port(), fmt::format("/debug/pprof/profile?pid={}", ::getpid()));
  EXPECT_EQ(other.status, 403);
  EXPECT_THAT(other.body, HasSubstr("(not_served)"));
  EXPECT_EQ(http_get(port(), "/debug/pprof/profile?comm=none").status, 404);
  EXPECT_TRUE(nothing_left());
}

TEST_F(Serve, EndsTheRecordingOfAClientThatHasGone) {
  HttpConnection client{port()};
  client.send(get_request("/debug/pprof/profile?seconds=300"));
  await_recording();
  client.close();
  const auto deadline = base::Deadline::after(kPatience);
  while (metrics().find("{reason=\"client_gone\"} 1\n") == std::string::npos &&
         !deadline.expired()) {
  }
  EXPECT_FALSE(deadline.expired());
  EXPECT_TRUE(nothing_left());
  service().expect_alive();
}

TEST_F(Serve, EndsARecordingAtSigterm) {
  HttpConnection client{port()};
  client.send(get_request("/debug/pprof/profile?seconds=300"));
  await_recording();
  server().signal(SIGTERM);
  const auto reply = client.reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("(stopped)"));
  const auto status = server().wait(base::Deadline::after(kPatience));
  ASSERT_TRUE(status) << server().err();
  EXPECT_EQ(status->code, 128 + SIGTERM) << server().err();
  EXPECT_TRUE(nothing_left());
  service().expect_alive();
}

// The real reader, where this machine has one.
TEST_F(Serve, IsReadByGo) {
  if (run({"sh", "-c", "command -v go"}).status != ExitStatus{}) {
    GTEST_SKIP() << "no go (golang-go)";
  }
  RunOptions options;
  options.child.env["HOME"] = directory() / ".";
  const auto top = run(
      {"go", "tool", "pprof", "-timeout", "100", "-top",  // by default little more than a second
       fmt::format("http://127.0.0.1:{}/debug/pprof/profile?seconds=1&pid={}", port(), pid())},
      options);
  EXPECT_EQ(top.status, ExitStatus{}) << top.err;
  EXPECT_THAT(top.out, HasSubstr("Type: cpu"));
  EXPECT_THAT(top.out, HasSubstr("compute"));
}

}  // namespace
}  // namespace pyinject::test
