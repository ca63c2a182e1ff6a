// A thread that no signal of this process interrupts.
#pragma once

#include <functional>
#include <thread>

namespace pyinject::push {

// All signals stay blocked in it; SIGPIPE of a connection too. It yields to every other thread:
// recordings have priority.
[[nodiscard]] std::thread start_quiet_thread(std::function<void()> body);

}  // namespace pyinject::push
