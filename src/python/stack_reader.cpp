#include "pyinject/python/stack_reader.hpp"

#include "python/frame_reading.hpp"
#include "python/live_stacks.hpp"

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
  auto impl =
      std::make_unique<Impl>(target, layout, target.bias.apply(symbols.begin()->second.address));
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
