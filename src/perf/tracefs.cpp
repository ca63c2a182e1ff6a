#include "perf/tracefs.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <sys/statfs.h>

namespace pyinject::perf {

namespace {

constexpr std::uint32_t kTracefs = 0x74726163;  // TRACEFS_MAGIC

bool is_tracefs(const std::string& folder) {
  struct statfs facts {};
  return ::statfs(folder.c_str(), &facts) == 0 &&
         static_cast<std::uint32_t>(facts.f_type) == kTracefs;
}

}  // namespace

std::optional<std::string> find_tracefs() {
  static constexpr std::array kFolders{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
  const auto* const found = std::ranges::find_if(kFolders, is_tracefs);
  return found == kFolders.end() ? std::nullopt : std::optional<std::string>{*found};
}

std::optional<std::uint64_t> tracepoint_id(const std::string& tracefs,
                                           std::string_view tracepoint) {
  const auto colon = tracepoint.find(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const auto text = base::read_file(fmt::format(
      "{}/events/{}/{}/id", tracefs, tracepoint.substr(0, colon), tracepoint.substr(colon + 1)));
  return text ? base::parse_number<std::uint64_t>(base::trim(*text)) : std::nullopt;
}

}  // namespace pyinject::perf
