#include "pyinject/python/stack_reader.hpp"

#include "python/layout/process_image.hpp"
#include "python/stacks/live_stacks.hpp"

#include <memory>
#include <utility>

namespace pyinject::python {

class StackReader::Impl {
 public:
  Impl(std::unique_ptr<RunningProcess> process, std::unique_ptr<LiveStacks> stacks)
      : process_{std::move(process)}, stacks_{std::move(stacks)} {}

  [[nodiscard]] LiveStacks& stacks() { return *stacks_; }

 private:
  std::unique_ptr<RunningProcess> process_;
  std::unique_ptr<LiveStacks> stacks_;
};

std::variant<StackReader, std::string> StackReader::of(const Target& target) {
  auto process = std::make_unique<RunningProcess>(target.id.pid);
  auto stacks = open_stacks(target, *process);
  if (auto* const why = std::get_if<std::string>(&stacks)) {
    return std::move(*why);
  }
  return StackReader{std::make_unique<Impl>(
      std::move(process), std::get<std::unique_ptr<LiveStacks>>(std::move(stacks)))};
}

StackReader::StackReader(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
StackReader::StackReader(StackReader&& other) noexcept = default;
StackReader& StackReader::operator=(StackReader&& other) noexcept = default;
StackReader::~StackReader() = default;

std::vector<ThreadStack> StackReader::read() { return impl_->stacks().read(); }
std::vector<ThreadStack> StackReader::read(std::span<const base::Tid> tids) {
  return impl_->stacks().read(tids);
}
std::optional<CodeNames> StackReader::names(base::RemoteAddress code) {
  return impl_->stacks().names(code);
}
std::optional<CodeNames> StackReader::names(const PythonFrame& frame) const {
  return impl_->stacks().names(frame);
}
const StackReader::Losses& StackReader::losses() const { return impl_->stacks().losses(); }
const std::vector<base::Tid>& StackReader::unread() const { return impl_->stacks().unread(); }
std::optional<base::Tid> StackReader::main_thread() const { return impl_->stacks().main_thread(); }

}  // namespace pyinject::python
