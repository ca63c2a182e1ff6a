#include "python/layout/thread_block.hpp"

namespace pyinject::python {

namespace {

// glibc 2.10 to 2.42: tcbhead_t {tcb, dtv, self, ...} (sysdeps/x86_64/nptl/tls.h), 704 bytes with
// its padding; then struct pthread has a list of two pointers and the tid (nptl/descr.h).
constexpr std::uint64_t kSelf = 16;
constexpr std::uint64_t kMultipleThreads = 24;  // an int; musl has a pointer here
constexpr std::uint64_t kTid = 720;

}  // namespace

std::optional<std::uint64_t> tid_in_thread_block(const memory::MemoryReader& memory,
                                                 base::RemoteAddress pointer) {
  const auto multiple = memory.read_value<std::uint32_t>(pointer + kMultipleThreads);
  if (memory.read_pointer(pointer) != pointer || memory.read_pointer(pointer + kSelf) != pointer ||
      !multiple || *multiple > 1) {
    return std::nullopt;
  }
  const auto tid = memory.read_value<std::uint32_t>(pointer + kTid);
  return tid ? std::optional<std::uint64_t>{*tid} : std::nullopt;
}

}  // namespace pyinject::python
