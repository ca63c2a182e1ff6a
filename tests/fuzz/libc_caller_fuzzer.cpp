// Finding the caller of a C library function with the library's unwind tables and the target's
// stack and registers.
#include "fuzz/fuzz.hpp"
#include "procfs/maps.hpp"
#include "python/activate/libc_caller.hpp"

#include <semaphore.h>
#include <unistd.h>

namespace pyinject::fuzz {
namespace {

using base::RemoteAddress;

struct Libc {
  std::unique_ptr<python::LibcCaller> caller;
  procfs::Mapping code;
};

Libc open_libc() {
  const base::Pid self{::getpid()};
  const auto maps = procfs::read_maps(self).value();
  const RemoteAddress inside{reinterpret_cast<std::uintptr_t>(&::sem_post)};
  return {.caller = python::LibcCaller::open(self, maps, inside),
          .code = *procfs::find_mapping(maps, inside)};
}

}  // namespace

void run(Input input) {
  static const Libc libc = open_libc();
  require(libc.caller != nullptr, "the C library has unwind tables");
  tracee::Registers registers;
  registers.general.rip = libc.code.begin.value() + input.take<std::uint32_t>() % libc.code.size();
  registers.general.rsp = input.take<std::uint64_t>();
  registers.general.rbp = input.take<std::uint64_t>();
  // The library's addresses differ in each run: the input contains offsets into it.
  auto words = input.rest();
  std::vector<std::uint64_t> stack;
  for (std::size_t at = 0; at + 4 <= words.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, words.data() + at, sizeof word);
    stack.push_back(word % 2 == 0 ? word : libc.code.begin.value() + word % libc.code.size());
  }
  const HostileMemory memory{std::as_bytes(std::span{stack})};
  const auto found = libc.caller->find(memory, registers);
  require(!found || !libc.code.contains(*found), "who called is not the library itself");
  require(memory.reads() <= 64, "the stack is followed for some frames only");
}

}  // namespace pyinject::fuzz
