#include "e2e/perf_recording.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;

template <typename Container>
void append(std::vector<std::string>& to, const Container& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::string PerfRecording::program() { return source_dir() + "/tests/targets/call_tree.py"; }

PerfRecording::PerfRecording(std::string perf, const Interpreter& python,
                             const std::string& call_graph, const std::string& seconds)
    : perf_{std::move(perf)}, data_{directory_ / "perf.data"} {
  // The shell writes its pid and then execs the interpreter.
  Arguments record{"record", "-q", "-F", "999", "--call-graph", call_graph, "-o", data_, "--"};
  append(record, Arguments{"/bin/sh", "-c", R"(echo $$ >"$0"; exec "$@")", directory_ / "pid"});
  append(record, python.command);
  append(record, Arguments{"-X", "perf", program(), seconds});
  result_ = run_perf(record);
  const std::string pid = base::read_file(directory_ / "pid").value_or("");
  map_path_ = "/tmp/perf-" + std::string{base::trim(pid)} + ".map";
  map_ = base::read_file(map_path_).value_or("");

  fs::create_directory(directory_ / "exec");
  fs::create_directory_symlink(source_dir() + "/perf-scripts/scripts", directory_ / "exec/scripts");
  // `perf script report` runs a shell script, which must find the same perf.
  fs::permissions(directory_.file("exec/perf", "#!/bin/sh\nexec '" + perf_ + "' \"$@\"\n"),
                  fs::perms::owner_all);
}

PerfRecording::~PerfRecording() {
  if (!map_.empty()) {
    ::unlink(map_path_.c_str());
  }
}

RunResult PerfRecording::run_perf(const Arguments& arguments,
                                  const std::map<std::string, std::string>& environment) const {
  if (!map_.empty() && !fs::exists(map_path_)) {
    const base::UniqueFd fd{
        ::open(map_path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)};
    base::write_all(fd.get(), map_, map_path_);
  }
  Arguments command{perf_};
  append(command, arguments);
  RunOptions options;
  options.child.env = environment;
  options.deadline = std::chrono::seconds{60};
  return run(command, options);
}

long PerfRecording::samples() const {
  const RunResult listing = run_perf({"script", "-i", data_, "-F", "event"});
  return std::ranges::count_if(base::split(listing.out, '\n'),
                               [](std::string_view line) { return !base::trim(line).empty(); });
}

RunResult PerfRecording::script(const std::string& name, const Arguments& arguments) const {
  const std::string file = source_dir() + "/perf-scripts/scripts/python/" + name + ".py";
  Arguments command{"script", "-s", file, "-i", data_, "--"};
  append(command, arguments);
  return run_perf(command);
}

RunResult PerfRecording::report(const std::string& name, const Arguments& arguments) const {
  const std::string exec_path = directory_ / "exec";
  Arguments command{"script", "report", name, "-i", data_};
  if (!perf_.ends_with("/perf")) {
    // The perfs in the roots are wrappers that pass --exec-path themselves: the last one wins.
    command.insert(command.begin(), "--exec-path=" + exec_path);
  }
  append(command, arguments);
  return run_perf(command, {{"PERF_EXEC_PATH", exec_path}});
}

}  // namespace pyinject::test
