#include "bpf/libbpf_messages.hpp"

#if PYINJECT_BPF

#include "base/text.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

#include <bpf/libbpf.h>

namespace pyinject::bpf {

namespace {

// libbpf has one print function per process.
std::mutex message_mutex;
std::string kept_message;

int keep_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_WARN) {
    std::array<char, 512> line{};
    // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): libbpf's own
    const int size = std::vsnprintf(line.data(), line.size(), format, arguments);
    const std::lock_guard lock{message_mutex};
    if (size > 0 && kept_message.empty()) {
      kept_message = base::trim(line.data());
    }
  }
  return 0;
}

}  // namespace

void keep_libbpf_messages() {
  libbpf_set_print(keep_message);
  (void)libbpf_message();
}

std::string libbpf_message() {
  const std::lock_guard lock{message_mutex};
  return std::exchange(kept_message, {});
}

}  // namespace pyinject::bpf

#endif
