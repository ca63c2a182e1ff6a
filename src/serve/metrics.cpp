#include "serve/metrics.hpp"

#include "serve/query.hpp"

#include <fmt/format.h>

#include <string_view>

namespace pyinject::serve {

namespace {

class Exposition {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP perf_pyinject_{0} {1}\n# TYPE perf_pyinject_{0} {2}\n", name, help,
                         type);
  }
  template <typename Value>
  void add(std::string_view name, std::string_view labels, Value value) {
    text_ += fmt::format("perf_pyinject_{}{} {}\n", name, labels, value);
  }
  template <typename Value>
  void add_one(std::string_view name, std::string_view type, std::string_view help, Value value) {
    begin(name, type, help);
    add(name, "", value);
  }
  void add_reasons(std::string_view name, std::string_view help,
                   const std::map<std::string, std::uint64_t>& counts) {
    begin(name, "counter", help);
    for (const auto& [reason, count] : counts) {
      add(name, fmt::format("{{reason=\"{}\"}}", reason), count);
    }
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string to_prometheus(const Metrics& metrics, const OwnUse& use) {
  Exposition all;
  all.begin("profiles_total", "counter", "Profiles made.");
  for (const auto event : {Event::kCpu, Event::kOffCpu, Event::kAlloc}) {
    const auto found = metrics.profiles.find(event);
    all.add("profiles_total", fmt::format("{{event=\"{}\"}}", name(event)),
            found == metrics.profiles.end() ? 0 : found->second);
  }
  all.add_one("samples_total", "counter", "Samples in these profiles.", metrics.samples);
  all.add_one("lost_samples_total", "counter", "Samples that perf lost.", metrics.lost);
  all.add_reasons("failures_total", "Profiles that were begun and could not be made.",
                  metrics.failures);
  all.add_reasons("refused_requests_total", "Requests that were refused.", metrics.refusals);
  all.add_one("running_profiles", "gauge", "Profiles that are being made.", metrics.running);
  all.add_one("connections", "gauge", "Open connections.", metrics.connections);
  all.add_one("targets", "gauge", "Processes in the latest profile.", metrics.targets);
  all.add_one("cpu_seconds_total", "counter",
              "CPU time of the server and of recordings that have ended.", use.cpu_seconds);
  all.add_one("resident_bytes", "gauge", "Resident memory of the server.", use.resident_bytes);
  return all.take();
}

}  // namespace pyinject::serve
