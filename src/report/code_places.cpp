#include "report/code_places.hpp"

#include "base/text.hpp"
#include "elf/function_names.hpp"
#include "elf/load_bias.hpp"
#include "report/demangled.hpp"
#include "weave/synthetic_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <variant>

namespace pyinject::report {

namespace {

constexpr std::string_view kPythonPrefix = "py::";
constexpr std::string_view kKernel = "[kernel.kallsyms]";

std::string key_of(const unwind::MappedFile& file) {
  return !file.build_id.empty() ? file.build_id
         : file.inode != 0      ? fmt::format("{}:{}:{} {}", file.device_major, file.device_minor,
                                              file.inode, file.path)
                                : file.path;
}

// Memory without a file, where perf looks for a perf map (linux, tools/perf/util/map.c,
// is_anon_memory()).
bool is_anonymous(const std::string& path) {
  return path.starts_with("//anon") || path.starts_with("/dev/zero") ||
         path.starts_with("/anon_hugepage") || path.starts_with("[anon");
}

}  // namespace

std::optional<PythonSymbol> parse_python_symbol(const std::string& symbol) {
  if (!symbol.starts_with(kPythonPrefix)) {
    return std::nullopt;
  }
  // A qualified name has no colon; a file name may have some.
  const auto rest = std::string_view{symbol}.substr(kPythonPrefix.size());
  const auto colon = rest.find(':');
  PythonSymbol result{.name = std::string{rest.substr(0, colon)}, .file = {}};
  if (colon == std::string_view::npos) {
    return result;
  }
  auto file = rest.substr(colon + 1);
  const auto last = file.rfind(':');
  if (last != std::string_view::npos && last > 0) {
    if (const auto line = base::parse_number<std::uint32_t>(file.substr(last + 1))) {
      result.line = *line;
      file = file.substr(0, last);
    }
  }
  result.file = file;
  return result;
}

bool is_mark(const std::string& symbol) {
  constexpr auto kWhole = std::to_array<std::string_view>(
      {"[GIL held]", "[waiting for the GIL]", "[preempted]", "[unnamed Python functions]",
       "[before the attach]", "[greenlet]", "[greenlet switch]"});
  constexpr auto kBegins = std::to_array<std::string_view>(
      {"[task ", "[truncated: ", "[no unwind info: ", "[broken stack: "});
  return symbol.ends_with(']') && (std::ranges::find(kWhole, symbol) != kWhole.end() ||
                                   std::ranges::any_of(kBegins, [&](std::string_view begin) {
                                     return symbol.starts_with(begin);
                                   }));
}

CodePlaces::CodePlaces(const unwind::AddressSpaces& spaces, const perfdata::Input& input,
                       Open open_perf_map)
    : spaces_{spaces},
      own_{input},
      maps_{spaces, [open = std::move(open_perf_map)](std::uint32_t pid) {
              return open ? open(pid) : base::UniqueFd{};
            }} {}

void CodePlaces::set_kernel(const std::string& symbol, std::uint64_t address) {
  // The section's first symbols are all at the same address.
  other_kernel_ = address == 0 || !kernel_symbols_.has(symbol, address);
}

std::uint32_t CodePlaces::number(const Place& place) {
  const auto [entry, fresh] = numbers_.try_emplace(place, places_.size());
  if (fresh) {
    places_.push_back(place);
  }
  return entry->second;
}

std::uint32_t CodePlaces::kernel(std::uint64_t address) {
  if (!kernel_object_) {
    kernel_object_ = static_cast<std::uint32_t>(objects_.size());
    objects_.push_back({.object = {.path = std::string{kKernel}}});
  }
  return number({.kind = PlaceKind::kKernel, .object = *kernel_object_, .address = address});
}

CodePlaces::Found CodePlaces::user(std::uint32_t pid, unwind::Time time, std::uint64_t address) {
  const auto found = spaces_.look_up(pid, time, address);
  Found result{.place = kUnknown, .from = found.from, .until = found.until};
  if (found.file == nullptr) {
    return result;
  }
  const auto& object = mapped(*found.file, pid);
  result.place =
      object.perf_map
          ? number({.kind = PlaceKind::kPerfMap, .object = object.object, .address = address})
          : number({.kind = PlaceKind::kFile,
                    .object = object.object,
                    .address = object.bias.remove(base::RemoteAddress{address}).value()});
  return result;
}

const CodePlaces::MappedObject& CodePlaces::mapped(const unwind::MappedFile& file,
                                                   std::uint32_t pid) {
  // A forked child has its parent's mappings, but a map of its own.
  if (is_anonymous(file.path)) {
    return mapped_
        .insert_or_assign(&file,
                          MappedObject{.object = object_of_map(pid), .bias = {}, .perf_map = true})
        .first->second;
  }
  const auto known = mapped_.find(&file);
  return known != mapped_.end() ? known->second
                                : mapped_.emplace(&file, load(file, pid)).first->second;
}

std::uint32_t CodePlaces::object_of_map(std::uint32_t pid) {
  auto path = fmt::format("/tmp/perf-{}.map", pid);
  const auto [entry, fresh] = object_numbers_.try_emplace(path, objects_.size());
  if (fresh) {
    objects_.push_back({.object = {.path = std::move(path)}, .pid = pid});
  }
  return entry->second;
}

CodePlaces::MappedObject CodePlaces::load(const unwind::MappedFile& file, std::uint32_t pid) {
  auto wanted = own_.identified(file);
  const auto [entry, fresh] = object_numbers_.try_emplace(key_of(wanted), objects_.size());
  if (fresh) {
    auto& object = objects_.emplace_back(
        LoadedObject{.object = {.path = file.path, .build_id = wanted.build_id}, .pid = pid});
    // The images of names have the addresses of the process.
    object.names = file.begin == file.offset && file.path.starts_with('/');
    object.synthetic = object.names && file.end - file.begin == weave::SyntheticNames::kSize;
    if (const auto elf = open(wanted, false)) {
      object.segments = elf->segments();
      object.file = std::move(wanted);
    }
  }
  const auto& object = objects_[entry->second];
  MappedObject result{.object = entry->second, .bias = base::LoadBias{file.begin - file.offset}};
  if (object.file && !object.names) {
    if (const auto bias = elf::load_bias(object.segments, base::RemoteAddress{file.begin},
                                         file.offset, file.executable)) {
      result.bias = *bias;
    }
  }
  return result;
}

std::optional<elf::ElfFile> CodePlaces::open(const unwind::MappedFile& file, bool for_names) {
  if (auto own = own_.image(file.build_id); own.valid()) {
    auto opened = elf::ElfFile::open(std::move(own));
    auto* const elf = std::get_if<elf::ElfFile>(&opened);
    return elf == nullptr ? std::nullopt : std::optional{std::move(*elf)};
  }
  return for_names ? symbols_.open_symbols(file) : symbols_.open(file);
}

void CodePlaces::name_by_files(std::vector<std::string>& names) {
  std::vector<std::vector<std::uint32_t>> by_object(objects_.size());
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    if (places_[place].kind == PlaceKind::kFile) {
      by_object[places_[place].object].push_back(place);
    }
  }
  for (std::size_t object = 0; object < by_object.size(); ++object) {
    const auto& file = objects_[object].file;
    const auto elf = file && !by_object[object].empty() ? open(*file, true) : std::nullopt;
    if (!elf) {
      continue;
    }
    std::vector<base::ElfAddress> addresses;
    for (const auto place : by_object[object]) {
      addresses.emplace_back(places_[place].address);
    }
    auto found = elf::function_names(*elf, addresses);
    for (std::size_t i = 0; i < found.size(); ++i) {
      names[by_object[object][i]] = demangled(std::move(found[i]));
    }
  }
}

