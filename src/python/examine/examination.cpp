#include "python/examine/examination.hpp"

#include "elf/load_bias.hpp"
#include "python/layout/function_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pyinject::python {

namespace {

constexpr std::size_t kCodeBytes = 512;  // more than any accessor has

std::shared_ptr<const MappedFile> look_at_file(Examined& process, const procfs::Mapping& mapping) {
  if (process.image == nullptr) {
    return process.files.look(process.pid, mapping, process.budget, process.cancellation).file;
  }
  if (process.given_up()) {
    return nullptr;
  }
  --process.budget.files;
  auto opened = process.image->open(mapping);
  auto* const file = std::get_if<base::UniqueFd>(&opened);
  return file == nullptr
             ? nullptr
             : process.files.look(std::move(*file), process.budget, process.cancellation).file;
}

std::vector<std::byte> code_of(const Examined& process, std::string_view symbol) {
  const auto size = process.interpreter.file->symbols.find(symbol)->second.size;
  std::vector<std::byte> code(std::min<std::size_t>(size == 0 ? kCodeBytes : size, kCodeBytes));
  if (!process.memory->read(process.interpreter.address(symbol), code)) {
    code.clear();
  }
  return code;
}

// Reasons that can also result from combining the mappings of one program image with the memory of
// the next, or from an image that is half mapped, where one segment has another's bytes.
bool may_be_of_memory_that_changes(Reason reason) {
  return reason == Reason::kLayoutMismatch || reason == Reason::kNoMailboxSpace ||
         reason == Reason::kNoLibpythonSymbols || reason == Reason::kForeignEvaluator ||
         reason == Reason::kFinalizing || reason == Reason::kFreeThreaded;
}

using Place = std::pair<base::RemoteAddress, std::uint64_t>;

std::vector<Place> places_of_code(const std::vector<procfs::Mapping>& maps) {
  std::vector<Place> places;
  for (const auto& mapping : maps) {
    if (mapping.executable && mapping.inode != 0) {
      places.emplace_back(mapping.begin, mapping.inode);
    }
  }
  return places;
}

// Whether its code has moved: the process has exec'ed.
bool executes_another(const Examined& process) {
  const auto now = procfs::read_maps(process.pid).value_or(std::vector<procfs::Mapping>{});
  return places_of_code(now) != places_of_code(process.maps);
}

// True while the dynamic loader has not mapped the libraries yet.
bool is_being_loaded(Examined& process) {
  bool loaded = true;
  for (const auto& mapping : process.maps) {
    const auto module =
        mapping.executable && mapping.inode != 0 ? process.module_of(mapping) : std::nullopt;
    if (process.given_up()) {
      return false;
    }
    if (module && module->file->defines("sem_post")) {
      return false;
    }
    loaded = loaded && !(module && module->file->has_program_interpreter);
  }
  return !loaded;
}

}  // namespace

std::variant<base::UniqueFd, procfs::NotOpened> Examined::open(
    const procfs::Mapping& mapping) const {
  return image != nullptr ? image->open(mapping) : procfs::open_mapped_file(pid, mapping);
}

std::optional<Module> Examined::module_of(const procfs::Mapping& mapping) {
  auto file = look_at_file(*this, mapping);
  if (file == nullptr) {
    return std::nullopt;
  }
  const auto bias = elf::load_bias(file->segments, mapping.begin, mapping.offset, true);
  if (!bias) {
    return std::nullopt;
  }
  const auto start = elf::start_of(file->segments, *bias);
  if (!procfs::shows(maps, mapping, start.address, start.offset)) {
    return std::nullopt;
  }
  return Module{.file = std::move(file), .mapping = mapping, .bias = *bias};
}

Refuse Examined::not_examined() const {
  return {Reason::kNotExamined,
          fmt::format(
              "it maps too many or too large files ({} mappings) to find its interpreter in time",
              maps.size()),
          "record it alone: -p " + std::to_string(pid.value())};
}

bool Examined::has_started(base::RemoteAddress flags) const {
  using Flags = std::array<std::uint32_t, 5>;
  return memory->read_value<Flags>(flags) != Flags{};
}

std::optional<std::uint64_t> Examined::probe_code(std::string_view symbol,
                                                  const CodeProbe& probe) const {
  if (const auto found = probe(code_of(*this, symbol), interpreter.address(symbol))) {
    return found;
  }
  for (const auto& part : parts_reached(target, symbol)) {
    std::vector<std::byte> code(part.end.value() - part.begin.value());
    const auto found = memory->read(part.begin, code) ? probe(code, part.begin) : std::nullopt;
    if (found) {
      return found;
    }
  }
  return std::nullopt;
}

// The table is of release builds; those with Py_DEBUG have more fields.
std::string Examined::remedy_for_layout() const {
  return interpreter.file->defines("_Py_RefTotal")
             ? "record --engine bpf: it is a debug build (--with-pydebug)"
             : "record --engine bpf, and please report this build";
}

Detection examine(Examined& process) {
  try {
    find_interpreter(process);
    check_interpreter(process);
    find_runtime(process);
    if (process.purpose == Purpose::kActivate) {
      check_code(process);
      find_mailbox(process);
      read_state(process);
      look_at_surroundings(process);
    }
    return std::move(process.target);
  } catch (Refuse& refuse) {
    if (process.image == nullptr && may_be_of_memory_that_changes(refuse.reason) &&
        !process.given_up() && (is_being_loaded(process) || executes_another(process))) {
      refuse = {.reason = Reason::kNotInitialized,
                .found = "it has just exec'ed its program",
                .remedy = "try again when the program has started",
                .initialized = refuse.initialized};
    }
    const auto* const file = process.interpreter.file.get();
    return Refused{.refusal = {.reason = refuse.reason,
                               .found = std::move(refuse.found),
                               .remedy = std::move(refuse.remedy)},
                   .version = process.target.version,
                   .interpreter = process.target.interpreter,
                   .frame_pointers = file == nullptr ? std::nullopt : file->frame_pointers,
                   .initialized = refuse.initialized};
  }
}

std::variant<Module, Refusal> interpreter_of(Examined& process) {
  try {
    find_interpreter(process);
    return process.interpreter;
  } catch (Refuse& refuse) {
    return Refusal{.reason = refuse.reason,
                   .found = std::move(refuse.found),
                   .remedy = std::move(refuse.remedy)};
  }
}

}  // namespace pyinject::python
