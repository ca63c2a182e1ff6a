// One --push KIND=URL.
#pragma once

#include "push/stores.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace pyinject::push {

struct Destination {
  const Store* store = nullptr;
  std::string place;      // the URL without a slash at its end, or the directory
  bool encrypted = true;  // false: http to another machine
  // "pyroscope=http://127.0.0.1:4040". For messages, and for entries of the spool: it has no
  // secrets.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool is_directory() const { return store->request == nullptr; }
  bool operator==(const Destination&) const = default;
};

// Why a destination cannot be used. Does not quote a URL with a password.
struct DestinationError {
  std::string why;
};

// TEXT: "KIND=URL" or "pprof-dir=DIRECTORY".
[[nodiscard]] std::variant<Destination, DestinationError> parse_destination(std::string_view text);

}  // namespace pyinject::push
