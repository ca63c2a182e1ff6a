// A system call as a target's registers have it, the memory that its arguments lead to, and the
// tables of sockets, in which a target chooses the paths.
#include "fuzz/fuzz.hpp"
#include "inspect/described_call.hpp"
#include "procfs/sockets.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string>

namespace pyinject::fuzz {
namespace {

void any_call(Input input) {
  constexpr long kNumbers = 512;
  procfs::BlockedCall call;
  call.number = input.take<std::uint16_t>() % kNumbers;
  call.arguments = input.take<std::array<std::uint64_t, 6>>();
  const HostileMemory memory{input.rest()};
  const auto described = inspect::describe_call(
      call, {.memory = memory,
             .file = [](int) { return std::string{"file"}; },
             .now = [](clockid_t) { return std::optional{std::chrono::nanoseconds{0}}; }});
  require(!described.name.empty(), "a call has a name");
  require(described.number == call.number, "the number is that of the call");
  require(described.arguments.size() <= 16, "arguments are bounded");
  require(
      std::ranges::all_of(described.arguments, [](const auto& text) { return text.size() <= 512; }),
      "each argument is bounded");
  require(memory.reads() <= 64, "reads are bounded");
}

void any_table(std::string_view text) {
  procfs::Sockets sockets;
  procfs::parse_inet_sockets(text, "TCP", sockets);
  procfs::parse_unix_sockets(text, sockets);
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  require(sockets.size() <= 2 * lines, "a line has at most one socket of each kind");
  for (const auto& [inode, socket] : sockets) {
    require(inode != 0, "a socket has an inode");
    require(procfs::to_string(socket).find('\n') == std::string::npos, "a path stays in its line");
  }
}

}  // namespace

void run(Input input) {
  any_table(input.text());
  any_call(input);
}

}  // namespace pyinject::fuzz
