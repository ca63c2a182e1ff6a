// What this tool's own recorder reads: /proc/kallsyms, /proc/modules, the kernel's notes, lists of
// processors, and its options.
#include "base/text.hpp"
#include "fuzz/fuzz.hpp"
#include "procfs/kernel_code.hpp"
#include "recorder/options.hpp"
#include "recorder/recorded_files.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::fuzz {

namespace {

void check_events(std::string_view text) {
  const auto id = [](std::string_view name) {
    return name.starts_with("sched:") ? std::optional<std::uint64_t>{name.size()} : std::nullopt;
  };
  const auto parsed = recorder::parse_events(text, id);
  if (const auto* const events = std::get_if<std::vector<recorder::NamedEvent>>(&parsed)) {
    require(events->size() <= text.size(), "an event takes a character");
    for (const auto& event : *events) {
      require(!event.name.empty() && event.name.size() <= text.size(), "a name is in the text");
      require(event.period != 0U && event.frequency != 0U, "a rate is not 0");
    }
  }
  const auto words = base::split(text, ' ');
  (void)recorder::parse_options(std::vector<std::string>{words.begin(), words.end()}, id);
}

}  // namespace

void run(Input input) {
  const auto bytes = input.rest();
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const auto code = procfs::find_kernel_code(text);
  require(code.begin == 0 || text.find("text") != std::string_view::npos, "code has its symbol");
  for (const auto& module : procfs::parse_modules(text)) {
    require(module.begin != 0 && text.find(module.name) != std::string_view::npos,
            "a module has a place and a name");
  }
  require(recorder::kernel_build_id(bytes).size() <= bytes.size(), "an id is in the notes");
  const auto processors = recorder::parse_processors(text);
  require(std::ranges::is_sorted(processors) && processors.size() <= 8192, "a list is bounded");
  check_events(text);
}

}  // namespace pyinject::fuzz
