// A pusher without perf, whose recordings are made_profile().
#pragma once

#include "base/clock.hpp"
#include "push/pusher.hpp"
#include "pyinject/fake/logger.hpp"
#include "report/clock.hpp"
#include "support/temp_dir.hpp"
#include "unit/push/made_profile.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::push {

// The two series "web" and "job", or "web" alone for the file "web".
inline std::optional<report::Profile> read_made(const std::string& file) {
  auto profile = made_profile();
  const auto now = base::now_by(CLOCK_MONOTONIC);
  profile.clock = report::monotonic_clock();
  for (auto& sample : profile.samples) {
    sample.time += now - 1'000'000'000U;
  }
  if (file == "web") {
    std::erase_if(profile.samples, [](const auto& sample) { return sample.thread == 2; });
  }
  return profile;
}

inline Labels made_labels(const RecordedProcess& process) {
  return {{.name = "service_name", .value = process.name}, {.name = "hostname", .value = "h"}};
}
inline std::optional<LiveProcess> no_process(std::uint32_t /*pid*/) { return std::nullopt; }

class PusherTest : public testing::Test {
 protected:
  PushOptions options(const std::vector<std::string>& destinations) const {
    PushOptions all;
    for (const auto& text : destinations) {
      all.destinations.push_back(std::get<Destination>(parse_destination(text)));
    }
    all.spool = spool();
    all.backoff = {.first = std::chrono::milliseconds{20}, .most = std::chrono::milliseconds{100}};
    all.patience = std::chrono::minutes{1};
    return all;
  }
  Pusher start(PushOptions all) {
    return Pusher{std::move(all), read_made, made_labels, no_process, logger_};
  }
  [[nodiscard]] std::string spool() const { return directory_ / "spool"; }
  [[nodiscard]] std::string text(base::LogLevel level) const { return logger_.text(level); }
  [[nodiscard]] const test::TempDir& directory() const { return directory_; }

 private:
  test::TempDir directory_;
  fake::Logger logger_;
};

}  // namespace pyinject::push
