// A profile as an OpenTelemetry request, the body of POST /v1development/profiles.
#pragma once

#include "report/profile.hpp"

#include <span>
#include <string>
#include <string_view>

namespace pyinject::exports {

// The release of opentelemetry-proto with these fields. The profiles signal is in alpha: its
// releases 1.8, 1.9 and 1.10 were not compatible with each other.
constexpr std::string_view kOtlpProto = "1.11.0";

struct ResourceAttribute {
  std::string key;  // "host.name"
  std::string value;
};

// opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest, encoded. Has
// one Profile for each event with samples. If the profile has only one process name and RESOURCE
// no "service.name", this name becomes it.
[[nodiscard]] std::string otlp_request(const report::Profile& profile,
                                       std::span<const ResourceAttribute> resource);

}  // namespace pyinject::exports
