#include "pyinject/python/stack_reader.hpp"

#include "python/layout/frame_reading.hpp"
#include "python/stacks/live_stacks.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace pyinject::python {

class StackReader::Impl : public LiveStacks {
 public:
  using LiveStacks::LiveStacks;
};

std::variant<StackReader, std::string> StackReader::of(const Target& target) {
  const auto prepared = prepare_frame_reading(target);
  if (const auto* why = std::get_if<std::string>(&prepared)) {
    return *why;
  }
  const auto& [file, layout] = std::get<FrameReading>(prepared);
  constexpr auto kType = std::to_array<std::string_view>({"PyCode_Type"});
  const auto symbols = file.find_symbols(kType);
  if (symbols.empty()) {
    return std::string{"its interpreter does not export PyCode_Type"};
  }
  auto impl = std::make_unique<Impl>(std::make_unique<memory::ProcessMemory>(target.id.pid),
                                     target.id.pid, layout, target.addresses.runtime,
                                     target.bias.apply(symbols.begin()->second.address));
  // Tried: when all that is there makes no sense, the layout is another one. The stack of a single
  // busy thread may make none several times in a row.
  constexpr int kTries = 20;
  for (int tries = 1; impl->read().empty() && !impl->unread().empty(); ++tries) {
    if (tries == kTries && impl->losses().changed == 0) {
      return std::string{"its Python frames are not as this version's should be"};
    }
    if (tries == kTries) {
      break;
    }
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
const std::vector<base::Tid>& StackReader::unread() const { return impl_->unread(); }

}  // namespace pyinject::python
