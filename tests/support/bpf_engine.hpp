// Whether the engine that reads stacks by BPF has to work here.
#pragma once

#include <string>

namespace pyinject::test {

// What this machine, this user or this build lacks for it; empty: nothing.
[[nodiscard]] std::string bpf_engine_lacks();

}  // namespace pyinject::test
