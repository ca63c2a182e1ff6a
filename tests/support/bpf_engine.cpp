#include "support/bpf_engine.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>

#include <linux/bpf.h>
#include <sys/syscall.h>
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
  // A build without BPF prints "without libbpf: no bpf" instead.
  return version.out.find(", bpf") == std::string::npos ? "it is not built in" : "";
}

long sum_of_programs(base::Pid tool, std::string_view field) {
  long sum = 0;
  const auto directory = fmt::format("/proc/{}/fdinfo", tool.value());
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const auto text = base::read_file(entry.path().string()).value_or("");
    for (const auto line : base::split(text, '\n')) {
      if (line.starts_with(field)) {
        sum += base::parse_number<long>(base::trim(line.substr(field.size()))).value_or(0);
      }
    }
  }
  return sum;
}

BpfTimeCount::BpfTimeCount(base::Pid tool) : tool_{tool} {
  bpf_attr attributes{};
  attributes.enable_stats.type = BPF_STATS_RUN_TIME;
  counting_.reset(
      static_cast<int>(::syscall(SYS_bpf, BPF_ENABLE_STATS, &attributes, sizeof(attributes))));
  if (!counting_.valid()) {
    throw base::SystemError{"BPF_ENABLE_STATS", errno};
  }
}

std::chrono::nanoseconds BpfTimeCount::time() const {
  return std::chrono::nanoseconds{sum_of_programs(tool_, "run_time_ns:")};
}

}  // namespace pyinject::test
