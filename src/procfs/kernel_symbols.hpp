// Names of the kernel's functions: /proc/kallsyms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

class KernelSymbols {
 public:
  // TEXT: contents of /proc/kallsyms. Empty if it shows no addresses.
  [[nodiscard]] static KernelSymbols parse(std::string_view text);
  // Empty without CAP_SYSLOG, or if kernel.kptr_restrict hides the addresses.
  [[nodiscard]] static KernelSymbols read();

  // Whether read() would find addresses: looks at the beginning of the table only.
  [[nodiscard]] static bool readable();

  // The function that contains ADDRESS; empty: unknown. Valid as long as this object.
  [[nodiscard]] std::string_view name(std::uint64_t address) const;
  // Whether NAME is a function at ADDRESS.
  [[nodiscard]] bool has(std::string_view name, std::uint64_t address) const;
  [[nodiscard]] bool empty() const { return functions_.empty(); }

 private:
  struct Function {
    std::uint64_t begin = 0;
    std::uint32_t name = 0;  // offset in names_
    std::uint32_t size = 0;  // of the name
  };
  std::vector<Function> functions_;  // ascending
  std::string names_;
};

}  // namespace pyinject::procfs
