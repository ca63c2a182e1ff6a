// A protobuf message, decoded without its definition.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_reader.hpp>

namespace pyinject::test {

class DecodedMessage {
 public:
  DecodedMessage() = default;
  explicit DecodedMessage(std::string bytes) : bytes_{std::move(bytes)} {
    protozero::pbf_reader reader{bytes_};
    while (reader.next()) {
      const auto tag = reader.tag();  // reading a field forgets it
      Field field;
      switch (reader.wire_type()) {
        case protozero::pbf_wire_type::varint:
          field.number = reader.get_uint64();
          break;
        case protozero::pbf_wire_type::fixed64:
          field.number = reader.get_fixed64();
          break;
        default:
          field.bytes = reader.get_bytes();
      }
      fields_[tag].push_back(std::move(field));
    }
  }

  [[nodiscard]] bool has(protozero::pbf_tag_type tag) const { return fields_.contains(tag); }
  [[nodiscard]] bool empty() const { return fields_.empty(); }
  // The last one; 0: there is none.
  [[nodiscard]] std::uint64_t number(protozero::pbf_tag_type tag) const {
    const auto found = fields_.find(tag);
    return found == fields_.end() ? 0 : found->second.back().number;
  }
  [[nodiscard]] std::string text(protozero::pbf_tag_type tag) const {
    const auto found = fields_.find(tag);
    return found == fields_.end() ? std::string{} : found->second.back().bytes;
  }
  [[nodiscard]] std::vector<std::string> texts(protozero::pbf_tag_type tag) const {
    std::vector<std::string> all;
    if (const auto found = fields_.find(tag); found != fields_.end()) {
      for (const auto& field : found->second) {
        all.push_back(field.bytes);
      }
    }
    return all;
  }
  // Packed or not.
  [[nodiscard]] std::vector<std::uint64_t> numbers(protozero::pbf_tag_type tag) const {
    std::vector<std::uint64_t> all;
    protozero::pbf_reader reader{bytes_};
    while (reader.next(tag)) {
      if (reader.wire_type() == protozero::pbf_wire_type::varint) {
        all.push_back(reader.get_uint64());
      } else {
        for (const auto number : reader.get_packed_uint64()) {
          all.push_back(number);
        }
      }
    }
    return all;
  }
  [[nodiscard]] std::vector<std::uint64_t> packed_fixed64(protozero::pbf_tag_type tag) const {
    std::vector<std::uint64_t> all;
    protozero::pbf_reader reader{bytes_};
    while (reader.next(tag)) {
      for (const auto number : reader.get_packed_fixed64()) {
        all.push_back(number);
      }
    }
    return all;
  }
  [[nodiscard]] DecodedMessage message(protozero::pbf_tag_type tag) const {
    return DecodedMessage{text(tag)};
  }
  [[nodiscard]] std::vector<DecodedMessage> messages(protozero::pbf_tag_type tag) const {
    std::vector<DecodedMessage> all;
    for (auto& bytes : texts(tag)) {
      all.emplace_back(std::move(bytes));
    }
    return all;
  }

 private:
  struct Field {
    std::uint64_t number = 0;
    std::string bytes;
  };
  std::string bytes_;
  std::map<protozero::pbf_tag_type, std::vector<Field>> fields_;
};

}  // namespace pyinject::test
