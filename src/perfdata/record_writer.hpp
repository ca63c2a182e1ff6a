// Creates records. Pure. INTO gets the whole record.
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::perfdata {

// An MMAP2 record followed by SAMPLE_ID zero bytes.
void make_mapping(const Mapping& mapping, std::size_t sample_id, std::vector<std::byte>& into);

// MAPPING with the sample id of LIKE, an MMAP2, COMM or FORK record. False: LIKE is damaged,
// or the result does not fit into a record; INTO is then undefined.
[[nodiscard]] bool make_mapping_like(const Record& like, const Mapping& mapping,
                                     std::vector<std::byte>& into);

// A FORK record; SAMPLE_ID as above.
void make_fork(const Task& task, std::size_t sample_id, std::vector<std::byte>& into);

// A COMM record; SAMPLE_ID as above.
void make_command(const Command& command, std::size_t sample_id, std::vector<std::byte>& into);

// The same with the sample id, and so the time, of the COMM, FORK or EXIT record LIKE. False: LIKE
// is none, or is damaged.
[[nodiscard]] bool make_command_like(const Record& like, const Command& command,
                                     std::vector<std::byte>& into);

// PERIOD: replaces or adds the period. False: CHAIN was truncated, since a record has at most 64
// KiB; CUT_MARK, if there is one, is then its last entry.
bool make_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                 std::vector<std::byte>& into, std::optional<std::uint64_t> period = {},
                 std::optional<std::uint64_t> cut_mark = {});

}  // namespace pyinject::perfdata
