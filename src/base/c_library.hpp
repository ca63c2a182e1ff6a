// Files of the C library and of replacements of its malloc.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace pyinject::base {

// Whether PATH is one of them, "/lib/x86_64-linux-gnu/libc.so.6": the interpreter's own work
// (allocation, copying) happens there, too.
[[nodiscard]] inline bool is_c_library(std::string_view path) {
  constexpr auto kBegins = std::to_array<std::string_view>(
      {"libc.so", "libc-", "libc.musl-", "libm.so", "libm-", "libpthread", "ld-linux", "ld-musl-",
       "ld-2.", "libjemalloc", "libtcmalloc", "libmimalloc", "[vdso]"});
  const auto name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kBegins,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace pyinject::base
