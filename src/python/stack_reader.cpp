#include "pyinject/python/stack_reader.hpp"

#include "python/code_objects.hpp"
#include "python/frame_walk.hpp"
#include "python/interpreter_file.hpp"
#include "python/page_cache.hpp"
#include "python/runtime_layout.hpp"
#include "python/stack_assembly.hpp"
#include "python/thread_list.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace pyinject::python {

class StackReader::Impl {
 public:
  Impl(const Target& target, const RuntimeLayout& layout, base::RemoteAddress code_type)
      : memory_{target.id.pid},
        layout_{layout},
        pages_{memory_},
        codes_{memory_, layout.stack, code_type},
        threads_{memory_, layout_, target.addresses.runtime, target.id.pid} {}

  std::vector<ThreadStack> read();
  std::vector<ThreadStack> read(std::span<const base::Tid> tids);
  std::optional<CodeNames> names(base::RemoteAddress code);
  [[nodiscard]] std::optional<CodeNames> names(const PythonFrame& frame) const;
  [[nodiscard]] Losses& losses() { return losses_; }

 private:
  enum class Outcome { kRead, kGone, kChanged, kUnreadable };

  void update();
  // The thread with TID, which has the states OWN. False: one of them is another's by now.
  [[nodiscard]] bool read_thread(base::Tid tid, std::span<KnownThread> own,
                                 std::vector<ThreadStack>& stacks);
  [[nodiscard]] Outcome read_stack(KnownThread& thread, RawStack& stack);
  [[nodiscard]] bool look_at_codes(const RawStack& stack);

  tracee::ProcessMemory memory_;
  RuntimeLayout layout_;
  PageCache pages_;
  CodeObjects codes_;
  ThreadList threads_;
  Losses losses_;
};

void StackReader::Impl::update() {
  losses_.interpreters = std::max<std::uint64_t>(losses_.interpreters, threads_.update());
}

std::vector<ThreadStack> StackReader::Impl::read() {
  codes_.begin_round();
  update();
  std::vector<ThreadStack> stacks;
  std::span<KnownThread> left = threads_.threads();
  while (!left.empty()) {
    const auto tid = left.front().tid;
    const auto behind = std::ranges::upper_bound(left, tid, {}, &KnownThread::tid);
    const auto count = static_cast<std::size_t>(behind - left.begin());
    (void)read_thread(tid, left.first(count), stacks);
    left = left.subspan(count);
  }
  return stacks;
}

std::vector<ThreadStack> StackReader::Impl::read(std::span<const base::Tid> tids) {
  codes_.begin_round();
  bool updated = threads_.has_new();
  if (updated) {
    update();
  }
  std::vector<ThreadStack> stacks;
  for (const auto tid : std::set<base::Tid>{tids.begin(), tids.end()}) {
    const auto own = [&] {
      // clang 14 does not compile subranges, which equal_range returns.
      auto& threads = threads_.threads();
      return std::span<KnownThread>{std::ranges::lower_bound(threads, tid, {}, &KnownThread::tid),
                                    std::ranges::upper_bound(threads, tid, {}, &KnownThread::tid)};
    };
    if (!read_thread(tid, own(), stacks) && !updated) {
      updated = true;
      update();
      (void)read_thread(tid, own(), stacks);
    }
  }
  return stacks;
}

bool StackReader::Impl::read_thread(base::Tid tid, std::span<KnownThread> own,
                                    std::vector<ThreadStack>& stacks) {
  std::vector<RawStack> parts;
  for (auto& thread : own) {
    switch (read_stack(thread, parts.emplace_back())) {
      case Outcome::kRead:
        break;
      case Outcome::kGone:
        return false;
      case Outcome::kChanged:
        ++losses_.changed;
        return true;
      case Outcome::kUnreadable:
        ++losses_.unreadable;
        return true;
    }
  }
  auto stack = assembled(tid, joined(std::move(parts)), codes_);
  if (!stack.frames.empty()) {
    stacks.push_back(std::move(stack));
  }
  return true;
}

