// The mailbox: its words are in the target's memory, where the target can write anything.
#include "fuzz/fuzz.hpp"
#include "python/examine/mailbox.hpp"
#include "python/layout/version_policy.hpp"

namespace pyinject::fuzz {
using base::RemoteAddress;
using python::TrampolineState;

void run(Input input) {
  constexpr std::uint64_t kUserAddresses = (std::uint64_t{1} << 56U) - 1;
  const python::UnusedMemory tail{
      .begin = RemoteAddress{input.take<std::uint64_t>() & kUserAddresses},
      .size = input.take<std::uint16_t>()};
  const auto text_begin = RemoteAddress{input.take<std::uint32_t>()};
  const auto text_end = text_begin + input.take<std::uint32_t>();
  const auto other = RemoteAddress{input.take<std::uint64_t>()};

  const auto place = python::mailbox_place(tail);
  require(!place || (place->value() % 16 == 0 && *place >= tail.begin &&
                     *place + sizeof(python::Mailbox) <= tail.begin + tail.size),
          "a mailbox lies in the unused end of its page");

  const HostileMemory memory{input.rest()};
  const auto mailbox = python::read_mailbox(memory, RemoteAddress{0});
  require(!mailbox || mailbox->magic == python::kMailboxMagic, "a mailbox says that it is one");
  require(!mailbox || !python::is_unused(memory, RemoteAddress{0}), "a mailbox is not unused");
  const auto learned = mailbox ? RemoteAddress{mailbox->evaluator} : other;
  for (const auto evaluator : {RemoteAddress{}, text_begin, learned, other}) {
    const auto state = python::classify_evaluator(evaluator, mailbox, text_begin, text_end);
    const bool inside = evaluator >= text_begin && evaluator < text_end;
    require(evaluator.is_null() ? state == TrampolineState::kOff : state.has_value() == inside,
            "an evaluator is null or the interpreter's own code");
    require(mailbox || state != TrampolineState::kOnByUs, "without a mailbox it is not ours");
  }
}

}  // namespace pyinject::fuzz
