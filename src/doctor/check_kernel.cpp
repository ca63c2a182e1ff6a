#include "base/text.hpp"
#include "doctor/checks.hpp"

#include <fmt/format.h>

#include <utility>

namespace pyinject::doctor {

namespace {

// "6.18.44-amd64": 6, 18. Zeros: unknown.
std::pair<int, int> release_of(std::string_view text) {
  const auto numbers = base::split(text, '.');
  const auto number = [&](std::size_t at) {
    return at < numbers.size()
               ? base::parse_number<int>(
                     numbers[at].substr(0, numbers[at].find_first_not_of("0123456789")))
                     .value_or(0)
               : 0;
  };
  return {number(0), number(1)};
}

}  // namespace

Check check_kernel(const Facts& facts) {
  constexpr std::pair kOldest{5, 6};
  constexpr std::pair kOldestForBpf{5, 17};
  const auto release = release_of(facts.kernel.release);
  Check check = ok("kernel", "Linux " + facts.kernel.release);
  if (release >= kOldestForBpf) {
    return check;
  }
  check.remedy = "boot a kernel of 5.17 or later";
  if (release >= kOldest) {
    check.state = State::kLimited;
    check.cost = "no --engine bpf, which needs 5.17";
    check.blocks = {kBpf};
  } else {
    check.state = State::kFailed;
    check.cost = "no process can be recorded, which needs 5.6";
    check.blocks = every_engine();
  }
  return check;
}

Check check_btf(const Facts& facts) {
  if (facts.kernel.btf) {
    return ok("btf", "/sys/kernel/btf/vmlinux");
  }
  return {.name = "btf",
          .state = State::kLimited,
          .found = "/sys/kernel/btf/vmlinux is missing or unreadable",
          .cost = "no --engine bpf, join and why; top reads stacks from outside",
          .remedy =
              "use a kernel with CONFIG_DEBUG_INFO_BTF; in a container, mount the host's /sys "
              "(docker run -v /sys/kernel/btf:/sys/kernel/btf:ro)",
          .blocks = {kBpf}};
}

Check check_lockdown(const Facts& facts) {
  if (!facts.kernel.locked_down) {
    return ok("lockdown", "BPF programs may read memory");
  }
  return {
      .name = "lockdown",
      .state = State::kLimited,
      .found = "the kernel is locked down to confidentiality",
      .cost = "no --engine bpf, join and why; top reads stacks from outside",
      .remedy = "boot without lockdown=confidentiality: remove it from the kernel's command line",
      .command = "grep -o 'lockdown=[a-z]*' /proc/cmdline",
      .blocks = {kBpf}};
}

Check check_tracefs(const Facts& facts) {
  if (facts.kernel.tracefs_mounted && facts.kernel.tracefs_readable) {
    return ok("tracefs", "readable");
  }
  Check check{.name = "tracefs",
              .state = State::kLimited,
              .found = "tracefs is not mounted",
              .cost = "no record --functions, --what and other tracepoints",
              .command = as_root(facts.own, "mount -t tracefs nodev /sys/kernel/tracing")};
  if (facts.kernel.tracefs_mounted) {
    check.found = "tracefs is mounted, but not readable";
    check.remedy = "run as root";
    check.command = as_root(facts.own, "mount -o remount,mode=755 /sys/kernel/tracing");
  }
  return check;
}

}  // namespace pyinject::doctor
