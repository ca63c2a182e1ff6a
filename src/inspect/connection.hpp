// Connections, as ProcessFiles describes them: "TCP 127.0.0.1:40000 -> 127.0.0.1:5432".
#pragma once

#include "procfs/sockets.hpp"
#include "sample/use.hpp"

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace pyinject::inspect {

// "127.0.0.1:5432"; empty: FILE is not connected to an address.
[[nodiscard]] std::string_view peer_of(std::string_view file);

// The ports of a network namespace on which somebody listens.
class ListeningPorts {
 public:
  ListeningPorts() = default;
  explicit ListeningPorts(const procfs::Sockets& sockets);

  // FILE is a connection to one of them: its peer has called, rather than been called.
  [[nodiscard]] bool accepted(std::string_view file) const;

 private:
  std::set<std::string, std::less<>> ports_;
};

// What a thread waits for that is blocked in a call on a socket or polls one: WORK is what the
// kernel's functions tell. ACCEPTED: the connection is from a client.
[[nodiscard]] sample::Use use_of_connection(sample::Use work, bool connected, bool accepted);

}  // namespace pyinject::inspect
