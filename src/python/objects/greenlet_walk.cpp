#include "python/objects/greenlet_walk.hpp"

#include "python/stacks/frame_walk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <unordered_set>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

constexpr auto kGreenlet = "greenlet.greenlet";
constexpr std::size_t kMostObjects = 1U << 24U;
// Low bits of a PyGC_Head's words are flags (Include/internal/pycore_gc.h).
constexpr std::uint64_t kFlags = 3;

struct Links {  // PyGC_Head
  std::uint64_t next = 0;
  std::uint64_t previous = 0;
};

std::optional<Links> links_at(const memory::MemoryReader& memory, std::uint64_t at) {
  auto links = memory.read_value<Links>(RemoteAddress{at});
  if (links) {
    links->next &= ~kFlags;
    links->previous &= ~kFlags;
  }
  return links;
}

}  // namespace

bool GreenletWalk::has_greenlets(RemoteAddress interpreter) const {
  return find_module(objects_, interpreter, "greenlet._greenlet").has_value();
}

// The lists begin in PyInterpreterState.gc, whose place differs between versions: it is before
// `imports` or not far behind. A head is what its neighbours point to. Debian's 3.13 does not align
// them to words.
std::vector<RemoteAddress> GreenletWalk::list_heads(RemoteAddress interpreter) const {
  constexpr std::uint64_t kBehind = 8192;
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 18U;
  constexpr std::uint64_t kLeastAddress = 4096;
  constexpr std::uint64_t kAlignment = 4;
  std::vector<std::byte> bytes(std::min(objects_.layout().modules + kBehind, kMostBytes));
  std::vector<RemoteAddress> heads;
  if (!objects_.memory().read(interpreter, bytes)) {
    return heads;
  }
  for (std::size_t at = 0; at + sizeof(Links) <= bytes.size(); at += kAlignment) {
    Links links;
    std::memcpy(&links, bytes.data() + at, sizeof links);
    const auto self = interpreter.value() + at;
    const auto next = links.next & ~kFlags;
    const auto previous = links.previous & ~kFlags;
    if (next < kLeastAddress || previous < kLeastAddress || next == self) {
      continue;
    }
    const auto first = links_at(objects_.memory(), next);
    const auto last =
        first && first->previous == self ? links_at(objects_.memory(), previous) : std::nullopt;
    if (last && last->next == self) {
      heads.emplace_back(self);
    }
  }
  return heads;
}

bool GreenletWalk::is_greenlet(RemoteAddress object, RemoteAddress type) {
  const auto [known, fresh] = types_.try_emplace(type.value(), false);
  if (fresh) {
    known->second = objects_.is_a(object, kGreenlet);
  }
  return known->second;
}

bool GreenletWalk::follow(RemoteAddress head, std::vector<RemoteAddress>& greenlets) {
  struct Head {
    std::uint64_t next = 0;
    std::uint64_t previous = 0;
    std::uint64_t references = 0;
    RemoteAddress type;
  };
  auto previous = head.value();
  auto node = links_at(objects_.memory(), head.value()).value_or(Links{}).next;
  for (std::size_t count = 0; node != head.value(); ++count) {
    const auto object = objects_.memory().read_value<Head>(RemoteAddress{node});
    if (!object || (object->previous & ~kFlags) != previous || count == kMostObjects ||
        greenlets.size() == kMostGreenlets || !go_on_()) {
      return false;
    }
    if (const RemoteAddress address{node + sizeof(Links)}; is_greenlet(address, object->type)) {
      greenlets.push_back(address);
    }
    previous = node;
    node = object->next & ~kFlags;
  }
  return true;
}

