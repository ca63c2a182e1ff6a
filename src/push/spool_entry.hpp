// The format of an entry of the spool: a line of JSON, then the body of the request.
#pragma once

#include "push/spool.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pyinject::push {

// A longer first line is not read.
inline constexpr std::size_t kLongestHead = 16384;

[[nodiscard]] std::string encode(const SpoolEntry& entry);
// nullopt: TEXT is damaged or truncated.
[[nodiscard]] std::optional<SpoolEntry> decode(std::string_view text);
// The entry of a file with SIZE bytes that begins with TEXT, without its body.
[[nodiscard]] std::optional<SpoolEntry> decode_head(std::string_view text, std::uint64_t size);

// "01234567-89ab-4cde-8f01-23456789abcd", random. Throws base::SystemError.
[[nodiscard]] std::string new_id();
[[nodiscard]] bool is_id(std::string_view text);

}  // namespace pyinject::push
