#include "tracee/seccomp.hpp"

#include <cerrno>

#include <sys/ptrace.h>

namespace pyinject::tracee {

namespace {

// A process may install many; the kernel limits their total size (MAX_INSNS_PER_PATH).
constexpr unsigned long kMostFilters = 4096;

long get_filter(base::Tid thread, unsigned long index, sock_filter* program) {
  return ::ptrace(PTRACE_SECCOMP_GET_FILTER, thread.value(), index, program);
}

}  // namespace

std::optional<std::vector<std::vector<sock_filter>>> read_seccomp_filters(base::Tid thread) {
  std::vector<std::vector<sock_filter>> filters;
  for (unsigned long index = 0; index < kMostFilters; ++index) {
    const long length = get_filter(thread, index, nullptr);
    if (length < 0 && errno == ENOENT) {
      return filters;
    }
    if (length <= 0 || length > BPF_MAXINSNS) {
      return std::nullopt;
    }
    std::vector<sock_filter> program(static_cast<std::size_t>(length));
    if (get_filter(thread, index, program.data()) != length) {
      return std::nullopt;
    }
    filters.push_back(std::move(program));
  }
  return std::nullopt;
}

}  // namespace pyinject::tracee
