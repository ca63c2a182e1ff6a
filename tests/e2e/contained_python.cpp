#include "e2e/contained_python.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <utility>
#include <vector>

namespace pyinject::test {

namespace {

using std::chrono::seconds;

constexpr std::string_view kProgram = R"(import os, sys, time

def burn_NAME(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total

def work_NAME(until):
    while time.process_time() < until:
        burn_NAME(20000)

def born_NAME(until):
    while time.process_time() < until:
        burn_NAME(20000)

def main_NAME():
    print('ready', flush=True)
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        what, milliseconds = line.split()
        if what == 'work':
            work_NAME(time.process_time() + int(milliseconds) / 1000)
        else:
            child = os.fork()
            if child == 0:
                born_NAME(time.process_time() + int(milliseconds) / 1000)
                os._exit(0)
            os.waitpid(child, 0)
        print('done', flush=True)

main_NAME()
)";

std::string name_of(Container kind) {
  switch (kind) {
    case Container::kPrivateTmp:
      return "private_tmp";
    case Container::kReadOnlyRoot:
      return "read_only_root";
    case Container::kNoExecTmp:
      return "noexec_tmp";
    case Container::kOtherUser:
      return "other_user";
    case Container::kUserNamespace:
      return "user_namespace";
  }
  return "";
}

std::string program_of(std::string_view name) {
  std::string program{kProgram};
  constexpr std::string_view kPlace = "NAME";
  for (auto at = program.find(kPlace); at != std::string::npos; at = program.find(kPlace, at)) {
    program.replace(at, kPlace.size(), name);
  }
  return program;
}

// Creates the container of ROOT ($0) and execs the program inside it.
std::string script_of(Container kind) {
  const std::string options = kind == Container::kNoExecTmp ? " -o noexec,nosuid,nodev" : "";
  std::string script = "set -e; mount --rbind \"$0\" \"$0\"; ";
  if (kind == Container::kReadOnlyRoot) {
    script += "mount -o remount,bind,ro \"$0\"; ";
  }
  script += "mount -t tmpfs" + options + " none \"$0/tmp\"; chmod 1777 \"$0/tmp\"; exec \"$@\"";
  return script;
}

Interpreter contained(const Interpreter& python, Container kind) {
  std::vector<std::string> command{"unshare", "--mount", "--pid", "--fork", "--kill-child"};
  if (kind == Container::kUserNamespace) {
    command.insert(command.end(), {"--user", "--map-root-user"});
  } else {
    command.emplace_back("--mount-proc");
  }
  command.insert(command.end(), {"sh", "-c", script_of(kind), python.root});
  if (kind == Container::kOtherUser) {
    command.insert(command.end(), {"chroot", "--userspec=4711:4711", python.root,
                                   fmt::format("/usr/bin/python3.{}", python.minor)});
  } else {
    command.insert(command.end(), python.command.begin(), python.command.end());
  }
  auto result = python;
  result.command = std::move(command);
  return result;
}

std::string only_child_of(base::Pid pid) {
  const auto path = fmt::format("/proc/{0}/task/{0}/children", pid.value());
  return std::string{base::trim(base::read_file(path).value_or(""))};
}

}  // namespace

bool user_namespaces_work() {
  return run({"unshare", "--user", "--map-root-user", "--mount", "true"}).status == ExitStatus{};
}

ContainedPython::ContainedPython(const Interpreter& python, Container kind)
    : name_{name_of(kind)},
      process_{contained(python, kind), program_of(name_)},
      inner_pid_{process_.read_line()},
      pid_{only_child_of(process_.pid())} {}

ContainedPython::~ContainedPython() {
  std::error_code ignored;
  std::filesystem::remove("/tmp/perf-" + pid_ + ".map", ignored);
}

void ContainedPython::ask(const std::string& what) {
  process_.send_line(what);
  if (const auto answer = process_.read_line(kPatience); answer != "done") {
    throw base::Error{name_ + " says " + answer};
  }
}

void ContainedPython::work(std::chrono::milliseconds span) {
  ask(fmt::format("work {}", span.count()));
}

void ContainedPython::fork(std::chrono::milliseconds span) {
  ask(fmt::format("fork {}", span.count()));
}

void ContainedPython::kill() {
  // Its parent waits for it and exits in the same way.
  if (::kill(std::stoi(pid_), SIGKILL) != 0 ||
      !process_.child().wait(base::Deadline::after(kPatience))) {
    throw base::Error{name_ + " does not end"};
  }
}

}  // namespace pyinject::test
