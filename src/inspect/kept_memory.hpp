// Memory that was read while a process was stopped, for later.
#pragma once

#include "memory/process_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pyinject::inspect {

class KeptMemory : public memory::MemoryReader {
 public:
  explicit KeptMemory(base::Pid pid) : memory_{pid} {}

  // Repeats of a read have the result of the first one.
  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  // From now on, what has not been read is unreadable.
  void close() { closed_ = true; }

 private:
  using Bytes = std::optional<std::vector<std::byte>>;  // nullopt: unreadable

  memory::ProcessMemory memory_;
  bool closed_ = false;
  mutable std::map<std::pair<std::uint64_t, std::size_t>, Bytes> kept_;
};

}  // namespace pyinject::inspect
