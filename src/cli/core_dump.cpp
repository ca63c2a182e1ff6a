#include "cli/core_dump.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/dumped_text.hpp"
#include "elf/core_file.hpp"
#include "inspect/core_image.hpp"
#include "inspect/core_snapshot.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/inspect/dump_json.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/record/plan.hpp"
#include "python/examine/image_examination.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using python::Reason;
using record::kFailure;

std::variant<elf::CoreFile, std::string> open_core(const std::string& path) {
  // O_NONBLOCK: a FIFO is refused at once.
  base::UniqueFd file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!file.valid()) {
    return base::errno_text(errno);
  }
  auto opened = elf::CoreFile::open(std::move(file));
  if (auto* const failure = std::get_if<elf::NotCore>(&opened)) {
    return std::move(failure->why);
  }
  return std::get<elf::CoreFile>(std::move(opened));
}

// Whether a core that was refused for REASON has threads worth showing without Python stacks.
bool shows_threads(Reason reason, const elf::CoreFile& core) {
  return reason == Reason::kFinalizing ||
         (core.truncated() && reason != Reason::kNotPython && reason != Reason::kPythonTooOld);
}

inspect::DumpedProcess dump_image(const std::shared_ptr<inspect::CoreImage>& image,
                                  const std::string& file, bool locals) {
  const auto& core = image->core();
  inspect::DumpedProcess process{.pid = inspect::pid_of(core), .snapshot = {}, .refusal = {}};
  const auto detection = python::detect_in(*image, process.pid);
  if (const auto* const refused = std::get_if<python::Refused>(&detection)) {
    process.refusal = refused->refusal;
    if (shows_threads(refused->refusal.reason, core)) {
      process.snapshot = inspect::take_core_snapshot(image, file, nullptr, locals);
    }
  } else {
    process.snapshot =
        inspect::take_core_snapshot(image, file, &std::get<python::Target>(detection), locals);
    if (!process.snapshot->no_stacks.empty()) {
      process.refusal = {
          .reason = Reason::kLayoutMismatch,
          .found = "its Python stacks cannot be read" +
                   (core.truncated() ? std::string{} : ": " + process.snapshot->no_stacks),
          .remedy = {}};
    }
  }
  if (process.refusal && core.truncated()) {
    process.refusal->remedy = fmt::format(
        "the core file is truncated: it has {} of {} bytes; write it again without a "
        "limit of its size (ulimit -c unlimited)",
        core.size(), core.expected_size());
  }
  return process;
}

void print_core(const std::vector<inspect::DumpedProcess>& processes, const DumpCommand& command,
                bool verbose) {
  std::string text;
  if (command.json) {
    text = inspect::to_json(processes, inspect::JsonForm::kIndented);
  } else {
    for (const auto& process : processes) {
      if (process.snapshot) {
        text += dumped_text(*process.snapshot, command, verbose);
      }
    }
  }
  base::write_all(STDOUT_FILENO, text, "standard output");
}

}  // namespace

int dump_core(const DumpCommand& command, bool verbose, base::Logger& logger) {
  const auto& file = *command.core;
  const auto refuse = [&](const std::string& why) {
    logger.log(base::LogLevel::kError,
               fmt::format("{}: cannot dump: {}", base::printable(file), why));
  };
  std::vector<inspect::DumpedProcess> processes;
  bool missing = false;
  auto core = open_core(file);
  if (const auto* const why = std::get_if<std::string>(&core)) {
    refuse(base::printable(*why));
  } else {
    const auto image =
        std::make_shared<inspect::CoreImage>(std::get<elf::CoreFile>(std::move(core)));
    processes.push_back(dump_image(image, file, command.locals));
    if (processes.front().refusal) {
      refuse(base::printable(python::describe(*processes.front().refusal)));
    }
    if (auto& snapshot = processes.front().snapshot; snapshot && !command.tids.empty()) {
      const auto found = inspect::show_only(*snapshot, command.tids);
      for (const auto tid : command.tids) {
        if (!found.contains(tid)) {
          refuse(fmt::format("it has no thread {}", tid.value()));
          missing = true;
        }
      }
    }
  }
  print_core(processes, command, verbose);
  return processes.empty() || processes.front().refusal || missing ? kFailure : 0;
}

}  // namespace pyinject::cli
