// Records that we make. Pure. INTO is given the whole record.
#pragma once

#include "perfdata/record.hpp"
#include "perfdata/sample.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyinject::perfdata {

// An MMAP2 record with SAMPLE_ID bytes of zeros behind it.
void make_mapping(const Mapping& mapping, std::size_t sample_id, std::vector<std::byte>& into);

// The MMAP2 record LIKE with what MAPPING says instead; its sample id stays. False: LIKE is
// damaged, or no record can hold it; INTO is undefined.
[[nodiscard]] bool make_mapping_like(const Record& like, const Mapping& mapping,
                                     std::vector<std::byte>& into);

// A FORK record; SAMPLE_ID as above.
void make_fork(const Task& task, std::size_t sample_id, std::vector<std::byte>& into);

// PERIOD: instead of what it had, or in addition. False: CHAIN is cut, since a record has at most
// 64 KiB.
bool make_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                 std::vector<std::byte>& into, std::optional<std::uint64_t> period = {});

}  // namespace pyinject::perfdata