sample::Does CodePlaces::does_of(std::uint32_t place) const {
  const auto& [kind, object, address] = places_[place];
  const bool synthetic = kind == PlaceKind::kFile && objects_[object].synthetic;
  return synthetic ? weave::SyntheticNames::does_at(address) : sample::Does::kUnknown;
}

std::vector<bool> CodePlaces::lost_names() const {
  std::vector<bool> lost;
  for (const auto& object : objects_) {
    lost.push_back(object.names && !object.file);
  }
  return lost;
}

std::vector<bool> CodePlaces::lost_files() const {
  std::vector<bool> lost;
  for (const auto& object : objects_) {
    const auto& path = object.object.path;
    const bool memory =
        path.starts_with("/memfd:") || path.starts_with("/dev/zero") || path.starts_with("/SYSV");
    lost.push_back(!object.file && !memory && path.starts_with('/') &&
                   path.ends_with(" (deleted)"));
  }
  return lost;
}

std::string CodePlaces::name_by_map(const Place& place) const {
  const auto* const symbol = maps_.symbol(objects_[place.object].pid, place.address);
  return symbol == nullptr ? "" : std::string{symbol->name};
}

// The trampoline's functions have code, and a perf map that names it: /tmp/perf-PID.map, or its
// copy in FILE.names/python-PID. Those that BPF read are in FILE.names/python.
bool CodePlaces::is_trampoline(const Place& place) const {
  const auto& path = objects_[place.object].object.path;
  return place.kind == PlaceKind::kPerfMap || path.find(".names/python-") != std::string::npos;
}

