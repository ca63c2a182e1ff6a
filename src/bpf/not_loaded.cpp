#include "bpf/not_loaded.hpp"

#include "pyinject/base/error.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"

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

Unavailable why_not_loaded(int error, std::string_view said) {
  const auto detail = said.empty() ? std::string{} : fmt::format(" ({})", base::printable(said));
  if (locked_down()) {
    return {.name = "lockdown",
            .found = "the kernel is locked down: no program may read memory",
            .remedy = "it takes a kernel that is not locked down to confidentiality"};
  }
  if (error == EPERM) {  // EACCES is the verifier's
    return {.name = "no_rights",
            .found = "the kernel refuses to load a program: " + base::errno_text(error),
            .remedy = "run as root, or with CAP_BPF and CAP_PERFMON"};
  }
  if (error == ENOMEM) {
    return {.name = "no_memory",
            .found = "there is no memory for the program: " + base::errno_text(error),
            .remedy = "free some, or give this control group more"};
  }
  if (error == EMFILE || error == ENFILE) {
    return {.name = "no_descriptors",
            .found = "the program cannot be loaded: " + base::errno_text(error),
            .remedy = error == EMFILE ? "raise this process's limit of open files (ulimit -n)"
                                      : "raise the limit of open files (sysctl fs.file-max)"};
  }
  return {.name = "kernel_too_old",
          .found = fmt::format("the kernel does not take the program: {}{}",
                               base::errno_text(error), detail),
          .remedy = "it takes Linux 5.17"};
}

}  // namespace pyinject::bpf
