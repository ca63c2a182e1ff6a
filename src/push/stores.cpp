#include "push/stores.hpp"

#include "export/deflate.hpp"
#include "export/otlp.hpp"
#include "pyinject/export/formats.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pyinject::push {

namespace {

using nlohmann::ordered_json;

constexpr auto kStores = std::to_array<Store>({
    {.kind = "pyroscope", .request = pyroscope_request},
    {.kind = "parca", .request = parca_request},
    {.kind = "otlp",
     .request = otlp_request,
     .path = "/v1development/profiles",
     .retries = Retries::kGateways,
     .remark = otlp_remark,
     .caution = exports::kOtlpCaution},
    {.kind = "pprof-dir"},
});

constexpr const char* kJson = "Content-Type: application/json";

// Both stores call profiles of Go's CPU profiler so; the types of values are in the profile.
constexpr const char* kProfileName = "process_cpu";

ordered_json labels_of(const Delivery& delivery) {
  auto labels = ordered_json::array({{{"name", "__name__"}, {"value", kProfileName}}});
  for (const auto& label : delivery.labels) {
    labels.push_back({{"name", label.name}, {"value", label.value}});
  }
  return labels;
}

std::string text_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// A duplicate after a lost answer has the same key.
std::string key_of(const Delivery& delivery) { return "Idempotency-Key: " + delivery.id; }

}  // namespace

std::span<const Store> stores() { return kStores; }

const Store* find_store(std::string_view kind) {
  const auto* const found = std::ranges::find(kStores, kind, &Store::kind);
  return found == kStores.end() ? nullptr : found;
}

std::string pprof_of(const report::Profile& profile) {
  std::string text;
  exports::find_format("pprof")->write(profile, [&](std::string_view piece) { text += piece; });
  return text;
}

Request pyroscope_request(const Delivery& delivery) {
  auto sample = ordered_json{{"ID", delivery.id},
                             {"rawProfile", exports::base64(pprof_of(*delivery.profile))}};
  const auto body = ordered_json{
      {"series",
       {{{"labels", labels_of(delivery)}, {"samples", ordered_json::array({std::move(sample)})}}}}};
  // Connect's servers inflate bodies.
  return {
      .path = "/push.v1.PusherService/Push",
      .headers = {kJson, "Connect-Protocol-Version: 1", "Content-Encoding: gzip", key_of(delivery)},
      .body = exports::gzipped(text_of(body))};
}

Request parca_request(const Delivery& delivery) {
  auto sample = ordered_json{{"rawProfile", exports::base64(pprof_of(*delivery.profile))}};
  auto labels = ordered_json{{"labels", labels_of(delivery)}};
  const auto body = ordered_json{
      {"series",
       {{{"labels", std::move(labels)}, {"samples", ordered_json::array({std::move(sample)})}}}},
      {"normalized", false}};
  return {
      .path = "/profiles/writeraw", .headers = {kJson, key_of(delivery)}, .body = text_of(body)};
}

}  // namespace pyinject::push
