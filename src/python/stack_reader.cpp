#include "pyinject/python/stack_reader.hpp"

#include "python/interpreter_file.hpp"
#include "python/live_stacks.hpp"
#include "python/runtime_layout.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace pyinject::python {

class StackReader::Impl : public LiveStacks {
 public:
  using LiveStacks::LiveStacks;
};

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
  impl->forget_losses();
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
