// The only table of differences between CPython minor versions. Code outside of this directory gets
// these facts as values.
#pragma once

#include "pyinject/python/target.hpp"
#include "python/layout/object_layout.hpp"
#include "python/layout/runtime_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::python {

// What free-threaded builds insert (Include/object.h; Include/cpython/code.h,
// Include/internal/pycore_interpframe_structs.h; Python/ceval_gil.h): ob_tid, flags, mutex and the
// two reference counts instead of one in each object; from 3.14 on co_tlbc before the byte code and
// tlbc_index before a frame's owner; `enabled` in the GIL.
struct FreeThreadedGrowth {
  std::uint64_t object_head = 16;
  std::uint64_t before_byte_code = 8;
  std::uint64_t before_owner = 4;
  std::uint64_t before_gil_holder = 8;
};
inline constexpr FreeThreadedGrowth kFreeThreadedGrowth{};

// Indexes of u64 fields in _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h; in 3.13
// pycore_runtime.h). For several consecutive fields, the index of the first.
struct PublishedOffsets {
  std::size_t size = 0;         // in bytes: the runtime's own fields follow
  std::size_t runtime = 0;      // size, finalizing, interpreters.head
  std::size_t interpreter = 0;  // size, id, next, threads.head
  std::size_t gil = 0;          // gil, gil_runtime_state, 1 other, its locked, its last holder
  std::size_t thread = 0;       // prev, next, interp, current_frame
  std::size_t thread_id = 0;    // thread_id, native_thread_id
  std::size_t frame = 0;  // size, previous, executable, instr_ptr, localsplus, owner, stackpointer
  std::size_t code = 0;   // size, filename, name, qualname, linetable, firstlineno, 3 others,
                          // byte code
  std::size_t object_type = 0;
  std::size_t bytes = 0;  // size, ob_size, ob_sval
  std::size_t text = 0;   // size, state, length, size of its ASCII form
  // Not an index: PyInterpreterState.threads.head, relative to its `next`.
  std::uint64_t threads_after_next = 0;
  std::size_t collector = 0;        // PyInterpreterState.gc
  std::size_t collector_state = 0;  // its size, collecting
  // Not an index: PyInterpreterState.gc.collecting, relative to its threads.head.
  std::uint64_t collecting_after_threads = 0;
  // Only 3.14 and later: co_tlbc, and a frame's tlbc_index. 0: not published.
  std::size_t thread_byte_code = 0;
  std::size_t byte_code_index = 0;
};

// The same in 3.12 to 3.15 (Include/internal/pycore_frame.h): FRAME_OWNED_BY_GENERATOR; an entry
// frame has FRAME_OWNED_BY_CSTACK (3.12, 3.13), FRAME_OWNED_BY_INTERPRETER (3.14+) or a higher
// value.
inline constexpr FrameOwners kFrameOwners{.generator = 1, .first_entry = 3};

// The same in 3.12 to 3.15 (Include/cpython/unicodeobject.h): PyASCIIObject.state, and the size of
// PyCompactUnicodeObject's UTF-8 length and pointer.
inline constexpr TextForm kTextForm{
    .kind_shift = 2, .kind_mask = 7, .compact = 0x20, .ascii = 0x40, .utf8_fields = 16};

// Patch releases of a minor version: 3.13.12 is 12.
struct Releases {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  [[nodiscard]] bool contains(std::uint8_t micro) const { return first <= micro && micro <= last; }
};
inline constexpr Releases kNoRelease{.first = 0xff, .last = 0};
inline constexpr Releases kAllReleases{.first = 0, .last = 0xff};

// A patch release that must not be activated.
struct BadRelease {
  std::uint8_t micro = 0;
  const char* why = "";
  const char* use = "";  // use this release instead
};

struct LayoutFacts {
  std::uint8_t minor = 0;
  // Of builds with the GIL. What PUBLISHED has must agree with it; without PUBLISHED, complete.
  RuntimeLayout layout = {};
  std::optional<PublishedOffsets> published = {};
  ObjectFacts objects = {};
  // Of free-threaded builds: bits of a str's state before its kind, instead of 2.
  std::uint32_t free_threaded_interned = 2;
  std::span<const BadRelease> bad_releases = {};
  // See the functions with these names in version_policy.hpp.
  Releases unmaps_used_arenas = kNoRelease;
  Releases adds_code_watchers = kNoRelease;
  Releases fails_on_odd_names = kNoRelease;
  bool activates_once = false;
  bool checks_c_stack = false;
};

// Oldest first, all of Python 3, without gaps.
[[nodiscard]] std::span<const LayoutFacts> all_layout_facts();
// nullptr: not in the table.
[[nodiscard]] const LayoutFacts* layout_facts(const Version& version);
// For reading only: a version newer than the table has those of the newest one in it, as far as its
// own offsets agree (parse_layout()). nullptr: too old.
[[nodiscard]] const LayoutFacts* readable_facts(const Version& version);
// Whether this release was tested with that minor version: with a final release or a candidate.
[[nodiscard]] bool is_tested(const Version& version);

// An entry frame on the C stack: where it has the address of the calling Python frame, and the
// value at OWNER that identifies it.
struct EntryFrame {
  std::uint64_t previous = 0;
  std::uint64_t owner = 0;
  std::uint8_t owner_value = 0;
  bool operator==(const EntryFrame&) const = default;
};
// The entry frames of all versions, without duplicates.
[[nodiscard]] std::vector<EntryFrame> entry_frames();

}  // namespace pyinject::python
