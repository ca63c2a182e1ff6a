// linux, tools/perf/util/trace-event-info.c. Without the kernel's symbols, saved command names and
// printk formats, which readers take for empty: a recording has the first two itself.
#include "base/file.hpp"
#include "perf/tracefs.hpp"
#include "recorder/contents.hpp"
#include "recorder/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <unistd.h>

namespace pyinject::recorder {

namespace {

// A name as the format has it: with its NUL.
void append_name(std::string_view name, Contents& contents) {
  contents.append(name);
  contents.number('\0');
}

// The size of a file of TRACEFS, then its contents; empty if it cannot be read.
void append_file(const std::string& tracefs, std::string_view path, Contents& contents) {
  const auto text = base::read_file(fmt::format("{}/events/{}", tracefs, path)).value_or("");
  contents.number(std::uint64_t{text.size()});
  contents.append(text);
}

std::vector<std::byte> formats(const std::string& tracefs,
                               const std::map<std::string, std::vector<std::string>>& all) {
  Contents contents;
  contents.append("\x17\x08\x44tracing");
  append_name("0.6", contents);
  contents.number(std::uint8_t{0});  // little-endian
  contents.number(std::uint8_t{sizeof(long)});
  contents.number(static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE)));
  for (const auto* const header : {"header_page", "header_event"}) {
    append_name(header, contents);
    append_file(tracefs, header, contents);
  }
  contents.number(std::uint32_t{0});  // of ftrace's own events
  contents.number(static_cast<std::uint32_t>(all.size()));
  for (const auto& [system, events] : all) {
    append_name(system, contents);
    contents.number(static_cast<std::uint32_t>(events.size()));
    for (const auto& event : events) {
      append_file(tracefs, fmt::format("{}/{}/format", system, event), contents);
    }
  }
  contents.number(std::uint32_t{0});  // kallsyms
  contents.number(std::uint32_t{0});  // printk_formats
  contents.number(std::uint64_t{0});  // saved_cmdlines
  return contents.take();
}

}  // namespace

std::vector<std::byte> tracing_data(std::span<const OpenEvent> events) {
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& event : events) {
    const auto colon = event.name.find(':');
    if (event.attr.type != PERF_TYPE_TRACEPOINT || colon == std::string::npos) {
      continue;
    }
    const auto name = event.name.substr(colon + 1);
    auto& of_system = all[event.name.substr(0, colon)];
    const auto found = std::ranges::find(of_system, name.substr(0, name.find(':')));
    if (found == of_system.end()) {
      of_system.push_back(name.substr(0, name.find(':')));
    }
  }
  const auto tracefs = perf::find_tracefs();
  return all.empty() || !tracefs ? std::vector<std::byte>{} : formats(*tracefs, all);
}

}  // namespace pyinject::recorder
