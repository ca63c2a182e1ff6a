#include "inspect/stopped/native_stacks.hpp"

#include "bpf/native_tables.hpp"
#include "elf/elf_file.hpp"
#include "elf/function_names.hpp"
#include "elf/load_bias.hpp"
#include "memory/process_memory.hpp"
#include "unwind/unwinder.hpp"
#include "weave/recorded_files.hpp"
#include "weave/symbol_files.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace pyinject::inspect {

namespace {

constexpr std::size_t kMostOfStack = std::size_t{1} << 20U;
constexpr std::size_t kMostOfProcess = std::size_t{64} << 20U;
constexpr std::size_t kBytesToRecognise = 1024;
constexpr unwind::Time kNow = 0;

// The trampolines of CPython in a running process, by their code.
class Trampolines : public unwind::TrampolineFinder {
 public:
  Trampolines(const std::vector<procfs::Mapping>& maps, base::Pid alive)
      : maps_{maps}, memory_{alive} {}

  [[nodiscard]] std::optional<unwind::Trampoline> find(unwind::ProcessNumber /*pid*/,
                                                       std::uint64_t address) const override {
    const auto* const mapping = procfs::find_mapping(maps_, base::RemoteAddress{address});
    if (mapping == nullptr || !mapping->executable || !mapping->path.empty()) {
      return std::nullopt;
    }
    const auto& known = recognise(*mapping);
    if (!known || known->place == 0) {
      return std::nullopt;
    }
    const auto offset = address - mapping->begin.value();
    if (offset % known->place >= known->chunks) {
      return std::nullopt;
    }
    return unwind::Trampoline{.begin = address - offset % known->place, .size = known->chunks};
  }

 private:
  const std::optional<native_mapping>& recognise(const procfs::Mapping& mapping) const {
    const auto [place, added] = known_.try_emplace(mapping.begin);
    std::vector<std::byte> code(std::min<std::uint64_t>(mapping.size(), kBytesToRecognise));
    if (added && memory_.read(mapping.begin, code)) {
      place->second = bpf::recognise_trampolines(code);
      if (place->second && place->second->kind != NATIVE_TRAMPOLINE) {
        place->second.reset();
      }
    }
    return place->second;
  }

  const std::vector<procfs::Mapping>& maps_;
  memory::ProcessMemory memory_;
  mutable std::map<base::RemoteAddress, std::optional<native_mapping>> known_;
};

unwind::Registers unwind_registers(const tracee::Registers& registers) {
  unwind::Registers result;
  const auto values = tracee::in_dwarf_order(registers);
  static_assert(std::tuple_size_v<decltype(tracee::in_dwarf_order(registers))> ==
                unwind::kRegisters);
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.set(i, values[i]);
  }
  return result;
}

std::string why(const unwind::Unwound& unwound) {
  using unwind::EndOfStack;
  switch (unwound.end) {
    case EndOfStack::kWhole:
      return {};
    case EndOfStack::kCut:
    case EndOfStack::kLimit:
      return "the C stack is too large";
    case EndOfStack::kNoInformation:
      return "no unwind information in " + (unwound.file == nullptr || unwound.file->path.empty()
                                                ? std::string{"generated code"}
                                                : unwound.file->path);
    case EndOfStack::kBroken:
      break;
  }
  return "the C stack cannot be unwound";
}

// Names the functions whose code is in FILE, by their address in the process.
void name_functions(weave::RecordedFiles& files, const unwind::MappedFile& file,
                    std::map<std::uint64_t, NativeFunction>& functions,
                    const std::vector<std::uint64_t>& addresses) {
  const weave::SymbolFiles symbols{files};
  const auto elf = symbols.open(file);
  const auto bias = elf ? elf::load_bias(elf->segments(), base::RemoteAddress{file.begin},
                                         file.offset, file.executable)
                        : std::nullopt;
  if (!bias) {
    return;
  }
  std::vector<base::ElfAddress> in_file;
  std::ranges::transform(addresses, std::back_inserter(in_file), [&bias](std::uint64_t address) {
    return bias->remove(base::RemoteAddress{address});
  });
  const auto names = elf::function_names(*symbols.open_symbols(file), in_file);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    auto& function = functions.at(addresses[i]);
    function.name = names[i];
    function.address = in_file[i].value();
  }
}

}  // namespace

NativeStacks::NativeStacks(const python::Target* target) {
  if (target != nullptr) {
    evaluator_ = python::evaluator_ranges(*target);
  }
}

namespace {

// The end of the stack of a thread in MAPPING. The threading library puts the thread's control
// block, at which the thread pointer points, above it; other stacks may follow in the same mapping.
std::uint64_t end_of_stack(const procfs::Mapping& mapping, const ThreadRegisters& thread) {
  const auto block = thread.thread_pointer;
  return block > thread.registers.sp() && block < mapping.end.value() ? block : mapping.end.value();
}

}  // namespace

