// The registers and the extended state of a stopped thread, from which signal frames are built.
#include "fuzz/fuzz.hpp"
#include "tracee/registers.hpp"
#include "tracee/signal_frames.hpp"

#include <vector>

namespace pyinject::fuzz {
using base::RemoteAddress;

void run(Input input) {
  tracee::Registers stopped;
  stopped.general = input.take<user_regs_struct>();
  const auto mask = input.take<std::uint64_t>();
  const RemoteAddress restorer{input.take<std::uint64_t>()};
  std::vector<tracee::RemoteCall> calls(input.take<std::uint8_t>() % 8U);
  for (auto& call : calls) {
    call.function = RemoteAddress{input.take<std::uint64_t>()};
  }
  // The area is larger than an input, which only provides its start, including the header.
  std::vector<std::byte> state(input.take<std::uint16_t>());
  const auto given = input.take_bytes(state.size());
  std::ranges::copy(given, state.begin());

  const auto resume = tracee::resumable(stopped);
  require(static_cast<std::int64_t>(resume.general.orig_rax) == -1, "nothing is left to restart");
  require(tracee::system_call_name(tracee::interrupted_call(stopped).number) != nullptr,
          "every system call has a name");
  const auto frames = tracee::build_signal_frames(stopped, resume, state, mask, calls, restorer);
  if (!frames) {
    return;
  }
  constexpr std::uint64_t kRedZone = 128;
  const auto room = stopped.general.rsp - frames->at.value();  // modulo 2^64, as the addresses
  require(frames->bytes.size() + kRedZone <= room, "the red zone stays as it is");
  require(room <= state.size() + 4096 * (calls.size() + 1), "the stack that is used is bounded");
  require(frames->start.general.rsp == frames->at.value() + 8, "the first frame is loaded first");
  require(frames->start.general.rip == restorer.value(), "by the restorer");
  require(frames->at.value() % 16 == 8, "functions find the stack that the ABI promises");
}

}  // namespace pyinject::fuzz
