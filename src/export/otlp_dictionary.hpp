// The tables that all profiles of an OpenTelemetry request share.
#pragma once

#include "base/text.hpp"
#include "export/intern_table.hpp"
#include "pyinject/report/profile.hpp"
#include "report/marks.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace pyinject::exports {

// Entries get their numbers when they are first asked for. Number 0 is the zero value of each
// table, "none". Tables hold encoded messages: no entry is there twice.
class OtlpDictionary {
 public:
  explicit OtlpDictionary(const report::Profile& profile, const report::UnmarkedStacks& stacks);

  // Invalid UTF-8 is replaced: protobuf's decoders reject it.
  std::uint32_t string(std::string_view text) {
    return strings_.number(base::printable(text, kLongestText));
  }
  // 0 if VALUE is empty.
  std::uint32_t attribute(std::string_view key, std::string_view value);
  std::uint32_t attribute(std::string_view key, std::uint64_t value);
  // NODE: of the UnmarkedStacks.
  std::uint32_t stack(std::uint32_t node);
  // Once, at the end.
  void write(protozero::pbf_writer& dictionary) const;

 private:
  static constexpr std::size_t kLongestText = 65536;
  std::uint32_t mapping(const report::Object& object);
  std::uint32_t function(const report::Function& function);
  std::uint32_t location(std::uint32_t frame);

  const report::Profile& profile_;
  const report::UnmarkedStacks& unmarked_;
  InternTable strings_{""};
  InternTable attributes_{""};
  InternTable mappings_{""};
  InternTable functions_{""};
  InternTable locations_{""};
  std::vector<std::uint32_t> location_numbers_;  // by frame; 0: not there yet
  std::vector<std::uint32_t> stack_nodes_{0};    // by stack, but for the zero value
  std::unordered_map<std::uint32_t, std::uint32_t> stack_numbers_{{0, 0}};  // by node
};

}  // namespace pyinject::exports