void NativeStacks::copy(const std::map<base::Tid, tracee::Registers>& threads) {
  std::map<base::Tid, ThreadRegisters> all;
  for (const auto& [tid, registers] : threads) {
    all.emplace(tid, ThreadRegisters{.registers = unwind_registers(registers),
                                     .thread_pointer = registers.thread_pointer()});
  }
  copy(all);
}

void NativeStacks::copy(const std::map<base::Tid, ThreadRegisters>& threads) {
  copies_.clear();
  if (threads.empty()) {
    return;
  }
  alive_ = base::Pid{threads.begin()->first.value()};
  maps_ = procfs::read_maps(alive_).value_or(std::vector<procfs::Mapping>{});
  auto left = kMostOfProcess;
  std::vector<memory::ReadPiece> pieces;
  for (const auto& [tid, thread] : threads) {
    const base::RemoteAddress begin{thread.registers.sp()};
    const auto* const stack = procfs::find_mapping(maps_, begin);
    auto& copy = copies_[tid];
    copy.registers = thread.registers;
    if (stack == nullptr) {
      continue;
    }
    const auto size = end_of_stack(*stack, thread) - begin.value();
    const auto copied = std::min({size, std::uint64_t{kMostOfStack}, std::uint64_t{left}});
    left -= copied;
    copy.cut = copied < size;
    copy.bytes.resize(copied);
    pieces.push_back({.from = begin, .into = copy.bytes});
  }
  const memory::ProcessMemory reader{alive_};
  reader.read_each(pieces);
  for (auto& [tid, copy] : copies_) {
    const base::RemoteAddress begin{copy.registers.sp()};
    const auto piece = std::ranges::find(pieces, begin, &memory::ReadPiece::from);
    // A part may be unreadable: a guard page before the next stack.
    for (bool done = piece == pieces.end() || piece->done; !done && !copy.bytes.empty();
         done = reader.read(begin, copy.bytes)) {
      copy.bytes.resize(copy.bytes.size() / 2);
      copy.cut = true;
    }
  }
}

std::map<base::Tid, NativeStack> NativeStacks::unwind() const {
  const auto pid = static_cast<unwind::ProcessNumber>(alive_.value());
  unwind::AddressSpaces spaces;
  for (const auto& mapping : maps_) {
    spaces.map(kNow, pid,
               {.begin = mapping.begin.value(),
                .end = mapping.end.value(),
                .offset = mapping.offset,
                .executable = mapping.executable,
                .path = mapping.path.empty() ? "//anon" : mapping.path,
                .device_major = mapping.device_major,
                .device_minor = mapping.device_minor,
                .inode = mapping.inode,
                .mapped_by = pid});
  }
  spaces.complete();
  weave::RecordedFiles files;
  unwind::Objects objects{files};
  const Trampolines trampolines{maps_, alive_};
  unwind::Unwinder unwinder{spaces, objects, trampolines};

  std::map<base::Tid, std::vector<std::uint64_t>> chains;
  std::map<base::Tid, NativeStack> stacks;
  std::map<std::uint64_t, NativeFunction> functions;
  std::map<const unwind::MappedFile*, std::vector<std::uint64_t>> by_file;
  for (const auto& [tid, copy] : copies_) {
    auto& chain = chains[tid];
    const auto unwound = unwinder.unwind(
        pid, kNow, copy.registers,
        {.begin = copy.registers.sp(), .bytes = copy.bytes, .cut = copy.cut}, chain);
    stacks[tid].missing = why(unwound);
    for (const auto address : chain) {
      const auto [place, added] = functions.try_emplace(address);
      if (!added) {
        continue;
      }
      auto& function = place->second;
      function.address = address;
      if (std::ranges::any_of(evaluator_, [address](const auto& range) {
            return range.contains(base::RemoteAddress{address});
          })) {
        function.kind = weave::AddressKind::kEvaluator;
      } else if (trampolines.find(pid, address)) {
        function.kind = weave::AddressKind::kTrampoline;
      }
      const auto* const file = spaces.find(pid, kNow, address);
      if (file != nullptr && file->path != "//anon") {
        function.file = file->path;
        by_file[file].push_back(address);
      }
    }
  }
  for (const auto& [file, addresses] : by_file) {
    name_functions(files, *file, functions, addresses);
  }
  for (auto& [tid, stack] : stacks) {
    for (const auto address : chains[tid]) {
      stack.functions.push_back(functions.at(address));
    }
  }
  return stacks;
}

}  // namespace pyinject::inspect
