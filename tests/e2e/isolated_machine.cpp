#include "e2e/isolated_machine.hpp"

#include "base/text.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/own_tmp.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pyinject::test {

std::set<std::string> names_in(const std::string& data) {
  const auto script = run({"perf", "script", "--no-inline", "--kallsyms", few_kernel_symbols(),
                           "-i", data, "-F", "ip,sym"},
                          {.child = {}, .input = {}, .deadline = std::chrono::minutes{2}});
  EXPECT_EQ(script.status, ExitStatus{}) << script.err;
  std::set<std::string> names;
  for (const auto line : base::split(script.out, '\n')) {
    if (const auto at = line.find("py::"); at != std::string_view::npos) {
      const auto name = line.substr(at + 4);
      names.emplace(name.substr(0, name.find(':')));
    }
  }
  return names;
}

nlohmann::json run_apart(const TempDir& directory, const std::string& script,
                         const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"unshare", "-mpf", "--mount-proc", "--kill-child"};
  // Without other processes' maps.
  const auto own_tmp = with_own_tmp(
      fmt::format("chmod 1777 '{0}' && mount --bind '{0}' /mnt", directory.path().string()));
  command.insert(command.end(), own_tmp.begin(), own_tmp.end());
  command.insert(command.end(), {"/usr/bin/python3", source_dir() + "/tests/targets/" + script,
                                 tool(), "/tmp/data"});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result =
      run(command, {.child = {}, .input = {}, .deadline = std::chrono::minutes{10}});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  auto told = nlohmann::json::parse(result.out, nullptr, false);
  return told.is_discarded() ? nlohmann::json::object() : told;
}

}  // namespace pyinject::test
