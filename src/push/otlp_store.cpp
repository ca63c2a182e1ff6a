// OpenTelemetry's profiles over HTTP.
#include "base/text.hpp"
#include "export/deflate.hpp"
#include "export/otlp.hpp"
#include "export/otlp_fields.hpp"
#include "push/stores.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <exception>
#include <utility>

#include <protozero/pbf_reader.hpp>

namespace pyinject::push {

namespace {

namespace otlp = exports::otlp;

// The semantic conventions' names of the tool's own labels. Other labels keep their names.
constexpr auto kAttributes = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"service_name", "service.name"},
    {"hostname", "host.name"},
    {"container_id", "container.id"},
    {"pod_uid", "k8s.pod.uid"},
    {"python_version", "process.runtime.version"},
});

std::vector<exports::ResourceAttribute> attributes_of(const Labels& labels) {
  std::vector<exports::ResourceAttribute> all;
  for (const auto& label : labels) {
    const auto* const known = std::ranges::find(kAttributes, std::string_view{label.name},
                                                [](const auto& one) { return one.first; });
    all.push_back({.key = known == kAttributes.end() ? label.name : std::string{known->second},
                   .value = label.value});
    if (label.name == "python_version") {
      all.push_back({.key = "process.runtime.name", .value = "cpython"});
    }
  }
  return all;
}

exports::ProfileId bytes_of(std::string_view uuid) {
  std::string digits{uuid};
  std::erase(digits, '-');
  exports::ProfileId id{};
  for (std::size_t i = 0; i < id.size() && 2 * i + 2 <= digits.size(); ++i) {
    constexpr int kHexadecimal = 16;
    std::from_chars(&digits[2 * i], &digits[2 * i] + 2, id[i], kHexadecimal);
  }
  return id;
}

}  // namespace

Request otlp_request(const Delivery& delivery) {
  const auto body = exports::otlp_request(*delivery.profile, attributes_of(delivery.labels),
                                          bytes_of(delivery.id));
  return {.path = "",  // the destination has it
          .headers = {"Content-Type: application/x-protobuf", "Content-Encoding: gzip",
                      "Idempotency-Key: " + delivery.id},
          .body = exports::gzipped(body)};
}

Remark otlp_remark(std::string_view answer) {
  constexpr std::size_t kLongestText = 200;
  Remark remark;
  try {
    protozero::pbf_reader response{answer.data(), answer.size()};
    while (response.next(otlp::response::kPartialSuccess,
                         protozero::pbf_wire_type::length_delimited)) {
      auto part = response.get_message();
      while (part.next()) {
        if (part.tag_and_type() == protozero::tag_and_type(otlp::partial_success::kRejected,
                                                           protozero::pbf_wire_type::varint)) {
          remark.rejected = static_cast<std::uint64_t>(std::max<std::int64_t>(part.get_int64(), 0));
        } else if (part.tag_and_type() ==
                   protozero::tag_and_type(otlp::partial_success::kMessage,
                                           protozero::pbf_wire_type::length_delimited)) {
          remark.text = base::printable(part.get_string(), kLongestText);
        } else {
          part.skip();
        }
      }
    }
  } catch (const std::exception&) {
    return {};  // another format, or cut
  }
  return remark;
}

}  // namespace pyinject::push