// Nothing stands still while it is read. What is found the same twice, with the code objects looked
// at between, was there at that time.
StackReader::Impl::Outcome StackReader::Impl::read_stack(KnownThread& thread, RawStack& stack) {
  constexpr int kAttempts = 6;
  bool sense = false;
  std::optional<RawStack> before;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    pages_.refresh(thread.pages);
    if (!threads_.is_still(pages_, thread)) {
      return Outcome::kGone;
    }
    auto now = walk_frames(pages_, layout_.stack, thread.address);
    thread.pages = pages_.used();
    if (before && now && same_calls(*before, *now)) {
      stack = std::move(*now);
      return Outcome::kRead;
    }
    sense = sense || now;
    before = now && look_at_codes(*now) ? std::move(now) : std::nullopt;
  }
  return sense ? Outcome::kChanged : Outcome::kUnreadable;
}

bool StackReader::Impl::look_at_codes(const RawStack& stack) {
  std::vector<base::RemoteAddress> codes;
  codes.reserve(stack.frames.size());
  for (const auto& frame : stack.frames) {
    codes.push_back(frame.code);
  }
  std::ranges::sort(codes);
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return codes_.look_at(codes);
}

std::optional<CodeNames> StackReader::Impl::names(base::RemoteAddress code) {
  if (codes_.find(code) == nullptr && !codes_.look_at(std::array{code})) {
    return std::nullopt;
  }
  return codes_.find(code)->names;
}

std::optional<CodeNames> StackReader::Impl::names(const PythonFrame& frame) const {
  const auto* const code = codes_.find(frame.code);
  return code != nullptr && code->serial == frame.code_serial ? std::optional{code->names}
                                                              : std::nullopt;
}

std::variant<StackReader, std::string> StackReader::of(const Target& target) {
  const auto file = open_interpreter(target);
  if (const auto* why = std::get_if<std::string>(&file)) {
    return *why;
  }
  constexpr auto kType = std::to_array<std::string_view>({"PyCode_Type"});
  const auto symbols = std::get<elf::ElfFile>(file).find_symbols(kType);
  if (symbols.empty()) {
    return std::string{"its interpreter does not export PyCode_Type"};
  }
  const tracee::ProcessMemory memory{target.id.pid};
  std::vector<std::byte> head(kDebugOffsetsBytes);
  if (!memory.read(target.addresses.runtime, head)) {
    return std::string{"its memory cannot be read"};
  }
  const auto layout = parse_layout(target.version, head);
  if (const auto* wrong = std::get_if<std::string>(&layout)) {
    return *wrong;
  }
  const auto& found = std::get<RuntimeLayout>(layout);
  if (auto wrong = implausible(found.stack); !wrong.empty()) {
    return "its debug offsets make no sense: " + wrong;
  }
  if (found.free_threaded) {
    return std::string{"it is a free-threaded build"};
  }
  auto impl =
      std::make_unique<Impl>(target, found, target.bias.apply(symbols.begin()->second.address));
  // Tried: when all that is there makes no sense, the layout is another one.
  const auto stacks = impl->read();
  if (stacks.empty() && impl->losses().unreadable > 0) {
    return std::string{"its Python frames are not as this version's should be"};
  }
  impl->losses() = {};
  return StackReader{std::move(impl)};
}

StackReader::StackReader(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
StackReader::StackReader(StackReader&& other) noexcept = default;
StackReader& StackReader::operator=(StackReader&& other) noexcept = default;
StackReader::~StackReader() = default;

std::vector<ThreadStack> StackReader::read() { return impl_->read(); }
std::vector<ThreadStack> StackReader::read(std::span<const base::Tid> tids) {
  return impl_->read(tids);
}
std::optional<CodeNames> StackReader::names(base::RemoteAddress code) { return impl_->names(code); }
std::optional<CodeNames> StackReader::names(const PythonFrame& frame) const {
  return impl_->names(frame);
}
const StackReader::Losses& StackReader::losses() const { return impl_->losses(); }

}  // namespace pyinject::python
