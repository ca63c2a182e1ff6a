#include "push/spool_entry.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include <sys/random.h>
#include <zlib.h>

namespace pyinject::push {

namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

std::uint32_t checksum(std::string_view text) {
  auto sum = ::crc32_z(0, nullptr, 0);
  sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(text.data()), text.size());
  return static_cast<std::uint32_t>(sum);
}

// Appended to a URL.
bool is_path(std::string_view text) { return text.empty() || text.starts_with('/'); }

struct Head {
  SpoolEntry entry;
  std::uint64_t bytes = 0;
  std::uint32_t sum = 0;
};

std::optional<Head> parse_head(std::string_view line) {
  const auto json = ordered_json::parse(line, nullptr, false);
  Head head;
  try {
    if (json.at("version") != kVersion) {
      return std::nullopt;
    }
    head.entry.id = json.at("id").get<std::string>();
    head.entry.destination = json.at("to").get<std::string>();
    head.entry.request.path = json.at("path").get<std::string>();
    head.entry.request.headers = json.at("headers").get<std::vector<std::string>>();
    head.bytes = json.at("bytes").get<std::uint64_t>();
    head.sum = json.at("crc32").get<std::uint32_t>();
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
  const auto has_newline = [](const std::string& text) {
    return text.find_first_of("\r\n") != std::string::npos;
  };
  const auto& request = head.entry.request;
  if (!is_id(head.entry.id) || !is_path(request.path) || has_newline(request.path) ||
      std::ranges::any_of(request.headers, has_newline)) {
    return std::nullopt;
  }
  return head;
}

}  // namespace

std::string encode(const SpoolEntry& entry) {
  const auto& request = entry.request;
  const ordered_json head{{"version", kVersion},
                          {"id", entry.id},
                          {"to", entry.destination},
                          {"path", request.path},
                          {"headers", request.headers},
                          {"bytes", request.body.size()},
                          {"crc32", checksum(request.body)}};
  return head.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n" + request.body;
}

std::optional<SpoolEntry> decode_head(std::string_view text, std::uint64_t size) {
  const auto end = text.substr(0, kLongestHead).find('\n');
  auto head = end == std::string_view::npos ? std::nullopt : parse_head(text.substr(0, end));
  if (!head || head->bytes != size - end - 1) {
    return std::nullopt;
  }
  return std::move(head->entry);
}

std::optional<SpoolEntry> decode(std::string_view text) {
  const auto end = text.substr(0, kLongestHead).find('\n');
  auto head = end == std::string_view::npos ? std::nullopt : parse_head(text.substr(0, end));
  if (!head) {
    return std::nullopt;
  }
  const auto body = text.substr(end + 1);
  if (head->bytes != body.size() || head->sum != checksum(body)) {
    return std::nullopt;
  }
  head->entry.request.body = body;
  return std::move(head->entry);
}

std::string new_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw base::SystemError{"getrandom", errno};
  }
  // Version 4, variant 1 of RFC 4122.
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0FU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3FU) | 0x80U);
  std::string text;
  for (const auto byte : bytes) {
    if (text.size() < kForm.size() && kForm[text.size()] == '-') {
      text += '-';
    }
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

bool is_id(std::string_view text) {
  return std::ranges::equal(text, kForm, [](char one, char form) {
    return form == '-' ? one == '-' : (one >= '0' && one <= '9') || (one >= 'a' && one <= 'f');
  });
}

}  // namespace pyinject::push
