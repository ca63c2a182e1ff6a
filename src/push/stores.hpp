// The profile stores: a row for each, and one function that makes its request of a profile.
#pragma once

#include "push/answer.hpp"
#include "push/labels.hpp"
#include "pyinject/report/profile.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::push {

// A profile of one series, ready to be sent.
struct Delivery {
  std::string id;  // a UUID, the same for every attempt
  Labels labels;
  const report::Profile* profile = nullptr;
};

// The same for every attempt. Credentials are added when it is sent.
struct Request {
  std::string path;                  // appended to the store's URL; may be empty
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
};

struct Store {
  std::string_view kind;  // of --push KIND=URL
  // nullptr: the store is a directory.
  Request (*request)(const Delivery& delivery) = nullptr;
  std::string_view path{};  // of a URL that has none
  Retries retries = Retries::kServerErrors;
  // What the answer of a store that has accepted a request says about it. nullptr: nothing.
  Remark (*remark)(std::string_view answer) = nullptr;
  std::string_view caution{};  // a warning before the first recording; empty: none
};

[[nodiscard]] std::span<const Store> stores();
// nullptr: none has this KIND.
[[nodiscard]] const Store* find_store(std::string_view kind);

// gzip'ed
[[nodiscard]] std::string pprof_of(const report::Profile& profile);

// push.v1.PusherService/Push of Pyroscope, as Connect's JSON:
// https://grafana.com/docs/pyroscope/latest/reference-server-api/
[[nodiscard]] Request pyroscope_request(const Delivery& delivery);
// parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw of Parca, as the JSON of grpc-gateway:
// proto/parca/profilestore/v1alpha1/profilestore.proto
[[nodiscard]] Request parca_request(const Delivery& delivery);
// OTLP/HTTP of OpenTelemetry, see export/otlp.hpp. Labels become attributes of the resource.
[[nodiscard]] Request otlp_request(const Delivery& delivery);
// The partial success in an ExportProfilesServiceResponse.
[[nodiscard]] Remark otlp_remark(std::string_view answer);

}  // namespace pyinject::push
