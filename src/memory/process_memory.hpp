// Reads another process's memory. The data is not trusted: callers must limit every size and check
// every pointer. Writing is in tracee (tracee_memory.hpp).
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

// One of several reads in a batch.
struct ReadPiece {
  base::RemoteAddress from;
  std::span<std::byte> into;
  bool done = false;  // all bytes were read
};

// An interface, so that structure readers can be tested on recorded bytes.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;
  MemoryReader() = default;
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  // Fills INTO completely or returns false: bad addresses are to be expected.
  [[nodiscard]] virtual bool read(base::RemoteAddress from, std::span<std::byte> into) const = 0;

  // Like read() for each piece, but with as few system calls as possible.
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

// A running process: process_vm_readv(2). Needs ptrace access mode PTRACE_MODE_ATTACH_REALCREDS and
// respects page protection.
class ProcessMemory : public MemoryReader {
 public:
  explicit ProcessMemory(base::Pid pid) : pid_{pid} {}

  [[nodiscard]] bool read(base::RemoteAddress from, std::span<std::byte> into) const override;
  void read_each(std::span<ReadPiece> pieces) const override;

 private:
  base::Pid pid_;
};

}  // namespace pyinject::memory
