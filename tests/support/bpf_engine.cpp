#include "support/bpf_engine.hpp"

#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"

#include <cstdint>

#include <unistd.h>

namespace pyinject::test {
namespace {

bool has_capability(unsigned number) {
  const auto status = base::read_file("/proc/self/status").value_or("");
  for (const auto line : base::split(status, '\n')) {
    constexpr std::string_view kField = "CapEff:";
    if (line.starts_with(kField)) {
      const auto digits = base::trim(line.substr(kField.size()));
      const auto all = base::parse_number<std::uint64_t>(digits, 16);
      return all && ((*all >> number) & 1U) != 0;
    }
  }
  return false;
}

}  // namespace

std::string bpf_engine_lacks() {
  constexpr unsigned kPerfmon = 38;
  constexpr unsigned kBpf = 39;
  if (!has_capability(kPerfmon) || !has_capability(kBpf)) {
    return "CAP_BPF and CAP_PERFMON are missing";
  }
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return "this kernel has no BTF";
  }
  const auto version = run({tool(), "--version"});
  return version.out.find("bpf") == std::string::npos ? "it is not built in" : "";
}

}  // namespace pyinject::test
