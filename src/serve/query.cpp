#include "serve/query.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include <sys/types.h>

namespace pyinject::serve {

namespace {

constexpr std::chrono::seconds kDefaultLength{30};
constexpr std::size_t kMostName = 64;  // a name has 15 bytes, TASK_COMM_LEN; a glob may be longer
constexpr unsigned kBadRequest = 400;

constexpr std::array kEvents{Event::kCpu, Event::kOffCpu, Event::kAlloc};

Problem bad_parameter(std::string_view name, std::string_view value, std::string_view expected) {
  return {
      .status = kBadRequest,
      .reason = "bad_parameter",
      .text = fmt::format("{}={}: expected {}", name, base::printable(value, kMostName), expected)};
}

std::optional<Problem> take_seconds(const std::string& value, std::chrono::seconds most,
                                    ProfileRequest& request) {
  const auto number = base::parse_number<int>(value);
  if (!number || *number < 1 || *number > most.count()) {
    return bad_parameter("seconds", value, fmt::format("1 to {} (--max-seconds)", most.count()));
  }
  request.length = std::chrono::seconds{*number};
  return std::nullopt;
}

std::optional<Problem> take_pid(const std::string& value, ProfileRequest& request) {
  const auto number = base::parse_number<pid_t>(value);
  if (!number || *number < 1) {
    return bad_parameter("pid", value, "the pid of one process");
  }
  request.pid = base::Pid{*number};
  return std::nullopt;
}

std::optional<Problem> take_comm(const std::string& value, ProfileRequest& request) {
  if (value.empty() || value.size() > kMostName) {
    return bad_parameter("comm", value, "the name of a process, as in comm=gunicorn*");
  }
  request.comm = value;
  return std::nullopt;
}

std::optional<Problem> take_event(const std::string& value, ProfileRequest& request) {
  const auto* const found = std::ranges::find(kEvents, value, name);
  if (found == kEvents.end()) {
    return bad_parameter("event", value, "cpu, offcpu or alloc");
  }
  request.event = *found;
  return std::nullopt;
}

std::optional<Problem> take(const std::string& key, const std::string& value,
                            std::chrono::seconds most, ProfileRequest& request) {
  if (key == "seconds") {
    return take_seconds(value, most, request);
  }
  if (key == "pid") {
    return take_pid(value, request);
  }
  if (key == "comm") {
    return take_comm(value, request);
  }
  if (key == "event") {
    return take_event(value, request);
  }
  return Problem{.status = kBadRequest,
                 .reason = "unknown_parameter",
                 .text = fmt::format("{}: expected seconds, pid, comm or event",
                                     base::printable(key, kMostName))};
}

}  // namespace

std::string_view name(Event event) {
  switch (event) {
    case Event::kCpu:
      return "cpu";
    case Event::kOffCpu:
      return "offcpu";
    case Event::kAlloc:
      return "alloc";
  }
  return "unknown";
}

std::optional<std::string> decode_url(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char byte = text[i] == '+' ? ' ' : text[i];
    if (byte == '%') {
      const auto number = base::parse_number<unsigned char>(text.substr(i + 1, 2), 16);
      if (!number || i + 2 >= text.size()) {
        return std::nullopt;
      }
      byte = static_cast<char>(*number);
      i += 2;
    }
    if (byte == '\0') {
      return std::nullopt;
    }
    decoded += byte;
  }
  return decoded;
}

std::variant<ProfileRequest, Problem> parse_query(std::string_view query,
                                                  std::chrono::seconds most) {
  ProfileRequest request;
  request.length = std::min(kDefaultLength, most);
  std::set<std::string> seen;
  for (const auto pair : base::split(query, '&')) {
    if (pair.empty()) {
      continue;
    }
    const auto equals = std::min(pair.find('='), pair.size());
    const auto key = decode_url(pair.substr(0, equals));
    const auto value = decode_url(pair.substr(std::min(equals + 1, pair.size())));
    if (!key || !value) {
      return Problem{
          .status = kBadRequest,
          .reason = "bad_parameter",
          .text = fmt::format("{}: malformed percent-encoding", base::printable(pair, kMostName))};
    }
    if (!seen.insert(*key).second) {
      return Problem{.status = kBadRequest,
                     .reason = "bad_parameter",
                     .text = fmt::format("{} is given twice", base::printable(*key, kMostName))};
    }
    if (auto problem = take(*key, *value, most, request)) {
      return *std::move(problem);
    }
  }
  if (request.pid && !request.comm.empty()) {
    return Problem{
        .status = kBadRequest, .reason = "bad_parameter", .text = "give either pid or comm"};
  }
  return request;
}

}  // namespace pyinject::serve
