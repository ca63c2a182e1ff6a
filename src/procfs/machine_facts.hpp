// What the machine is: /proc/cpuinfo, /proc/meminfo.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pyinject::procfs {

struct MachineFacts {
  std::string processor = {};     // "AMD EPYC 7763"; empty: unknown
  std::string processor_id = {};  // "AuthenticAMD,25,1,1": vendor, family, model, stepping
  std::uint64_t memory_kilobytes = 0;
};
[[nodiscard]] MachineFacts read_machine_facts();
// TEXTS: the contents of both files.
[[nodiscard]] MachineFacts parse_machine_facts(std::string_view processors,
                                               std::string_view memory);

}  // namespace pyinject::procfs
