#include "procfs/machine_facts.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace pyinject::procfs {

namespace {

// The value of NAME in TEXT, "NAME : VALUE" or "NAME:   VALUE"; the first one.
std::string value_in(std::string_view text, std::string_view name) {
  for (const auto line : base::split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && base::trim(line.substr(0, colon)) == name) {
      return std::string{base::trim(line.substr(colon + 1))};
    }
  }
  return {};
}

}  // namespace

MachineFacts parse_machine_facts(std::string_view processors, std::string_view memory) {
  const auto kilobytes = value_in(memory, "MemTotal");
  return {
      .processor = value_in(processors, "model name"),
      .processor_id = fmt::format("{},{},{},{}", value_in(processors, "vendor_id"),
                                  value_in(processors, "cpu family"), value_in(processors, "model"),
                                  value_in(processors, "stepping")),
      .memory_kilobytes =
          base::parse_number<std::uint64_t>(kilobytes.substr(0, kilobytes.find(' '))).value_or(0)};
}

MachineFacts read_machine_facts() {
  const auto processors = base::read_file("/proc/cpuinfo");
  const auto memory = base::read_file("/proc/meminfo");
  return parse_machine_facts(processors ? *processors : "", memory ? *memory : "");
}

}  // namespace pyinject::procfs
