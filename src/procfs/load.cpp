#include "procfs/load.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

namespace pyinject::procfs {

// "0.20 0.18 0.12 RUNNABLE/ALL LASTPID"
std::optional<long> parse_runnable_threads(std::string_view text) {
  const auto fields = base::split(text, ' ');
  return fields.size() < 4 ? std::nullopt
                           : base::parse_number<long>(base::split(fields[3], '/').front());
}

std::optional<long> read_runnable_threads() {
  const auto text = base::read_file("/proc/loadavg", 256);
  return text ? parse_runnable_threads(*text) : std::nullopt;
}

}  // namespace pyinject::procfs
