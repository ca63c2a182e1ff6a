// What a client may ask for, and who makes it.
#pragma once

#include "pyinject/base/pid.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

namespace pyinject::serve {

enum class Event : std::uint8_t { kCpu, kOffCpu, kAlloc };

struct ProfileRequest {
  std::chrono::seconds length{};
  std::optional<base::Pid> pid{};  // at most one of PID and COMM is given
  std::string comm{};              // glob for the name of a process; empty: any
  Event event = Event::kCpu;
};

struct MadeProfile {
  std::string bytes;  // gzip'ed pprof
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;
  std::uint64_t processes = 0;  // with samples
};

// Why there is no profile.
struct Problem {
  unsigned status = 500;  // of HTTP
  std::string reason{};   // a stable name: "no_such_process", "too_many_requests"
  std::string text{};     // one sentence
};

using ProfileResult = std::variant<MadeProfile, Problem>;

// Thread-safe.
class ProfileMaker {
 public:
  virtual ~ProfileMaker() = default;
  ProfileMaker() = default;
  ProfileMaker(const ProfileMaker&) = delete;
  ProfileMaker& operator=(const ProfileMaker&) = delete;

  // Takes as long as the profile is, and must not throw. Ends early, with any result, once STOP is
  // requested; leaves nothing behind.
  [[nodiscard]] virtual ProfileResult make(const ProfileRequest& request,
                                           const std::stop_token& stop) = 0;
};

}  // namespace pyinject::serve
