#include "pyinject/perf/perf_locator.hpp"

#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include <sys/utsname.h>
#include <unistd.h>

namespace pyinject::perf {

namespace {

constexpr std::string_view kPackages =
    "install linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu) or perf (Fedora), or name one "
    "with --perf PATH or PERF=PATH";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string{names.release} : std::string{"unknown"};
}

// The last non-empty line: perf prints the reason last, except for hints.
std::string_view last_line(std::string_view text) {
  text = base::trim(text);
  const auto newline = text.rfind('\n');
  return base::trim(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

}  // namespace

Perf parse_version(const std::string& path, std::string_view output) {
  constexpr std::string_view kVersion = "perf version ";
  Perf perf{.path = path};
  for (auto line : base::split(output, '\n')) {
    line = base::trim(line);
    if (line.starts_with(kVersion)) {
      const auto numbers = base::split(line.substr(kVersion.size()), '.');
      perf.major = base::parse_number<int>(numbers[0]).value_or(0);
      if (numbers.size() > 1) {
        // "7.2", but also "6.8-rc1" and "5.15.g3f2b"
        const auto digits = numbers[1].substr(0, numbers[1].find_first_not_of("0123456789"));
        perf.minor = base::parse_number<int>(digits).value_or(0);
      }
    }
  }
  return perf;
}

bool lacks_addr2line(const Perf& perf) {
  constexpr int kFirstToAsk = 7;
  const char* const path = std::getenv("PATH");
  if (perf.major < kFirstToAsk || path == nullptr) {
    return false;
  }
  return std::ranges::none_of(base::split(path, ':'), [](std::string_view folder) {
    const auto file = fmt::format("{}{}addr2line", folder, folder.empty() ? "" : "/");
    return ::access(file.c_str(), X_OK) == 0;
  });
}

bool is_wrapper_complaint(std::string_view output) {
  // Ubuntu: "WARNING: perf not found for kernel 5.15.0-1"; old Debian: "E: linux-perf-5.10 is not
  // installed", "exec: perf_5.10: not found".
  return contains(output, "perf not found for kernel") ||
         (contains(output, "linux-perf-") && contains(output, "not installed")) ||
         (contains(output, "exec: perf_") && contains(output, "not found"));
}

namespace {

// MISSING: set if there is none on PATH, and nobody has named another one.
Perf find_installed(const PerfSearch& search, base::Deadline deadline, bool& missing) {
  std::string path = "perf";
  std::string_view origin = "on PATH";
  if (search.option) {
    path = *search.option;
    origin = "given by --perf";
  } else if (search.environment && !search.environment->empty()) {
    path = *search.environment;
    origin = "given by the environment variable PERF";
  }
  const bool named = path != "perf";
  base::CapturedRun run;
  try {
    run = base::run_captured({path, "version"}, deadline);
  } catch (const base::SystemError& error) {
    // EACCES: a directory of PATH is closed to this user.
    const bool absent = error.code() == ENOENT || error.code() == EACCES;
    missing = absent && !named;
    const auto why =
        fmt::format("perf: cannot run '{}' ({}): {}", path, origin, base::errno_text(error.code()));
    throw base::Error{absent ? fmt::format("{}: {}", why, kPackages) : why};
  }
  if (!run.status) {
    throw base::Error{
        fmt::format("perf: '{} version' ({}) gave no answer in time: {}", path, origin, kPackages)};
  }
  if (is_wrapper_complaint(run.output)) {
    missing = !named;
    throw base::Error{fmt::format(
        "perf: '{}' ({}) is a wrapper that has no perf for the running kernel {}: install "
        "linux-tools-{} (Ubuntu) or linux-perf (Debian), or name a perf of any version "
        "with --perf PATH or PERF=PATH",
        path, origin, kernel_release(), kernel_release())};
  }
  if (!contains(run.output, "perf version ")) {
    throw base::Error{fmt::format("perf: '{} version' ({}) did not print a perf version ({}): {}",
                                  path, origin, base::describe(*run.status), kPackages)};
  }
  return parse_version(path, run.output);
}

}  // namespace

Perf locate_perf(const PerfSearch& search, base::Deadline deadline) {
  const bool named = search.option || !search.environment.value_or("").empty();
  if (search.recorder != RecorderChoice::kOwn &&
      (search.recorder != RecorderChoice::kOwnUnlessNamed || named)) {
    bool missing = false;
    try {
      return find_installed(search, deadline, missing);
    } catch (const base::Error&) {
      if (search.recorder != RecorderChoice::kPerfOrOwn || !missing) {
        throw;
      }
    }
  }
  return {.path = search.own, .own = true};
}

std::optional<Perf> locate_reader(const Perf& recorder, const PerfSearch& search,
                                  base::Deadline deadline) {
  if (!recorder.own) {
    return recorder;
  }
  if (search.recorder == RecorderChoice::kOwnUnlessNamed) {
    return std::nullopt;
  }
  try {
    bool missing = false;
    return find_installed(search, deadline, missing);
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

std::string explain_record_failure(base::ExitStatus status, std::string_view errors) {
  std::string text = fmt::format("perf record failed: {}", base::describe(status));
  if (contains(errors, "perf_event_paranoid") || contains(errors, "No permission to enable") ||
      contains(errors, "You may not have permission")) {
    constexpr int kOwnProcesses = 1;
    const auto rights = ::geteuid() == 0 ? procfs::how_to_get(procfs::Capability::kPerfmon)
                                         : "run as root, grant CAP_PERFMON (setcap "
                                           "cap_perfmon,cap_sys_ptrace+ep on perf)";
    return text +
           "; perf may not open events: " + procfs::how_to_open_events(rights, kOwnProcesses);
  }
  if (contains(errors, "No space left on device")) {
    return text + "; no space left for perf's output: free some, or choose another place with -o";
  }
  if (contains(errors, "Couldn't create thread/CPU maps: No such process")) {
    return text + "; a process to be recorded has exited";
  }
  if (contains(errors, "Usage: perf record")) {
    return text + "; perf does not accept these options: see its messages above";
  }
  if (contains(errors, "failed at util/build-id.c")) {
    return text +
           "; another recording on this machine asks for build ids (perf 7 does), and the kernel "
           "then adds them to this recording as well: add -B (--no-buildid), or use the other "
           "recording's perf (--perf)";
  }
  const auto reason = last_line(errors);
  return reason.empty() ? text : text + "; perf's last message: " + base::printable(reason);
}

}  // namespace pyinject::perf
