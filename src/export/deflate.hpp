// Compressed text, by zlib.
#pragma once

#include <string>
#include <string_view>

namespace pyinject::exports {

// DATA in zlib's format (RFC 1950). Throws std::bad_alloc.
[[nodiscard]] std::string deflated(std::string_view data);
// DATA as a gzip file (RFC 1952). Throws std::bad_alloc.
[[nodiscard]] std::string gzipped(std::string_view data);
// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view data);

}  // namespace pyinject::exports
