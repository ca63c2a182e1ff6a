#include "push/destination.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <vector>

#include <arpa/inet.h>

namespace pyinject::push {

namespace {

constexpr std::size_t kLongestUrl = 2048;

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "[::1]") {
    return true;
  }
  in_addr address{};
  constexpr std::uint32_t kLoopback = 127;
  return ::inet_pton(AF_INET, std::string{host}.c_str(), &address) == 1 &&
         (ntohl(address.s_addr) >> 24U) == kLoopback;
}

// "host", "host:port", "[::1]:port". "": not valid.
std::string_view host_of(std::string_view authority) {
  const auto end_of_address = authority.starts_with('[') ? authority.find(']') : 0;
  if (end_of_address == std::string_view::npos) {
    return {};
  }
  const auto colon = authority.find(':', end_of_address);
  if (colon == std::string_view::npos) {
    return authority;
  }
  const auto port = base::parse_number<std::uint16_t>(authority.substr(colon + 1));
  return port && *port != 0 ? authority.substr(0, colon) : std::string_view{};
}

std::variant<Destination, DestinationError> parse_url(const Store& store, std::string_view url) {
  const auto refuse = [&](std::string_view why) {
    return DestinationError{fmt::format("--push {}: {}", store.kind, why)};
  };
  constexpr auto kSchemes = std::to_array<std::string_view>({"http://", "https://"});
  const auto* const scheme =
      std::ranges::find_if(kSchemes, [&](auto one) { return url.starts_with(one); });
  if (scheme == kSchemes.end() || url.size() > kLongestUrl) {
    return refuse("expected http://HOST[:PORT][/PATH] or https://...");
  }
  const auto rest = url.substr(scheme->size());
  const auto authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos) {
    return refuse(
        "the URL has a user or a password, which other users can see: use --push-credentials FILE "
        "or the variable PYINJECT_PUSH_TOKEN");
  }
  const bool plain = std::ranges::all_of(rest, [](char one) { return one > ' ' && one < 0x7F; });
  const auto host = host_of(authority);
  if (!plain || host.empty() || rest.find_first_of("?#\\") != std::string_view::npos) {
    return refuse("expected a URL of a host, a port and a path only");
  }
  while (url.ends_with('/')) {
    url.remove_suffix(1);
  }
  const bool has_path = rest.find_first_not_of('/', authority.size()) != std::string_view::npos;
  return Destination{.store = &store,
                     .place = std::string{url} + std::string{has_path ? "" : store.path},
                     .encrypted = *scheme == kSchemes.back() || is_loopback(host)};
}

}  // namespace

std::string Destination::name() const { return fmt::format("{}={}", store->kind, place); }

std::variant<Destination, DestinationError> parse_destination(std::string_view text) {
  const auto equals = text.find('=');
  const auto kind = text.substr(0, equals);
  const auto* const store = find_store(kind);
  if (store == nullptr || equals == std::string_view::npos || equals + 1 == text.size()) {
    std::vector<std::string> forms;
    std::ranges::transform(stores(), std::back_inserter(forms), [](const Store& one) {
      return fmt::format("{}={}", one.kind, one.request == nullptr ? "DIR" : "URL");
    });
    // What is behind the kind may hold a password.
    return DestinationError{
        fmt::format("--push {}: expected {}", base::printable(kind, 64), fmt::join(forms, ", "))};
  }
  const auto place = text.substr(equals + 1);
  if (store->request == nullptr) {
    return Destination{.store = store, .place = std::string{place}};
  }
  return parse_url(*store, place);
}

}  // namespace pyinject::push
