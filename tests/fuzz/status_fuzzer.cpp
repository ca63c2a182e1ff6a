// /proc/PID/status (NSpid and the rest), stat, cmdline, environ: a target chooses its name, its
// arguments and its environment.
#include "fuzz/fuzz.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"

#include <string>

namespace pyinject::fuzz {
namespace {

void any_text(std::string_view text) {
  if (const auto status = procfs::parse_status(text)) {
    require(status->process.value() > 0 && status->task.value() > 0, "a process has a pid");
    require(status->state != '?', "a process has a state");
    require(status->groups.size() <= 65536 && status->namespace_pids.size() <= 65536,
            "lists are bounded");
    const auto inner = procfs::inner_pid(*status);
    require(status->namespace_pids.empty() ? inner == status->process
                                           : inner.value() == status->namespace_pids.back(),
            "the innermost number is the last one");
  }
  if (const auto stat = procfs::parse_stat(text)) {
    require(text.find("(" + stat->name + ")") != std::string_view::npos, "the name is there");
    require(text.rfind(')') < text.rfind(stat->state), "the state is behind it");
  }
}

void any_arguments(std::string_view text) {
  std::string again;
  for (const auto& argument : procfs::parse_cmdline(text)) {
    again += argument;
    again += '\0';
  }
  if (!text.empty() && text.back() != '\0') {
    again.pop_back();
  }
  require(again == text, "the arguments are the text");

  const auto value = procfs::parse_environ_value(text, "JIT");
  const std::string whole = '\0' + std::string{text} + '\0';
  const auto at = whole.find(std::string_view{"\0JIT=", 5});
  require(value.has_value() == (at != std::string::npos), "it is there, or not");
  require(!value || *value == whole.c_str() + at + 5, "the first one counts");
}

// Only the name is controlled by the target; it must not be mistaken for another field.
void any_name(std::string_view bytes) {
  constexpr std::size_t kMost = 15;  // TASK_COMM_LEN
  const auto name = bytes.substr(0, std::min(bytes.find('\0'), kMost));
  std::string escaped;
  for (const char c : name) {
    escaped += c == '\n' ? "\\n" : c == '\\' ? "\\\\" : std::string{c};
  }
  const auto status =
      procfs::parse_status("Name:\t" + escaped +
                           "\nState:\tS (sleeping)\nTgid:\t47\nPid:\t48\nPPid:\t1\nTracerPid:\t0\n"
                           "Uid:\t1000\t1001\t1002\t1003\nNSpid:\t47\t1\nSeccomp:\t2\n");
  require(status && status->process == base::Pid{47} && status->task == base::Tid{48} &&
              status->tracer == base::Pid{0} && status->state == 'S' && status->uids[1] == 1001 &&
              status->seccomp == procfs::SeccompMode::kFilter &&
              procfs::inner_pid(*status) == base::Pid{1},
          "status is the kernel's, whatever the name");
  std::string fields = "47 (" + std::string{name} + ") R";
  for (int field = 4; field <= 52; ++field) {
    fields += " " + std::to_string(field);
  }
  const auto stat = procfs::parse_stat(fields + "\n");
  require(stat && stat->name == name && stat->state == 'R' && stat->parent == base::Pid{4} &&
              stat->start_time == 22,
          "stat is the kernel's, whatever the name");
}

}  // namespace

void run(Input input) {
  any_text(input.text());
  any_arguments(input.text());
  any_name(input.text());
}

}  // namespace pyinject::fuzz
