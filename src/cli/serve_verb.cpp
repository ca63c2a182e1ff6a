#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/default_engine.hpp"
#include "cli/reporter.hpp"
#include "cli/tool_profiles.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "procfs/usage.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "serve/access.hpp"
#include "serve/listening_socket.hpp"
#include "serve/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <sys/resource.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

using record::kUsage;

constexpr std::string_view kDefaultListen = "127.0.0.1:6060";  // as Go's documentation has it
constexpr int kDefaultMostSeconds = 300;
constexpr int kLongestServed = 3600;
constexpr int kDefaultMostRequests = 2;
constexpr int kMostRequests = 16;
constexpr int kDefaultRate = 60;
constexpr int kMostRate = 6000;
constexpr int kMostServedFrequency = 10'000;

constexpr auto kServeOptions = std::to_array<Option>({
    under("which processes clients may ask for", rows::kAllCpus.with("all processes (default)")),
    rows::kPid,
    rows::kUid,
    rows::kComm,
    rows::kCgroup,
    under("how", rows::kFreq),
    rows::kEngine,
    rows::kPerfOfPicture,
    under("access", {"--listen A",
                     "the address (default: 127.0.0.1:6060). If other machines can connect, "
                     "--token-file is needed. A unix socket has mode 0600"}),
    {"--token-file F", "require \"Authorization: Bearer TOKEN\", with the token in F",
     Completed::kFiles, "require the token in this file"},
    under("limits", {"--max-seconds N", "of a profile (default: 300)", Completed::kUnknown,
                     "the longest profile, in seconds"}),
    {"--max-requests N", "profiles at a time (default: 2)"},
    {"--max-rate N", "profiles per minute (default: 60)"},
    under("messages", rows::kLogFormat),
});

constexpr std::string_view kServeHelp =
    R"(usage: perf-pyinject serve [--listen ADDRESS:PORT | unix:/PATH] [OPTION...]

Serves profiles of Python processes over HTTP as Go programs do, for
go tool pprof, Grafana Alloy (pyroscope.scrape), Parca and curl. Nothing is
recorded until a client asks:

  GET /debug/pprof/profile?seconds=30[&pid=PID | &comm=GLOB][&event=EVENT]
      EVENT: cpu (default), offcpu (where threads wait), alloc (where memory
      grows, with the kernel's tracepoints)
  GET /metrics     counters for Prometheus
  GET /healthz     ok

{options}

exit status: 128 + N after signal N; 125 refused or failed; 129 usage

examples:
  perf-pyinject serve &
  go tool pprof 'http://127.0.0.1:6060/debug/pprof/profile?seconds=5&pid=4711'
)";

int whole_or(const ParsedWords& parsed, const char* option, int otherwise, int most) {
  return parse_whole(parsed.value(option).value_or(std::to_string(otherwise)),
                     fmt::format("--{}", option), most);
}

// The options that each recording gets as they are.
std::vector<std::string> passed_options(const ParsedWords& parsed,
                                        const std::optional<std::string>& perf) {
  std::vector<std::string> passed;
  if (const auto frequency = parsed.value("freq")) {
    passed.insert(passed.end(),
                  {"-F", std::to_string(parse_whole(*frequency, "-F", kMostServedFrequency))});
  }
  if (const auto engine = parsed.value("engine")) {
    (void)parse_engine(*engine);
    passed.insert(passed.end(), {"--engine", *engine});
  } else if (parsed.default_engine) {
    (void)parsed.default_engine();  // reports a wrong setting now; each recording reads it again
  }
  if (perf) {
    passed.insert(passed.end(), {"--perf", *perf});
  }
  return passed;
}

void parse_serve(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(serve_verb, arguments, Operands::kTargets, line);
  if (line.help) {
    return;
  }
  ServeCommand command{.listen = parsed.value("listen").value_or(std::string{kDefaultListen}),
                       .pids = parsed.pids,
                       .scope = parse_scope(parsed),
                       .token_file = parsed.value("token-file"),
                       .passed = passed_options(parsed, parsed.value("perf"))};
  command.most_seconds =
      std::chrono::seconds{whole_or(parsed, "max-seconds", kDefaultMostSeconds, kLongestServed)};
  command.most_requests = whole_or(parsed, "max-requests", kDefaultMostRequests, kMostRequests);
  command.most_per_minute = whole_or(parsed, "max-rate", kDefaultRate, kMostRate);
  try {
    const auto address = serve::parse_listen_address(command.listen);
    if (!address.is_unix() && !address.is_loopback() && !command.token_file) {
      throw CommandLineError{
          fmt::format(
              "--listen {}: other machines can connect to this address: use --token-file FILE",
              command.listen),
          kUsage};
    }
  } catch (const CommandLineError&) {
    throw;
  } catch (const base::Error& error) {
    throw CommandLineError{error.what(), kUsage};
  }
  line.options = std::move(command);
}

serve::OwnUse own_use() {
  serve::OwnUse use;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const auto& time : {usage.ru_utime, usage.ru_stime}) {
      use.cpu_seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }
  }
  constexpr std::uint64_t kKilo = 1024;
  use.resident_bytes = procfs::read_resident(base::Pid{::getpid()}).value_or(0) * kKilo;
  return use;
}

int run_serve(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<ServeCommand>(line.options);
  auto& logger = reporter.logger();
  const auto address = serve::parse_listen_address(command.listen);
  serve::ServerOptions options;
  if (command.token_file) {
    options.service.token = serve::Token::read(*command.token_file);
  }
  options.service.local_hosts_only = !address.is_unix();
  options.service.most_seconds = command.most_seconds;
  options.service.most_running = static_cast<std::size_t>(command.most_requests);
  options.service.most_per_minute = static_cast<unsigned>(command.most_per_minute);
  options.service.own_use = own_use;
  ToolProfiles profiles{ServedProcesses{command.pids, command.scope}, command.passed};
  targets::StopSignals signals;  // before any thread is started: they inherit the mask
  const serve::ListeningSocket socket{address};
  logger.info("serving {}{}", socket.name(), address.is_unix() ? "" : "/debug/pprof/");
  if (!address.is_unix() && !address.is_loopback()) {
    logger.warning(
        "other machines can connect to this port, without TLS: the token and the profiles travel "
        "unencrypted");
  }
  serve::Server{std::move(options), profiles}.run(socket.fd(), signals.fd());
  const auto signal = signals.next();
  constexpr int kSignalled = 128;
  return signal ? kSignalled + *signal : 0;
}

}  // namespace

const VerbSpec serve_verb{.name = "serve",
                          .summary = "serve profiles over HTTP, as Go programs do",
                          .options = kServeOptions,
                          .parse = parse_serve,
                          .run = run_serve,
                          .help = kServeHelp};

}  // namespace pyinject::cli
