#include "procfs/sockets.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace pyinject::procfs {

namespace {

constexpr std::size_t kMostOfTable = std::size_t{16} << 20U;  // bytes: some 100,000 sockets

// At most MOST words separated by blanks; the last one is the rest of the line.
std::vector<std::string_view> words_of(std::string_view line, std::size_t most) {
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) {
      return words;
    }
    const auto end = words.size() + 1 == most ? line.size() : std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

// "0100007F:1F90": words of 32 bits in this machine's order, then the port. nullopt: no address.
// Empty: no address is set.
std::optional<std::string> address_of(std::string_view text) {
  constexpr std::size_t kDigits = 8;  // of a word
  const auto colon = text.find(':');
  if (colon != kDigits && colon != 4 * kDigits) {
    return std::nullopt;
  }
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / kDigits; ++i) {
    const auto word = base::parse_number<std::uint32_t>(text.substr(i * kDigits, kDigits), 16);
    if (!word) {
      return std::nullopt;
    }
    words.at(i) = *word;
  }
  const auto port = base::parse_number<std::uint16_t>(text.substr(colon + 1), 16);
  if (!port) {
    return std::nullopt;
  }
  if (*port == 0 && std::ranges::all_of(words, [](auto word) { return word == 0; })) {
    return std::string{};
  }
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  const bool four = colon == kDigits;
  ::inet_ntop(four ? AF_INET : AF_INET6, words.data(), buffer.data(), buffer.size());
  return fmt::format("{}{}{}:{}", four ? "" : "[", buffer.data(), four ? "" : "]", *port);
}

}  // namespace

// "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 12345 ...":
// number, local address, peer, state, queues, timer, retransmissions, uid, timeout, inode.
void parse_inet_sockets(std::string_view text, std::string_view protocol, Sockets& sockets) {
  constexpr std::size_t kInode = 9;
  constexpr std::string_view kConnecting = "02";
  constexpr std::string_view kListening = "0A";
  for (const auto line : base::split(text, '\n')) {
    const auto words = words_of(line, kInode + 2);
    if (words.size() <= kInode) {
      continue;
    }
    auto local = address_of(words[1]);
    auto peer = address_of(words[2]);
    const auto inode = base::parse_number<std::uint64_t>(words[kInode]);
    if (local && peer && inode.value_or(0) != 0) {
      sockets[*inode] = {.protocol = std::string{protocol},
                         .local = std::move(*local),
                         .peer = std::move(*peer),
                         .listening = protocol == "TCP" && words[3] == kListening,
                         .connecting = protocol == "TCP" && words[3] == kConnecting};
    }
  }
}

// "0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/socket": address, references,
// protocol, flags, type, state, inode, path.
void parse_unix_sockets(std::string_view text, Sockets& sockets) {
  constexpr std::size_t kFlags = 3;
  constexpr std::size_t kInode = 6;
  constexpr std::string_view kAccepts = "00010000";  // __SO_ACCEPTCON
  for (const auto line : base::split(text, '\n')) {
    const auto words = words_of(line, kInode + 2);
    if (words.size() <= kInode) {
      continue;
    }
    const auto inode = base::parse_number<std::uint64_t>(words[kInode]);
    if (inode.value_or(0) != 0) {
      sockets[*inode] = {
          .protocol = "UNIX",
          .local = words.size() > kInode + 1 ? std::string{words[kInode + 1]} : std::string{},
          .peer = {},
          .listening = words[kFlags] == kAccepts};
    }
  }
}

Sockets read_sockets(base::Pid pid) {
  Sockets sockets;
  const auto table = [&](std::string_view name) {
    return base::read_file(fmt::format("/proc/{}/net/{}", pid.value(), name), kMostOfTable)
        .value_or(std::string{});
  };
  parse_inet_sockets(table("tcp"), "TCP", sockets);
  parse_inet_sockets(table("tcp6"), "TCP", sockets);
  parse_inet_sockets(table("udp"), "UDP", sockets);
  parse_inet_sockets(table("udp6"), "UDP", sockets);
  parse_unix_sockets(table("unix"), sockets);
  return sockets;
}

std::string to_string(const Socket& socket) {
  auto text = socket.protocol;
  if (socket.listening) {
    text += " listening on";
  }
  if (!socket.local.empty()) {
    text += " " + socket.local;
  }
  if (!socket.peer.empty()) {
    text += " -> " + socket.peer;
  }
  if (socket.connecting) {
    text += " (connecting)";
  }
  return text;
}

}  // namespace pyinject::procfs
