// A synthetic perf.data file: one process, one file mapped into it, samples with call chains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {

class SampledImageData {
 public:
  void add_comm(std::uint32_t pid, std::string_view name);
  // BUILD_ID: 20 bytes. Written to the record and to the file's list of build-ids.
  void add_mapping(std::uint32_t pid, std::uint64_t start, std::uint64_t size,
                   std::string_view file, std::span<const std::byte> build_id);
  // CHAIN: leaf first.
  void add_sample(std::uint32_t pid, std::span<const std::uint64_t> chain);
  [[nodiscard]] std::string bytes() const;

 private:
  std::string records_;
  std::string build_ids_;
  std::uint64_t time_ = 1'000'000'000;
};

}  // namespace pyinject::test
