// The target's machine code, which detection disassembles to find the offsets of its layout.
#include "fuzz/fuzz.hpp"
#include "python/layout/code_probe.hpp"

#include <vector>

namespace pyinject::fuzz {
using base::RemoteAddress;

void run(Input input) {
  const RemoteAddress at{input.take<std::uint64_t>()};
  const RemoteAddress base{input.take<std::uint64_t>()};
  const auto offset = input.take<std::uint32_t>();
  const auto code = input.rest();
  std::vector<std::byte> longer{code.begin(), code.end()};
  longer.resize(longer.size() + 16, std::byte{0x90});  // nop

  const auto field = python::first_field_loaded(code, at);
  require(!field || python::first_field_loaded(longer, at) == field, "the first one is the first");
  const auto element = python::first_element_compared(code, at);
  require(!element || python::first_element_compared(longer, at) == element,
          "the first one is the first");

  std::size_t asked = 0;
  const auto slot = [&](RemoteAddress) -> std::optional<std::uint64_t> {
    ++asked;
    return asked % 2 == 0 ? std::nullopt : std::optional{base.value()};
  };
  const bool taken = python::takes_address(code, at, base, offset, slot);
  require(asked <= code.size(), "no instruction is read twice");
  asked = 0;
  require(!taken || python::takes_address(longer, at, base, offset, slot), "it stays taken");

  const auto jumps = python::jumps_out_of(code, at);
  require(jumps.size() <= code.size(), "an instruction leads to one place");
  for (const auto jump : jumps) {
    require(jump.value() - at.value() >= code.size(), "what leads out leads outside");
  }
}

}  // namespace pyinject::fuzz
