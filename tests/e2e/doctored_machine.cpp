#include "e2e/doctored_machine.hpp"

#include "pyinject/base/deadline.hpp"
#include "support/find_perf.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <unistd.h>

namespace pyinject::test {

namespace fs = std::filesystem;

namespace {

constexpr auto kExecutableByAll =
    fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec;

}  // namespace

nlohmann::json DoctoredMachine::Opinion::check(const std::string& name) const {
  for (const auto& check : report.value("checks", nlohmann::json::array())) {
    if (check.at("name") == name) {
      return check;
    }
  }
  return {};
}

std::string DoctoredMachine::Opinion::state(const std::string& name) const {
  const auto found = check(name);
  return found.is_null() ? "none" : found.at("state").get<std::string>();
}

std::string DoctoredMachine::Opinion::verdict(std::size_t at, std::size_t engine) const {
  const auto& one = report.at("processes").at(at).at("engines").at(engine);
  if (one.at("works") == true) {
    return "ready";
  }
  return one.at("reason").is_null() ? one.at("blocked_by").dump()
                                    : one.at("reason").get<std::string>();
}

void DoctoredMachine::SetUp() {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "mounting over settings needs root";
  }
  fs::permissions(directory_.path(), kExecutableByAll);
  tool_ = directory_ / "perf-pyinject";
  fs::copy_file(tool(), tool_);
  fs::permissions(tool_, kExecutableByAll);
}

bool DoctoredMachine::make(const std::string& mounts) {
  world_.emplace(std::vector<std::string>{"unshare", "--mount", "sh", "-c",
                                          "set -e\n" + mounts + "\necho ready; read line"});
  return world_->read_line(base::Deadline::after(kPatience)) == "ready";
}

RunResult DoctoredMachine::shell(const std::string& script, const std::string& user) const {
  std::vector<std::string> command;
  if (world_) {
    command = {"nsenter", fmt::format("--mount=/proc/{}/ns/mnt", world_->pid().value())};
  }
  if (!user.empty()) {
    command.insert(command.end(), {"setpriv", "--reuid=" + user, "--regid=" + user,
                                   "--clear-groups", "--inh-caps=-all"});
  }
  command.insert(command.end(), {"sh", "-c", script, tool_});
  return run(command);
}

DoctoredMachine::Opinion DoctoredMachine::doctor(const std::string& arguments,
                                                 const std::string& user,
                                                 const std::string& before) const {
  const auto result = shell(before + " \"$0\" doctor --json " + arguments, user);
  Opinion opinion{.status = result.status.code,
                  .report = nlohmann::json::parse(result.out, nullptr, false)};
  if (opinion.report.is_discarded()) {
    ADD_FAILURE() << result.out << result.err;
    opinion.report = nlohmann::json::object();
  }
  return opinion;
}

void DoctoredMachine::mend(const nlohmann::json& check) const {
  ASSERT_FALSE(check.is_null());
  ASSERT_TRUE(check.at("command").is_string()) << check;
  auto command = check.at("command").get<std::string>();
  if (command.starts_with("sudo ")) {
    command.erase(0, std::string_view{"sudo "}.size());
  }
  const auto result = shell(command);
  EXPECT_EQ(result.status, ExitStatus{}) << command << ": " << result.err;
}

std::string DoctoredMachine::debians_perf() const {
  const auto path = directory_.file(
      "debians-perf",
      fmt::format("#!/bin/sh\n"
                  "[ \"$1\" = record ] && [ \"$2\" != -h ] || exec {} \"$@\"\n"
                  "[ $(cat /proc/sys/kernel/perf_event_paranoid) -gt 2 ] || exit 0\n"
                  "echo 'Consider adjusting /proc/sys/kernel/perf_event_paranoid' >&2\n"
                  "exit 255\n",
                  find_perf("perf").value()));
  fs::permissions(path, kExecutableByAll);
  return path;
}

}  // namespace pyinject::test
