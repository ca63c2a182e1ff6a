#include "bpf/load_error.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include <fcntl.h>

namespace pyinject::bpf {

std::string phrase(const Unavailable& why) {
  return fmt::format("{} ({}){}{}", why.found, why.name, why.remedy.empty() ? "" : ": ",
                     why.remedy);
}

// Lockdown forbids programs that read kernel memory, as this one reads its own task
// (security/security.c: LOCKDOWN_BPF_READ_KERNEL is refused with "confidentiality"; the helper is
// missing then, and the verifier fails with EINVAL).
bool locked_down() {
  return base::read_file("/sys/kernel/security/lockdown", 256)
             .value_or("")
             .find("[confidentiality]") != std::string::npos;
}

namespace {

// libbpf tries what the kernel can do. If it has no descriptors for that, it takes the kernel for
// an older one, and the kernel rejects what it then loads. EMFILE, ENFILE; 0: there are enough.
int lack_of_descriptors() {
  constexpr std::size_t kNeeded = 32;  // for all maps and programs
  std::array<base::UniqueFd, kNeeded> tried;
  for (auto& one : tried) {
    one = base::UniqueFd{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (!one.valid()) {
      return errno == EMFILE || errno == ENFILE ? errno : 0;
    }
  }
  return 0;
}

}  // namespace

Unavailable explain_load_failure(int error, std::string_view said) {
  const auto detail = said.empty() ? std::string{} : fmt::format(" ({})", base::printable(said));
  if (locked_down()) {
    return {.name = "lockdown",
            .found = "the kernel is locked down: BPF programs may not read memory",
            .remedy = "use a kernel that is not locked down to confidentiality"};
  }
  if (error == EPERM) {  // EACCES comes from the verifier
    return {.name = "no_rights",
            .found = "the kernel refuses to load a BPF program: " + base::errno_text(error),
            .remedy = "run as root, or with CAP_BPF and CAP_PERFMON"};
  }
  if (error == ENOMEM) {
    return {.name = "no_memory",
            .found = "not enough memory for the BPF program: " + base::errno_text(error),
            .remedy = "free memory, or raise the limit of this cgroup (memory.max)"};
  }
  const int lacks = error == EMFILE || error == ENFILE ? error : lack_of_descriptors();
  if (lacks != 0) {
    return {.name = "no_descriptors",
            .found = "the BPF program cannot be loaded: " + base::errno_text(lacks),
            .remedy = lacks == EMFILE ? "raise this process's limit of open files (ulimit -n)"
                                      : "raise the limit of open files (sysctl fs.file-max)"};
  }
  return {.name = "kernel_too_old",
          .found = fmt::format("the kernel rejects the BPF program: {}{}", base::errno_text(error),
                               detail),
          .remedy = "Linux 5.17 or later is needed; if this is one, please report it"};
}

}  // namespace pyinject::bpf
