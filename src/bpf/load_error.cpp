#include "bpf/load_error.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string>

namespace pyinject::bpf {

namespace {

// A program may read the kernel's memory, as this one does of its own task, only without it
// (security/security.c: LOCKDOWN_BPF_READ_KERNEL is refused with "confidentiality"; the helper is
// not there then, and the verifier's error is EINVAL).
bool locked_down() {
  return base::read_file("/sys/kernel/security/lockdown", 256)
             .value_or("")
             .find("[confidentiality]") != std::string::npos;
}

}  // namespace

Unavailable explain_load_failure(int error, std::string_view said) {
  const auto detail = said.empty() ? std::string{} : fmt::format(" ({})", base::printable(said));
  if (locked_down()) {
    return {.name = "lockdown",
            .found = "the kernel is locked down: BPF programs may not read memory",
            .remedy = "use a kernel that is not locked down to confidentiality"};
  }
  if (error == EPERM) {  // EACCES is the verifier's
    return {.name = "no_rights",
            .found = "the kernel refuses to load a BPF program: " + base::errno_text(error),
            .remedy = "run as root, or with CAP_BPF and CAP_PERFMON"};
  }
  if (error == ENOMEM) {
    return {.name = "no_memory",
            .found = "not enough memory for the BPF program: " + base::errno_text(error),
            .remedy = "free memory, or raise this cgroup's limit"};
  }
  if (error == EMFILE || error == ENFILE) {
    return {.name = "no_descriptors",
            .found = "the program cannot be loaded: " + base::errno_text(error),
            .remedy = error == EMFILE ? "raise this process's limit of open files (ulimit -n)"
                                      : "raise the limit of open files (sysctl fs.file-max)"};
  }
  return {.name = "kernel_too_old",
          .found = fmt::format("the kernel rejects the BPF program: {}{}", base::errno_text(error),
                               detail),
          .remedy = "Linux 5.17 or later is needed"};
}

}  // namespace pyinject::bpf
