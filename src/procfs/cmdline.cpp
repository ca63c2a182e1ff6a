#include "procfs/cmdline.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/stat.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include <sys/uio.h>

namespace pyinject::procfs {

std::vector<std::string> parse_cmdline(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  if (text.back() == '\0') {
    text.remove_suffix(1);
  }
  const auto pieces = base::split(text, '\0');
  return {pieces.begin(), pieces.end()};
}

std::optional<std::vector<std::string>> read_cmdline(base::Pid pid) {
  const auto text =
      base::read_file(fmt::format("/proc/{}/cmdline", pid.value()), std::size_t{1} << 20);
  if (!text) {
    return std::nullopt;
  }
  return parse_cmdline(*text);
}

std::string read_command(base::Pid pid) {
  return fmt::format("{}", fmt::join(read_cmdline(pid).value_or(std::vector<std::string>{}), " "));
}

std::optional<std::string> read_working_directory(base::Pid pid) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", pid.value()), error);
  errno = error.value();
  return error ? std::nullopt : std::optional{path.string()};
}

std::optional<std::string> parse_environ_value(std::string_view text, std::string_view name) {
  for (const auto entry : base::split(text, '\0')) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string{entry.substr(name.size() + 1)};
    }
  }
  return std::nullopt;
}

namespace {

constexpr std::size_t kMostEnvironment = std::size_t{4} << 20;

// /proc/PID/environ is readable only by its user; the memory also with CAP_SYS_PTRACE.
std::optional<std::string> environment_in_memory(base::Pid pid) {
  const auto stat = read_stat(pid);
  if (!stat || stat->environment_end <= stat->environment_begin) {
    return std::nullopt;
  }
  const auto size = stat->environment_end.value() - stat->environment_begin.value();
  std::string text(std::min<std::uint64_t>(size, kMostEnvironment), '\0');
  const iovec local{.iov_base = text.data(), .iov_len = text.size()};
  const iovec remote{
      // NOLINTNEXTLINE(performance-no-int-to-ptr): of another process, only for the kernel
      .iov_base = reinterpret_cast<void*>(stat->environment_begin.value()),
      .iov_len = text.size()};
  const ssize_t got = ::process_vm_readv(pid.value(), &local, 1, &remote, 1, 0);
  if (got < 0) {
    return std::nullopt;
  }
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace

std::optional<std::string> read_environ_value(base::Pid pid, std::string_view name) {
  auto text = base::read_file(fmt::format("/proc/{}/environ", pid.value()), kMostEnvironment);
  if (!text && errno == EACCES) {
    text = environment_in_memory(pid);
  }
  return text ? parse_environ_value(*text, name) : std::nullopt;
}

std::optional<std::string> read_auxv(base::Pid pid) {
  return base::read_file(fmt::format("/proc/{}/auxv", pid.value()), std::size_t{1} << 16);
}

}  // namespace pyinject::procfs
