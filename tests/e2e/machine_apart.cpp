#include "e2e/machine_apart.hpp"

#include "base/text.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

namespace pyinject::test {
namespace {

// Mounts FOLDER ($0) as /tmp, without other processes' maps. The paths under test ($1, $2, $3) may
// lie in /tmp: they are bind-mounted.
constexpr auto kOwnTmp = R"(
for needed in "$1" "$2" "$3"; do
  case $needed in /tmp/*)
    mkdir -p "$0/${needed#/tmp/}" && mount --bind "$needed" "$0/${needed#/tmp/}" ;;
  esac
done
shift 3
chmod 1777 "$0"
mount --rbind "$0" /tmp && cd / && exec "$@")";

}  // namespace

std::set<std::string> names_in(const std::string& data) {
  const auto script = run({"perf", "script", "-i", data, "-F", "ip,sym"},
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

nlohmann::json run_apart(const TempDir& folder, const std::string& script,
                         const std::vector<std::string>& arguments) {
  const char* const roots = std::getenv("PYINJECT_ROOTS");
  std::vector<std::string> command{"unshare",
                                   "-mpf",
                                   "--mount-proc",
                                   "--kill-child",
                                   "sh",
                                   "-c",
                                   kOwnTmp,
                                   folder.path(),
                                   source_dir(),
                                   build_dir(),
                                   roots == nullptr ? "" : roots,
                                   "/usr/bin/python3",
                                   source_dir() + "/tests/targets/" + script,
                                   tool(),
                                   "/tmp/data"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result = run(command, {.child = {}, .input = {}, .deadline = std::chrono::minutes{5}});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  auto told = nlohmann::json::parse(result.out, nullptr, false);
  return told.is_discarded() ? nlohmann::json::object() : told;
}

}  // namespace pyinject::test
