// The single checks of judge(), each of one subject.
#pragma once

#include "doctor/judge.hpp"
#include "procfs/own_rights.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pyinject::doctor {

[[nodiscard]] Check ok(std::string_view name, std::string found);
[[nodiscard]] std::vector<std::string_view> every_engine();
// COMMAND, by sudo if this tool does not run as root.
[[nodiscard]] std::string as_root(const OwnFacts& own, const std::string& command);
// The command that sets SETTINGS, such as "kernel.kptr_restrict=0".
[[nodiscard]] std::string set_sysctl(const OwnFacts& own, const std::string& settings);
[[nodiscard]] bool has(const OwnFacts& own, procfs::Capability capability);
// The command that installs the package with this name in Debian, Ubuntu or Fedora; empty: unknown
// distribution, or no such package there.
struct Packages {
  std::string debian = {};
  std::string ubuntu = {};
  std::string fedora = {};
};
[[nodiscard]] std::string install(const Facts& facts, const Packages& packages);

// check_perf.cpp
void check_perf(const Facts& facts, std::vector<Check>& checks);
[[nodiscard]] Check check_directory(const Facts& facts);
[[nodiscard]] Check check_build(const Facts& facts);

// check_kernel.cpp
[[nodiscard]] Check check_kernel(const Facts& facts);
[[nodiscard]] Check check_btf(const Facts& facts);
[[nodiscard]] Check check_lockdown(const Facts& facts);
[[nodiscard]] Check check_tracefs(const Facts& facts);

// check_settings.cpp
[[nodiscard]] Check check_paranoid(const Facts& facts);
[[nodiscard]] Check check_yama(const Facts& facts);
[[nodiscard]] Check check_kptr_restrict(const Facts& facts);
[[nodiscard]] Check check_max_stack(const Facts& facts);
[[nodiscard]] Check check_mlock(const Facts& facts);

// check_rights.cpp
void check_capabilities(const Facts& facts, std::vector<Check>& checks);
[[nodiscard]] Check check_bpf(const Facts& facts);
[[nodiscard]] Check check_seccomp(const Facts& facts);
[[nodiscard]] Check check_pid_namespace(const Facts& facts);
[[nodiscard]] Check check_hidepid(const Facts& facts);

// check_process.cpp
[[nodiscard]] std::vector<Check> check_process(const Facts& facts, const ProcessFacts& process);

}  // namespace pyinject::doctor
