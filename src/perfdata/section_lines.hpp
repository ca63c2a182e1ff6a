// The lines "NAME REST" of a feature of this tool. Readers skip names that they do not know: other
// versions have others.
#pragma once

#include "base/text.hpp"
#include "perfdata/record.hpp"

#include <string_view>

namespace pyinject::perfdata {

// Calls CALL(name, rest) for each. Lines without REST are left out.
template <typename Call>
void for_each_line(Bytes section, const Call& call) {
  const std::string_view text{reinterpret_cast<const char*>(section.data()), section.size()};
  for (const auto line : base::split(text, '\n')) {
    if (const auto blank = line.find(' '); blank != std::string_view::npos) {
      call(line.substr(0, blank), line.substr(blank + 1));
    }
  }
}

}  // namespace pyinject::perfdata
