// A profile as an OpenTelemetry request, the body of POST /v1development/profiles.
#pragma once

#include "pyinject/report/profile.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace pyinject::exports {

// The release of opentelemetry-proto with these fields. The profiles signal is in alpha: its
// releases 1.8, 1.9 and 1.10 were not compatible with each other.
constexpr std::string_view kOtlpProto = "1.11.0";
// For users, before each use.
constexpr std::string_view kOtlpCaution =
    "otlp: OpenTelemetry's profiles are in alpha: this is v1development as of opentelemetry-proto "
    "1.11.0, which receivers of other versions may reject";
static_assert(kOtlpCaution.find(kOtlpProto) != std::string_view::npos);

struct ResourceAttribute {
  std::string key;  // "host.name"
  std::string value;
};

// A UUID; all bytes zero: none.
using ProfileId = std::array<unsigned char, 16>;

// opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest, encoded. Has
// one Profile for each event with samples. If the profile has only one process name and RESOURCE
// no "service.name", this name becomes it. The IDs of the Profiles are derived from ID.
[[nodiscard]] std::string otlp_request(const report::Profile& profile,
                                       std::span<const ResourceAttribute> resource,
                                       const ProfileId& id = {});

}  // namespace pyinject::exports
