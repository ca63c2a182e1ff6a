// Reading another process's memory. Nothing that is read may be trusted: callers bound every size
// and check every pointer. What writes is tracee's (tracee_memory.hpp).
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace pyinject::memory {

// One of several reads that are done together.
struct ReadPiece {
  base::RemoteAddress from;
  std::span<std::byte> into;
  bool done = false;  // all of it was read
};

// An interface, so that what reads structures can be tested on recorded bytes.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;
  MemoryReader() = default;
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  // Fills INTO completely or returns false: a bad address is an ordinary answer.
  [[nodiscard]] virtual bool read(base::RemoteAddress from, std::span<std::byte> into) const = 0;

  // Each as if by read(), but in as few system calls as may be.
  virtual void read_each(std::span<ReadPiece> pieces) const;

  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  [[nodiscard]] std::optional<Value> read_value(base::RemoteAddress from) const {
    Value value{};
    if (!read(from, std::as_writable_bytes(std::span{&value, 1}))) {
      return std::nullopt;
    }
    return value;
  }
  [[nodiscard]] std::optional<base::RemoteAddress> read_pointer(base::RemoteAddress from) const {
    const auto value = read_value<std::uint64_t>(from);
    return value ? std::optional{base::RemoteAddress{*value}} : std::nullopt;
  }
};

// A live process: process_vm_readv(2). It needs ptrace access mode PTRACE_MODE_ATTACH_REALCREDS and
// respects the pages' protection.
class ProcessMemory : public MemoryReader {
 public:
  explicit ProcessMemory(base::Pid pid) : pid_{pid} {}

  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  void read_each(std::span<ReadPiece> pieces) const override;

 private:
  base::Pid pid_;
};

}  // namespace pyinject::memory
