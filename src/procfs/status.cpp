#include "procfs/status.hpp"

#include "base/text.hpp"
#include "procfs/read_process_file.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::procfs {

namespace {

using base::parse_number;

// The numbers in a line, separated by blanks or tabs; stops at the first invalid one.
template <typename Number>
std::vector<Number> numbers(std::string_view text) {
  constexpr std::size_t kMost = 65536;  // NGROUPS_MAX
  std::vector<Number> values;
  while (values.size() < kMost) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const auto end = std::min(text.find_first_of(" \t"), text.size());
    const auto value = parse_number<Number>(text.substr(0, end));
    if (!value) {
      break;
    }
    values.push_back(*value);
    text.remove_prefix(end);
  }
  return values;
}

template <typename Number>
std::array<Number, 4> four_numbers(std::string_view text) {
  std::array<Number, 4> four{};
  const auto values = numbers<Number>(text);
  std::copy_n(values.begin(), std::min(values.size(), four.size()), four.begin());
  return four;
}

template <typename Number>
Number number_or_zero(std::string_view text, int base = 10) {
  return parse_number<Number>(text, base).value_or(0);
}

void take_identity(std::string_view key, std::string_view value, Status& status) {
  if (key == "Name") {
    status.name = value;
  } else if (key == "State" && !value.empty()) {
    status.state = value.front();
  } else if (key == "Tgid") {
    status.process = base::Pid{number_or_zero<pid_t>(value)};
  } else if (key == "Pid") {
    status.task = base::Tid{number_or_zero<pid_t>(value)};
  } else if (key == "PPid") {
    status.parent = base::Pid{number_or_zero<pid_t>(value)};
  } else if (key == "TracerPid") {
    status.tracer = base::Pid{number_or_zero<pid_t>(value)};
  } else if (key == "NSpid") {
    status.namespace_pids = numbers<pid_t>(value);
  } else if (key == "Threads") {
    status.threads = number_or_zero<std::uint64_t>(value);
  } else if (key == "FDSize") {
    status.descriptor_slots = number_or_zero<std::uint64_t>(value);
  }
}

void take_rights(std::string_view key, std::string_view value, Status& status) {
  if (key == "Uid") {
    status.uids = four_numbers<uid_t>(value);
  } else if (key == "Gid") {
    status.gids = four_numbers<gid_t>(value);
  } else if (key == "Groups") {
    status.groups = numbers<gid_t>(value);
  } else if (key == "CapEff") {
    status.effective_capabilities = number_or_zero<std::uint64_t>(value, 16);
  } else if (key == "SigBlk") {
    status.blocked_signals = number_or_zero<std::uint64_t>(value, 16);
  } else if (key == "Seccomp") {
    status.seccomp = value == "2"   ? SeccompMode::kFilter
                     : value == "1" ? SeccompMode::kStrict
                                    : SeccompMode::kNone;
  }
}

void take_switches(std::string_view key, std::string_view value, Status& status) {
  if (key == "voluntary_ctxt_switches" || key == "nonvoluntary_ctxt_switches") {
    status.switches += number_or_zero<std::uint64_t>(value);
  }
  if (key == "voluntary_ctxt_switches") {
    status.voluntary_switches = number_or_zero<std::uint64_t>(value);
  }
}

std::optional<Status> read_status_file(const std::string& path) {
  const auto text = read_process_file(path);
  if (!text) {
    return std::nullopt;
  }
  auto status = parse_status(*text);
  if (!status) {
    throw base::Error{fmt::format("cannot understand {}", path)};
  }
  return status;
}

}  // namespace

std::optional<Status> parse_status(std::string_view text) {
  Status status;
  for (const auto line : base::split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    const auto key = line.substr(0, colon);
    const auto value = base::trim(line.substr(colon + 1));
    take_identity(key, value, status);
    take_rights(key, value, status);
    take_switches(key, value, status);
  }
  const bool complete =
      status.state != '?' && status.process.value() > 0 && status.task.value() > 0;
  return complete ? std::optional{std::move(status)} : std::nullopt;
}

std::optional<Status> read_status(base::Pid pid) {
  return read_status_file(fmt::format("/proc/{}/status", pid.value()));
}

std::optional<Status> read_status(base::Pid pid, base::Tid tid) {
  return read_status_file(fmt::format("/proc/{}/task/{}/status", pid.value(), tid.value()));
}

}  // namespace pyinject::procfs
