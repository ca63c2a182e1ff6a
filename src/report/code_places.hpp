// Addresses of callchains: which file and which function is there.
#pragma once

#include "elf/elf_file.hpp"
#include "perfdata/input.hpp"
#include "procfs/kernel_symbols.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/report/profile.hpp"
#include "unwind/address_spaces.hpp"
#include "weave/own_files.hpp"
#include "weave/perf_maps.hpp"
#include "weave/recorded_files.hpp"
#include "weave/symbol_files.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::report {

// Numbers the distinct places that addresses lead to; later gives all of them their names at once.
class CodePlaces {
 public:
  using Open = std::function<base::UniqueFd(std::uint32_t pid)>;
  // SPACES must be complete, and outlive this object. INPUT: of the recording.
  CodePlaces(const unwind::AddressSpaces& spaces, const perfdata::Input& input, Open open_perf_map);

  // Code in no file and without a name.
  static constexpr std::uint32_t kUnknown = 0;

  // A place and the time in which the address leads to it: [from, until).
  struct Found {
    std::uint32_t place = kUnknown;
    unwind::Time from = 0;
    unwind::Time until = 0;
  };
  [[nodiscard]] Found user(std::uint32_t pid, unwind::Time time, std::uint64_t address);
  [[nodiscard]] std::uint32_t kernel(std::uint64_t address);
  // The kernel's address of SYMBOL in the recording, from its mapping: "_text". If this machine's
  // kernel has another one, the recorded kernel is another one, and its functions get no names.
  void set_kernel(const std::string& symbol, std::uint64_t address);

  // What the Python function at PLACE does; kUnknown: it does not say so, or is none.
  [[nodiscard]] sample::Does does_of(std::uint32_t place) const;

  // Adds functions and frames of all places to PROFILE, and returns the frame of each place.
  [[nodiscard]] std::vector<std::uint32_t> name_all(Profile& profile);
  // By object: whether it has the names of Python functions and cannot be read.
  [[nodiscard]] std::vector<bool> lost_names() const;
  // Servers had files with symbols that did not arrive in time.
  [[nodiscard]] bool late_symbols() const { return servers_.late(); }
  // By object: whether it was deleted before it was recorded, and cannot be read.
  [[nodiscard]] std::vector<bool> lost_files() const;

 private:
  enum class PlaceKind : std::uint8_t { kUnknown, kFile, kKernel, kPerfMap };
  struct Place {
    PlaceKind kind = PlaceKind::kUnknown;
    std::uint32_t object = 0;   // index in objects_
    std::uint64_t address = 0;  // in the file, in the kernel, or in the process
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const {
      constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
      const auto where = std::uint64_t{place.object} << 2U | static_cast<std::uint64_t>(place.kind);
      return (place.address + where * kOdd) * kOdd >> 16U;
    }
  };
  struct LoadedObject {
    Object object;
    // Opened for its segments and again for its names: a recording may have thousands of files.
    std::optional<unwind::MappedFile> file{};
    std::vector<elf::Segment> segments{};
    bool names = false;      // of Python functions
    bool synthetic = false;  // at synthetic addresses (weave/synthetic_names.hpp)
    std::uint32_t pid = 0;   // of a perf map
  };
  // A mapping's object and the difference between an address and the file's one.
  struct MappedObject {
    std::uint32_t object = 0;
    base::LoadBias bias;
    bool perf_map = false;
  };
  std::uint32_t number(const Place& place);
  const MappedObject& mapped(const unwind::MappedFile& file, std::uint32_t pid);
  [[nodiscard]] MappedObject load(const unwind::MappedFile& file, std::uint32_t pid);
  [[nodiscard]] std::uint32_t object_of_map(std::uint32_t pid);
  [[nodiscard]] std::optional<elf::ElfFile> open(const unwind::MappedFile& file, bool for_names);
  void name_by_files(std::vector<std::string>& names);
  [[nodiscard]] std::string name_by_map(const Place& place) const;
  [[nodiscard]] bool is_trampoline(const Place& place) const;

  const unwind::AddressSpaces& spaces_;
  weave::OwnFiles own_;
  weave::RecordedFiles files_;
  weave::DebugServers servers_;
  weave::SymbolFiles symbols_{files_, &servers_};
  weave::PerfMaps maps_;
  procfs::KernelSymbols kernel_symbols_ = procfs::KernelSymbols::read();
  bool other_kernel_ = false;
  std::vector<LoadedObject> objects_;
  std::map<std::string, std::uint32_t> object_numbers_;  // by file identity
  std::optional<std::uint32_t> kernel_object_;
  std::unordered_map<const unwind::MappedFile*, MappedObject> mapped_;
  std::vector<Place> places_{Place{}};
  std::unordered_map<Place, std::uint32_t, PlaceHash> numbers_;
};

// The parts of a symbol `py::NAME:FILE` or `py::NAME:FILE:LINE`; nullopt: it is none.
struct PythonSymbol {
  std::string name;
  std::string file;
  std::uint32_t line = 0;
};
[[nodiscard]] std::optional<PythonSymbol> parse_python_symbol(const std::string& symbol);

// Whether SYMBOL is a mark of this tool: "[GIL held]", "[task NAME]", "[preempted]", ...
[[nodiscard]] bool is_mark(const std::string& symbol);

}  // namespace pyinject::report
