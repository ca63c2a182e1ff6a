// Where the kernel's and its modules' code is: /proc/kallsyms, /proc/modules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

// The kernel's code in TEXT, a part of /proc/kallsyms: where it begins and ends.
struct KernelCode {
  std::uint64_t begin = 0;  // 0: hidden, or not in TEXT
  std::uint64_t end = 0;
};
[[nodiscard]] KernelCode find_kernel_code(std::string_view text);

// A module in /proc/modules.
struct Module {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};
// Those whose addresses TEXT shows.
[[nodiscard]] std::vector<Module> parse_modules(std::string_view text);

// begin is 0 without CAP_SYSLOG, or if kernel.kptr_restrict hides the addresses. Reads the table
// only until the code ends: the kernel takes 100 ms for all of it.
[[nodiscard]] KernelCode read_kernel_code();
[[nodiscard]] std::vector<Module> read_modules();

}  // namespace pyinject::procfs
