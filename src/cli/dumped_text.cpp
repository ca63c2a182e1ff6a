#include "cli/dumped_text.hpp"

#include "cli/command_line.hpp"
#include "cli/source_lines.hpp"
#include "cli/terminal.hpp"
#include "pyinject/inspect/dump_text.hpp"

#include <fmt/format.h>

#include <optional>

#include <sys/stat.h>

namespace pyinject::cli {

namespace {

std::optional<SourceLines> sources_of(const inspect::ProcessSnapshot& process) {
  if (!process.core) {
    return SourceLines{process.pid};
  }
  struct stat facts {};
  return ::stat(process.core->file.c_str(), &facts) == 0
             ? std::optional{SourceLines{process.pid, facts.st_mtime}}
             : std::nullopt;
}

}  // namespace

std::string dumped_text(const inspect::ProcessSnapshot& process, const DumpCommand& command,
                        bool verbose) {
  inspect::TextOptions options{.color = look_at_output().color, .verbose = verbose};
  auto sources = command.sources ? sources_of(process) : std::nullopt;
  if (sources) {
    options.source_line = [&sources](const std::string& file, std::uint32_t line) {
      return sources->line(file, line);
    };
  }
  auto text = inspect::to_text(process, options);
  if (const auto note = sources ? sources->note() : std::string{}; !note.empty()) {
    text += fmt::format("  {}\n", note);
  }
  return text;
}

}  // namespace pyinject::cli
