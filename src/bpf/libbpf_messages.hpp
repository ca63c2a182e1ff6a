// What libbpf says of a failure.
#pragma once

#include <string>

namespace pyinject::bpf {

// From now on, libbpf prints nothing: its first warning is kept. Forgets earlier ones.
void keep_libbpf_messages();
// The first warning since; empty: none, or it has been taken.
[[nodiscard]] std::string libbpf_message();

}  // namespace pyinject::bpf
