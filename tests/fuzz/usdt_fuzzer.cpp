// The notes of static probes in a file that a target has mapped, up to the line written to the
// kernel.
#include "elf/usdt.hpp"
#include "fuzz/fuzz.hpp"
#include "python/examine/function_probes.hpp"

namespace pyinject::fuzz {

namespace {

// Accepts the characters of a register or memory operand: no space, second argument or other event.
bool is_one_place(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("%+-()0123456789abcdiprsx") == std::string_view::npos &&
         std::ranges::count(text, '(') <= 1 && std::ranges::count(text, '%') == 1;
}

}  // namespace

void run(Input input) {
  const auto base = input.take<std::uint64_t>();
  const auto offset = input.take<std::uint64_t>();
  const auto size = input.take<std::uint64_t>();
  const auto notes = input.rest();
  const auto probes = elf::parse_usdt_notes(notes, base::ElfAddress{base});
  require(probes.size() <= notes.size() / 35, "every note takes some bytes");
  const std::vector<elf::Segment> segments{
      {.type = 1, .address = base::ElfAddress{base}, .offset = offset, .file_size = size}};
  for (const auto& probe : probes) {
    require(probe.arguments.find('\0') == std::string::npos, "a text ends at its NUL");
    const auto argument = elf::parse_usdt_argument(probe.arguments);
    require(!argument || is_one_place(argument->fetch), "an argument is one place");
    const auto place = elf::file_offset(segments, probe.location, 1);
    require(!place || (*place >= offset && *place - offset < size), "a place is in its segment");
  }
  const auto chosen = python::choose_function_probes(probes, segments);
  if (const auto* const found = std::get_if<std::vector<python::FunctionProbe>>(&chosen)) {
    require(found->size() <= 64, "not more events than the kernel may be burdened with");
    for (const auto& probe : *found) {
      require(is_printable(probe.arguments) && std::ranges::count(probe.arguments, ' ') == 2 &&
                  std::ranges::count(probe.arguments, '\n') == 0,
              "three arguments in one line");
      require(probe.offset - offset < size, "the breakpoint is in its segment");
    }
  }
}

}  // namespace pyinject::fuzz
