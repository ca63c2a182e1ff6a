// The unwind tables of files that recorded processes had mapped.
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

// Finds the file of a mapping of a process, which may have exited.
class FileFinder {
 public:
  virtual ~FileFinder() = default;
  FileFinder() = default;
  FileFinder(const FileFinder&) = delete;
  FileFinder& operator=(const FileFinder&) = delete;

  // Candidate files, most likely first; regular files, open for reading. If the record has a
  // build-id, the caller rejects files with a different one.
  [[nodiscard]] virtual std::vector<base::UniqueFd> candidates(const MappedFile& file) = 0;
};

// One row of an unwind table in compact form, sufficient for nearly every program counter.
struct Rule {
  enum class Kind : std::uint8_t {
    kNone,  // no unwind information
    kEnd,   // first function of a thread: it has no caller
    kFast,
    kSlow,  // in ROW
  };
  static constexpr std::int32_t kUnchanged = INT32_MIN;

  Kind kind = Kind::kNone;
  std::uint8_t cfa_register = 0;
  std::int32_t cfa_offset = 0;
  std::int32_t return_address = 0;  // offset from the CFA
  std::int32_t frame_pointer = kUnchanged;
  // rbx, r12 to r15
  std::array<std::int32_t, 5> others = {kUnchanged, kUnchanged, kUnchanged, kUnchanged, kUnchanged};
  const elf::UnwindRow* row = nullptr;
};
inline constexpr std::array<std::uint8_t, 5> kOtherRegisters{3, 12, 13, 14, 15};

// The unwind tables of a file. Caches computed rules.
class Object {
 public:
  // ENTRY: the entry point of the file, where the dynamic loader's first function is, which has no
  // row in its tables.
  Object(elf::CallFrameInfo information, base::ElfAddress entry)
      : information_{std::move(information)}, entry_{entry} {}

  // STEPS pays for the computation; if exhausted, the result has no rule. If KEEP returns false,
  // the rule is valid only until the next call, else as long as this object.
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
  Rule last_;  // the latest rule that is not kept
  elf::UnwindRow last_row_;
};

struct MappedObject {
  Object* object = nullptr;  // nullptr: no such file, or no unwind tables
  base::LoadBias bias;
  bool refused = false;  // its tables exceed the process's limit
};

class Objects {
 public:
  explicit Objects(FileFinder& finder, std::shared_ptr<base::RecordingBudget> budget =
                                           std::make_shared<base::RecordingBudget>())
      : finder_{finder}, budget_{std::move(budget)} {}

  // On first use, the bytes of the file's tables are charged to SPENDER; STEPS belongs to the
  // sample.
  [[nodiscard]] MappedObject of(const MappedFile& file, base::Budget::Spender spender,
                                base::Allowance& steps);

 private:
  struct Known {
    std::unique_ptr<Object> object;
    std::vector<elf::Segment> segments;
    bool found = false;            // the file itself, whatever its contents
    bool refused = false;          // its tables exceeded the share of the process
    std::uint64_t too_little = 0;  // the share in bytes that they exceeded
    std::size_t tries = 0;
  };
  [[nodiscard]] Known load(const MappedFile& file, base::Budget::Spender spender);

  FileFinder& finder_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::unordered_map<std::string, Known> known_;
  std::unordered_map<const MappedFile*, MappedObject> mapped_;
};

}  // namespace pyinject::unwind
