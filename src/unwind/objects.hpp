// The files that recorded processes had mapped, and how their functions are stepped out of.
#pragma once

#include "base/budget.hpp"
#include "elf/call_frame_info.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "unwind/address_spaces.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::unwind {

// Finds the file behind a mapping of a process, which may have ended.
class FileFinder {
 public:
  virtual ~FileFinder() = default;
  FileFinder() = default;
  FileFinder(const FileFinder&) = delete;
  FileFinder& operator=(const FileFinder&) = delete;

  // Files that may be the one, the likeliest first, regular and open for reading. Where the record
  // holds a build-id, those of another one are left out by the caller.
  [[nodiscard]] virtual std::vector<base::UniqueFd> candidates(const MappedFile& file) = 0;
};

// One row of an unwind table, made small: what nearly every program counter needs.
struct Rule {
  enum class Kind : std::uint8_t {
    kNone,  // there is no information
    kEnd,   // a thread's first function: it has no caller
    kFast,
    kSlow,  // ROW says it
  };
  static constexpr std::int32_t kUnchanged = INT32_MIN;

  Kind kind = Kind::kNone;
  std::uint8_t cfa_register = 0;
  std::int32_t cfa_offset = 0;
  std::int32_t return_address = 0;  // from the CFA
  std::int32_t frame_pointer = kUnchanged;
  // rbx, r12 to r15
  std::array<std::int32_t, 5> others = {kUnchanged, kUnchanged, kUnchanged, kUnchanged, kUnchanged};
  const elf::UnwindRow* row = nullptr;
};
inline constexpr std::array<std::uint8_t, 5> kOtherRegisters{3, 12, 13, 14, 15};

// A file's unwind tables. Rules are kept once they have been computed.
class Object {
 public:
  // ENTRY: of the file. The dynamic loader's first function is there and has no row in its tables.
  Object(elf::CallFrameInfo information, base::ElfAddress entry)
      : information_{std::move(information)}, entry_{entry} {}

  // STEPS: what it takes to compute it; when they are exhausted there is none. KEEP: false, it is
  // valid until the next call only; else as long as this object.
  struct Found {
    const Rule* rule;
    bool kept;
  };
  [[nodiscard]] Found rule_at(base::ElfAddress pc, base::Allowance& steps,
                              const std::function<bool(std::size_t bytes)>& keep);

 private:
  [[nodiscard]] bool is_first_function(base::ElfAddress pc) const;

  elf::CallFrameInfo information_;
  base::ElfAddress entry_;
  std::unordered_map<std::uint64_t, Rule> rules_;
  std::deque<elf::UnwindRow> rows_;
  Rule last_;  // that is not kept
  elf::UnwindRow last_row_;
};

struct MappedObject {
  Object* object = nullptr;  // nullptr: no such file, or without unwind tables
  base::LoadBias bias;
  bool refused = false;  // its tables are too much for who asked
};

class Objects {
 public:
  explicit Objects(FileFinder& finder, std::shared_ptr<base::RecordingBudget> budget =
                                           std::make_shared<base::RecordingBudget>())
      : finder_{finder}, budget_{std::move(budget)} {}

  // The first time, the bytes of its tables are charged to SPENDER; STEPS are of the sample.
  [[nodiscard]] MappedObject of(const MappedFile& file, base::Budget::Spender spender,
                                base::Allowance& steps);

 private:
  struct Known {
    std::unique_ptr<Object> object;
    std::vector<elf::Segment> segments;
    bool found = false;    // the file itself, whatever is in it
    bool refused = false;  // its tables were too much for who asked
    std::size_t tries = 0;
  };
  [[nodiscard]] Known load(const MappedFile& file, base::Budget::Spender spender);

  FileFinder& finder_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::unordered_map<std::string, Known> known_;
  std::unordered_map<const MappedFile*, MappedObject> mapped_;
};

}  // namespace pyinject::unwind
