#include "inspect/connection.hpp"

namespace pyinject::inspect {

namespace {

constexpr std::string_view kArrow = " -> ";

std::string_view port_of(std::string_view address) {
  const auto colon = address.rfind(':');
  return colon == std::string_view::npos ? std::string_view{} : address.substr(colon + 1);
}

}  // namespace

std::string_view peer_of(std::string_view file) {
  const auto arrow = file.find(kArrow);
  return arrow == std::string_view::npos ? std::string_view{} : file.substr(arrow + kArrow.size());
}

ListeningPorts::ListeningPorts(const procfs::Sockets& sockets) {
  for (const auto& [inode, socket] : sockets) {
    if (socket.listening && socket.protocol != "UNIX") {
      ports_.emplace(port_of(socket.local));
    }
  }
}

bool ListeningPorts::accepted(std::string_view file) const {
  const auto arrow = file.find(kArrow);
  return arrow != std::string_view::npos && ports_.contains(port_of(file.substr(0, arrow)));
}

sample::Use use_of_connection(sample::Use work, bool connected, bool accepted) {
  using sample::Use;
  // A socket with a timeout is polled, too.
  const bool waits = work == Use::kNetwork || (work == Use::kPoll && connected);
  return !waits ? work : accepted ? Use::kClient : Use::kNetwork;
}

}  // namespace pyinject::inspect
