#include "python/activate/pinned_arenas.hpp"

#include "python/examine/code_arenas.hpp"

#include <utility>
#include <variant>

namespace pyinject::python {

std::optional<std::string> pin_code_arenas(const AttachContext& context,
                                           const std::vector<procfs::Mapping>& maps) {
  if (context.layout.code_arenas == 0) {
    return std::nullopt;
  }
  const auto head = context.target.addresses.runtime + context.layout.code_arenas;
  auto found = read_code_arenas(context.memory, head, maps);
  if (std::holds_alternative<std::string>(found)) {
    const auto now = procfs::read_maps(context.target.id.pid);
    found = read_code_arenas(context.memory, head, now.value_or(maps));
  }
  if (auto* const wrong = std::get_if<std::string>(&found)) {
    return std::move(*wrong);
  }
  for (const auto& arena : std::get<std::vector<CodeArena>>(found)) {
    if (!arena.pinned && !context.memory.write_value(arena.size_field, kPinnedSize)) {
      return std::string{"an arena record cannot be written"};
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::python