std::vector<std::uint32_t> CodePlaces::name_all(Profile& profile) {
  std::vector<std::string> names(places_.size());
  name_by_files(names);
  for (const auto& each : objects_) {
    profile.objects.push_back(each.object);
  }
  const auto no_object = static_cast<std::uint32_t>(profile.objects.size());
  profile.objects.push_back({.path = ""});
  std::map<std::tuple<Kind, std::string, std::string, std::uint32_t>, std::uint32_t> functions;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> frames;
  std::vector<std::uint32_t> result(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto& place = places_[i];
    auto& name = names[i];
    Function function{.kind = Kind::kNative, .name = {}, .object = place.object};
    if (place.kind == PlaceKind::kUnknown) {
      function.object = no_object;
    } else if (place.kind == PlaceKind::kKernel) {
      function.kind = Kind::kKernel;
      name = other_kernel_ ? "" : std::string{kernel_symbols_.name(place.address)};
    } else if (place.kind == PlaceKind::kPerfMap) {
      name = name_by_map(place);
    }
    std::uint32_t line = 0;
    if (auto python = parse_python_symbol(name)) {
      if (profile.engine.empty() || is_trampoline(place)) {
        profile.engine = is_trampoline(place) ? "trampoline" : "BPF";
      }
      function.kind = Kind::kPython;
      function.name = std::move(python->name);
      function.file = std::move(python->file);
      function.object = no_object;
      line = python->line;
    } else {
      function.kind = is_mark(name) ? Kind::kMark : function.kind;
      function.object = function.kind == Kind::kMark ? no_object : function.object;
      function.name = std::move(name);
    }
    const auto [known, fresh] =
        functions.try_emplace({function.kind, function.name, function.file, function.object},
                              static_cast<std::uint32_t>(profile.functions.size()));
    if (fresh) {
      function.address = function.name.empty() ? place.address : 0;
      profile.functions.push_back(std::move(function));
    }
    const auto [frame, fresh_frame] = frames.try_emplace(
        {known->second, line}, static_cast<std::uint32_t>(profile.frames.size()));
    if (fresh_frame) {
      profile.frames.push_back({.function = known->second, .line = line});
    }
    result[i] = frame->second;
  }
  return result;
}

}  // namespace pyinject::report
