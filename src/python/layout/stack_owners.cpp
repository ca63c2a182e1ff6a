#include "python/layout/stack_owners.hpp"

namespace pyinject::python {

void StackOwners::clear() {
  threads_.clear();
  main_.reset();
}

base::Tid StackOwners::owner(const memory::MemoryReader& memory, base::RemoteAddress state,
                             base::Tid own) const {
  constexpr std::uint64_t kMostState = 8192;  // a state that runs nothing has its _PyCFrame inside
  if (!needed()) {
    return own;
  }
  const auto cframe = memory.read_pointer(state + layout_.stack.current_frame);
  if (!cframe || cframe->is_null() || cframe->value() - state.value() < kMostState) {
    return own;
  }
  const auto above = threads_.upper_bound(cframe->value());
  return above != threads_.end() ? above->second : main_.value_or(own);
}

std::optional<base::Tid> StackOwners::at(base::RemoteAddress address,
                                         const std::vector<procfs::Mapping>& mappings) const {
  const auto* const mapping = procfs::find_mapping(mappings, address);
  const auto above = threads_.upper_bound(address.value());
  if (mapping == nullptr) {
    return std::nullopt;
  }
  if (above != threads_.end() && mapping->contains(base::RemoteAddress{above->first})) {
    return above->second;
  }
  return mapping->path == "[stack]" ? main_ : std::nullopt;
}

}  // namespace pyinject::python
