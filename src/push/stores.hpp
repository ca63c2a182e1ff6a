// The profile stores: a row for each, and one function that makes its request of a profile.
#pragma once

#include "push/labels.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::push {

// A profile of one series, ready to be sent.
struct Delivery {
  std::string id;  // a UUID, the same for every attempt
  Labels labels;
  std::string pprof;  // gzip'ed
};

// The same for every attempt. Credentials are added when it is sent.
struct Request {
  std::string path;                  // appended to the store's URL
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
};

struct Store {
  std::string_view kind;  // of --push KIND=URL
  // nullptr: the store is a directory.
  Request (*request)(const Delivery& delivery) = nullptr;
};

[[nodiscard]] std::span<const Store> stores();
// nullptr: none has this KIND.
[[nodiscard]] const Store* find_store(std::string_view kind);

// push.v1.PusherService/Push of Pyroscope, as Connect's JSON:
// https://grafana.com/docs/pyroscope/latest/reference-server-api/
[[nodiscard]] Request pyroscope_request(const Delivery& delivery);
// parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw of Parca, as the JSON of grpc-gateway:
// proto/parca/profilestore/v1alpha1/profilestore.proto
[[nodiscard]] Request parca_request(const Delivery& delivery);

}  // namespace pyinject::push