// The type PyGreenlet: weakreflist, dict and pimpl follow the head of the object. Before
// python_state, class Greenlet has the pointer to its functions, since 3.1.1 the greenlet itself,
// the exception state (3 words), the arguments (2) and the stack state (5).
std::optional<GreenletWalk::State> GreenletWalk::state_of(RemoteAddress greenlet) const {
  constexpr std::uint64_t kPimpl = 2 * RemoteObjects::kWord;
  constexpr std::size_t kStack = 6;
  constexpr std::size_t kTopFrame = kStack + 6;  // behind python_state's context
  const auto at = objects_.memory().read_pointer(greenlet + (objects_.layout().head + kPimpl));
  std::array<std::uint64_t, kTopFrame + 2> words{};
  if (!at || at->is_null() ||
      !objects_.memory().read(*at, std::as_writable_bytes(std::span{words}))) {
    return std::nullopt;
  }
  const auto first = std::span{words}.subspan(words[1] == greenlet.value() ? 1 : 0);
  const State state{.stack_start = first[kStack],
                    .stack_stop = first[kStack + 1],
                    .stack_copy = first[kStack + 2],
                    .stack_saved = first[kStack + 3],
                    .top_frame = RemoteAddress{first[kTopFrame]}};
  const bool started = state.stack_stop != 0;
  const bool fits =
      (state.stack_saved == 0) == (state.stack_copy == 0) &&
      (state.stack_saved == 0 || (started && state.stack_start < state.stack_stop &&
                                  state.stack_saved <= state.stack_stop - state.stack_start)) &&
      (state.top_frame.is_null() || objects_.is_static(state.top_frame, "frame"));
  return fits ? std::optional{state} : std::nullopt;
}

// Since 3.0.3 greenlet links the frames of a suspended greenlet without their entry frames, which
// are on its C stack: the part that another greenlet uses is in a copy.
void GreenletWalk::read_frames(const State& state, RawGreenlet& greenlet) {
  const auto& memory = objects_.memory();
  const auto& stack = objects_.stack();
  const auto moved = [&state](RemoteAddress frame) {
    const auto offset = frame.value() - state.stack_start;
    return offset < state.stack_saved ? RemoteAddress{state.stack_copy + offset} : frame;
  };
  auto next =
      memory.read_pointer(state.top_frame + (objects_.layout().head + RemoteObjects::kWord));
  std::unordered_set<std::uint64_t> met;
  while (next && !next->is_null()) {
    const auto frame = moved(*next);
    const auto owner = memory.read_value<std::uint8_t>(frame + stack.owner);
    const auto code = memory.read_pointer(frame + stack.executable);
    const auto instruction = memory.read_pointer(frame + stack.instruction);
    if (!owner || !code || !instruction || !met.insert(next->value()).second ||
        greenlet.frames.size() == kMostGreenletFrames || frames_ == kMostFramesOfGreenlets) {
      greenlet.whole = false;
      return;
    }
    if (*owner < stack.owners.first_entry) {
      ++frames_;
      greenlet.frames.push_back({.frame = *next,
                                 .code = RemoteAddress{code->value() & ~stack.executable_tags},
                                 .instruction = *instruction});
    }
    next = memory.read_pointer(frame + stack.previous);
  }
  greenlet.whole = greenlet.whole && next.has_value();
}

RawGreenlets GreenletWalk::list(RemoteAddress interpreter) {
  RawGreenlets result;
  std::vector<RemoteAddress> found;
  const auto heads = list_heads(interpreter);
  result.complete = !heads.empty();
  for (const auto head : heads) {
    constexpr int kAttempts = 3;
    bool whole = false;
    const auto before = found.size();
    for (int attempt = 0; attempt < kAttempts && !whole && go_on_(); ++attempt) {
      found.resize(before);
      whole = follow(head, found);
    }
    result.complete = result.complete && whole;
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (const auto address : found) {
    const auto state = go_on_() ? state_of(address) : std::nullopt;
    result.complete = result.complete && state;
    if (!state || state->top_frame.is_null()) {
      continue;
    }
    RawGreenlet greenlet{.address = address,
                         .type = objects_.type_name(address),
                         .stack = RemoteAddress{state->stack_start}};
    read_frames(*state, greenlet);
    if (!greenlet.frames.empty()) {
      result.greenlets.push_back(std::move(greenlet));
    }
  }
  return result;
}

}  // namespace pyinject::python
