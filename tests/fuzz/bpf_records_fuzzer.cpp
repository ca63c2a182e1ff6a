// Records of the BPF program: the kernel writes their frame, their contents come from a target.
#include "bpf/records.hpp"
#include "fuzz/fuzz.hpp"

#include <set>

namespace pyinject::fuzz {

void run(Input input) {
  constexpr std::size_t kLongest = 4096;
  std::set<std::uint64_t> named;
  bpf::Records records{
      {.code =
           [&](const sample::Code& code) {
             named.insert(code.number);
             require(code.qualname.size() <= 4 * kLongest && code.file.size() <= 4 * kLongest,
                     "a name is not longer than its record");
           },
       .stack =
           [&](const sample::Stack& stack) {
             require(stack.frames.size() <= kLongest, "frames are in the record");
             for (const auto& frame : stack.frames) {
               require(frame.code == 0 || named.contains(frame.code), "a code was named before");
               require(frame.code != 0 || frame.line == 0, "what has no name has no line");
             }
           }}};
  while (!input.rest().empty()) {
    const auto size = input.take<std::uint16_t>() % kLongest;
    records.decode(input.take_bytes(size));
  }
}

}  // namespace pyinject::fuzz
