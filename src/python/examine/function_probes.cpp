#include "python/examine/function_probes.hpp"

#include "base/text.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/error.hpp"
#include "python/examine/examination.hpp"
#include "python/examine/mapped_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>

namespace pyinject::python {

namespace {

constexpr std::string_view kEntry = "function__entry";
constexpr std::string_view kReturn = "function__return";
// The compiler may duplicate the code around a probe several times.
constexpr std::size_t kMostProbes = 64;

Refusal no_probes(std::string found) {
  return {.reason = Reason::kNoFunctionProbes,
          .found = std::move(found),
          .remedy =
              "use a CPython 3.15 that was built --with-dtrace (as Debian's is), or "
              "perf-pyinject record without --functions"};
}

// File, function name, line: fetched by the kernel, the first two through pointers.
std::optional<std::string> fetched(const std::string& arguments) {
  std::vector<elf::UsdtArgument> found;
  for (const auto text : base::split(arguments, ' ')) {
    const auto argument = elf::parse_usdt_argument(text);
    if (!argument) {
      return std::nullopt;
    }
    found.push_back(*argument);
  }
  if (found.size() != 3 || found[0].bytes != 8 || found[1].bytes != 8) {
    return std::nullopt;
  }
  return fmt::format("file=+0({}):ustring func=+0({}):ustring line={}:{}{}", found[0].fetch,
                     found[1].fetch, found[2].fetch, found[2].is_signed ? 's' : 'u',
                     found[2].bytes * 8);
}

std::variant<FunctionProbe, Refusal> translate(const elf::UsdtProbe& probe,
                                               std::span<const elf::Segment> segments) {
  const auto place = elf::file_offset(segments, probe.location, 1);
  const auto counter = probe.semaphore.value() == 0
                           ? std::optional<std::uint64_t>{0}
                           : elf::file_offset(segments, probe.semaphore, 2);
  if (!place || !counter) {
    return no_probes(fmt::format("its probe {} is not in its file", probe.name));
  }
  auto arguments = fetched(probe.arguments);
  if (!arguments) {
    return no_probes(fmt::format("the kernel cannot fetch the arguments of its probe {}: '{}'",
                                 probe.name, base::printable(probe.arguments, 100)));
  }
  return FunctionProbe{.entry = probe.name == kEntry,
                       .offset = *place,
                       .counter_offset = *counter,
                       .arguments = std::move(*arguments)};
}

}  // namespace

std::variant<std::vector<FunctionProbe>, Refusal> choose_function_probes(
    const std::vector<elf::UsdtProbe>& probes, std::span<const elf::Segment> segments) {
  std::vector<FunctionProbe> chosen;
  for (const auto& probe : probes) {
    if (probe.provider != "python" || (probe.name != kEntry && probe.name != kReturn)) {
      continue;
    }
    auto translated = translate(probe, segments);
    if (auto* const refusal = std::get_if<Refusal>(&translated)) {
      return std::move(*refusal);
    }
    auto& one = std::get<FunctionProbe>(translated);
    const bool known = std::ranges::any_of(chosen, [&](const FunctionProbe& other) {
      return other.entry == one.entry && other.offset == one.offset;
    });
    if (!known) {
      chosen.push_back(std::move(one));
    }
  }
  if (chosen.size() > kMostProbes) {
    return no_probes(
        fmt::format("its file claims to have {} probes at function calls", chosen.size()));
  }
  const auto entries = std::ranges::count(chosen, true, &FunctionProbe::entry);
  if (entries == 0 || static_cast<std::size_t>(entries) == chosen.size()) {
    return no_probes("its build has no probes at function calls");
  }
  return chosen;
}

std::variant<FunctionProbes, Refusal> find_function_probes(base::Pid pid) {
  MappedFiles files;
  Examined examined{files, pid, Purpose::kObserve, base::Cancellation::never()};
  auto found = interpreter_of(examined);
  if (auto* const refusal = std::get_if<Refusal>(&found)) {
    return std::move(*refusal);
  }
  const auto& mapping = std::get<Module>(found).mapping;
  FunctionProbes result{.id = examined.target.id,
                        .interpreter = base::printable(mapping.path),
                        .file = {},
                        .probes = {}};
  auto opened = procfs::open_mapped_file(pid, mapping);
  if (const auto* const failure = std::get_if<procfs::NotOpened>(&opened)) {
    return Refusal{.reason = Reason::kNoPermission,
                   .found = fmt::format("cannot open {}: {}", result.interpreter, failure->why),
                   .remedy = "run as root"};
  }
  result.file = std::get<base::UniqueFd>(std::move(opened));
  base::UniqueFd second{::fcntl(result.file.get(), F_DUPFD_CLOEXEC, 3)};
  if (!second.valid()) {
    throw base::SystemError{"cannot duplicate a descriptor", errno};
  }
  const auto file = elf::ElfFile::open(std::move(second));
  if (const auto* const failure = std::get_if<elf::NotElf>(&file)) {
    return no_probes(fmt::format("{}: {}", result.interpreter, failure->why));
  }
  const auto& elf = std::get<elf::ElfFile>(file);
  auto chosen = choose_function_probes(elf::read_usdt_probes(elf), elf.segments());
  if (auto* const refusal = std::get_if<Refusal>(&chosen)) {
    refusal->found = fmt::format("{}: {}", result.interpreter, refusal->found);
    return std::move(*refusal);
  }
  result.probes = std::get<std::vector<FunctionProbe>>(std::move(chosen));
  return result;
}

}  // namespace pyinject::python
