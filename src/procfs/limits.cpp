#include "procfs/limits.hpp"

#include "base/text.hpp"
#include "procfs/read_process_file.hpp"

#include <fmt/format.h>

namespace pyinject::procfs {

namespace {

std::optional<std::uint64_t> limit_in(std::string_view text, std::string_view line) {
  const auto at = text.find(line);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  auto soft = base::trim(text.substr(at + line.size()));
  soft = soft.substr(0, soft.find_first_of(" \n"));
  return soft == "unlimited" ? Limits::kUnlimited : base::parse_number<std::uint64_t>(soft);
}

}  // namespace

std::optional<Limits> parse_limits(std::string_view text) {
  const auto file_size = limit_in(text, "Max file size");
  const auto open_files = limit_in(text, "Max open files");
  const auto address_space = limit_in(text, "Max address space");
  if (!file_size || !open_files || !address_space) {
    return std::nullopt;
  }
  return Limits{
      .file_size = *file_size, .open_files = *open_files, .address_space = *address_space};
}

std::optional<Limits> read_limits(base::Pid pid) {
  const auto text = read_process_file(fmt::format("/proc/{}/limits", pid.value()));
  return text ? parse_limits(*text) : std::nullopt;
}

bool ignores_signal(std::string_view text, int signal) {
  constexpr std::string_view kLine = "\nSigIgn:\t";
  constexpr std::size_t kDigits = 16;
  const auto at = text.find(kLine);
  const auto mask =
      at == std::string_view::npos
          ? std::nullopt
          : base::parse_number<std::uint64_t>(text.substr(at + kLine.size(), kDigits), kDigits);
  return mask && (*mask >> (static_cast<unsigned>(signal) - 1) & 1U) != 0;
}

bool ignores_signal(base::Pid pid, int signal) {
  const auto text = read_process_file(fmt::format("/proc/{}/status", pid.value()));
  return text && ignores_signal(std::string_view{*text}, signal);
}

}  // namespace pyinject::procfs
