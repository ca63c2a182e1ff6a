// Numbers of the fields of OpenTelemetry's profiles, from opentelemetry-proto 1.11.0:
// opentelemetry/proto/profiles/v1development/profiles.proto,
// .../collector/profiles/v1development/profiles_service.proto, .../common/v1/common.proto and
// .../resource/v1/resource.proto.
#pragma once

#include <protozero/types.hpp>

namespace pyinject::exports::otlp {

namespace request {
constexpr protozero::pbf_tag_type kResourceProfiles = 1;
constexpr protozero::pbf_tag_type kDictionary = 2;
}  // namespace request
namespace response {
constexpr protozero::pbf_tag_type kPartialSuccess = 1;
}  // namespace response
namespace partial_success {
constexpr protozero::pbf_tag_type kRejected = 1;
constexpr protozero::pbf_tag_type kMessage = 2;
}  // namespace partial_success
namespace resource_profiles {
constexpr protozero::pbf_tag_type kResource = 1;
constexpr protozero::pbf_tag_type kScopeProfiles = 2;
}  // namespace resource_profiles
namespace resource {
constexpr protozero::pbf_tag_type kAttributes = 1;
}  // namespace resource
namespace scope_profiles {
constexpr protozero::pbf_tag_type kScope = 1;
constexpr protozero::pbf_tag_type kProfiles = 2;
}  // namespace scope_profiles
namespace scope {
constexpr protozero::pbf_tag_type kName = 1;
constexpr protozero::pbf_tag_type kVersion = 2;
}  // namespace scope
namespace key_value {
constexpr protozero::pbf_tag_type kKey = 1;
constexpr protozero::pbf_tag_type kValue = 2;
}  // namespace key_value
namespace any_value {
constexpr protozero::pbf_tag_type kString = 1;
constexpr protozero::pbf_tag_type kInt = 3;
}  // namespace any_value
namespace dictionary {
constexpr protozero::pbf_tag_type kMappings = 1;
constexpr protozero::pbf_tag_type kLocations = 2;
constexpr protozero::pbf_tag_type kFunctions = 3;
constexpr protozero::pbf_tag_type kLinks = 4;
constexpr protozero::pbf_tag_type kStrings = 5;
constexpr protozero::pbf_tag_type kAttributes = 6;
constexpr protozero::pbf_tag_type kStacks = 7;
}  // namespace dictionary
namespace profile {
constexpr protozero::pbf_tag_type kSampleType = 1;
constexpr protozero::pbf_tag_type kSamples = 2;
constexpr protozero::pbf_tag_type kTime = 3;
constexpr protozero::pbf_tag_type kDuration = 4;
constexpr protozero::pbf_tag_type kPeriodType = 5;
constexpr protozero::pbf_tag_type kPeriod = 6;
constexpr protozero::pbf_tag_type kId = 7;
}  // namespace profile
namespace value_type {
constexpr protozero::pbf_tag_type kType = 1;
constexpr protozero::pbf_tag_type kUnit = 2;
}  // namespace value_type
namespace sample {
constexpr protozero::pbf_tag_type kStack = 1;
constexpr protozero::pbf_tag_type kAttributes = 2;
constexpr protozero::pbf_tag_type kValues = 4;
constexpr protozero::pbf_tag_type kTimestamps = 5;
}  // namespace sample
namespace mapping {
constexpr protozero::pbf_tag_type kLimit = 2;
constexpr protozero::pbf_tag_type kFilename = 4;
constexpr protozero::pbf_tag_type kAttributes = 5;
}  // namespace mapping
namespace stack {
constexpr protozero::pbf_tag_type kLocations = 1;
}  // namespace stack
namespace location {
constexpr protozero::pbf_tag_type kMapping = 1;
constexpr protozero::pbf_tag_type kAddress = 2;
constexpr protozero::pbf_tag_type kLines = 3;
constexpr protozero::pbf_tag_type kAttributes = 4;
}  // namespace location
namespace line {
constexpr protozero::pbf_tag_type kFunction = 1;
constexpr protozero::pbf_tag_type kLine = 2;
}  // namespace line
namespace function {
constexpr protozero::pbf_tag_type kName = 1;
constexpr protozero::pbf_tag_type kSystemName = 2;
constexpr protozero::pbf_tag_type kFilename = 3;
}  // namespace function
namespace attribute {
constexpr protozero::pbf_tag_type kKey = 1;
constexpr protozero::pbf_tag_type kValue = 2;
}  // namespace attribute
namespace link {
constexpr protozero::pbf_tag_type kTraceId = 1;
constexpr protozero::pbf_tag_type kSpanId = 2;
}  // namespace link

}  // namespace pyinject::exports::otlp
