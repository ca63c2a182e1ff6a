// Records a Python process and writes its profile for `go tool pprof`, or in another format of
// `perf-pyinject export`, to standard output: profile_to_pprof PID SECONDS [FORMAT]
//   profile_to_pprof 4711 10 > profile.pb.gz
#include "pyinject/pyinject.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

using namespace pyinject;

struct TemporaryDirectory {
  std::string path = std::filesystem::temp_directory_path() / "profile-XXXXXX";
  TemporaryDirectory() {
    if (::mkdtemp(path.data()) == nullptr) {
      throw base::SystemError{"cannot make " + path, errno};
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

// Records PID into FILE. The logger tells of what is missing.
void make_recording(base::Pid pid, const std::string& seconds, const std::string& file) {
  record::RecordPlan plan;
  plan.targets = record::Processes{{pid}};
  plan.engine = record::EngineChoice::kAuto;
  plan.perf_options = perf::PerfOptions{{"-o", file, "-F", "99"}};
  plan.command = {"sleep", seconds};
  plan.names_beside = true;  // next to FILE, not in perf's cache
  base::StderrLogger logger{base::LogLevel::kWarning, false};
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  record::RecordObserver unobserved;
  targets::StopSignals stop;
  const auto result = record::record(plan, *detector, *injector, logger, unobserved, stop);
  if (result.status != 0) {
    throw base::Error{"the recording is not complete"};
  }
}

int main(int argc, char** argv) try {
  const auto* const format = exports::find_format(argc == 4 ? argv[3] : "pprof");
  if (argc < 3 || argc > 4 || format == nullptr) {
    std::cerr << "usage: profile_to_pprof PID SECONDS [FORMAT]\n";
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // as record() asks for
  const TemporaryDirectory directory;
  const auto file = directory.path + "/perf.data";
  make_recording(base::Pid{std::atoi(argv[1])}, argv[2], file);
  const auto read = report::read_profile(file);
  if (const auto* const unsupported = std::get_if<perfdata::UnsupportedFile>(&read)) {
    throw base::Error{unsupported->why};
  }
  const auto& profile = std::get<report::Profile>(read);
  for (const auto& note : profile.notes) {
    std::cerr << "profile_to_pprof: " << note << '\n';
  }
  format->write(profile, [](std::string_view piece) { std::cout << piece; });
  return std::cout.flush() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "profile_to_pprof: " << error.what() << '\n';
  return 1;
}
