#include "e2e/sampled_image_data.hpp"

#include <limits>

#include <linux/perf_event.h>

namespace pyinject::test {

namespace {

// tools/perf/Documentation/perf.data-file-format.txt, Linux 6.1.
constexpr std::uint64_t kBuildIdFeature = 2;
constexpr std::uint32_t kBuildIdRecord = 67;          // PERF_RECORD_HEADER_BUILD_ID
constexpr std::uint16_t kBuildIdSizeGiven = 1 << 15;  // PERF_RECORD_MISC_BUILD_ID_SIZE
constexpr std::uint64_t kSampleType =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;

template <typename T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: the bytes of a number
}

void put_text(std::string& to, std::string_view text) {
  to.append(text);
  to.append(8 - to.size() % 8, '\0');  // at least one
}

void put_bytes(std::string& to, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    to.push_back(static_cast<char>(byte));
  }
}

void put_record(std::string& to, std::uint32_t type, std::uint16_t misc, const std::string& body) {
  put(to, perf_event_header{
              .type = type,
              .misc = misc,
              .size = static_cast<std::uint16_t>(sizeof(perf_event_header) + body.size())});
  to += body;
}

// All perfs read it; a later kernel's headers may have more.
constexpr std::size_t kAttr = PERF_ATTR_SIZE_VER7;

perf_event_attr make_attr() {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = kAttr;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = 1'000'000;
  attr.sample_type = kSampleType;
  attr.mmap = 1;
  attr.comm = 1;
  attr.mmap2 = 1;
  attr.sample_id_all = 1;
  return attr;
}

}  // namespace

void SampledImageData::add_comm(std::uint32_t pid, std::string_view name) {
  std::string body;
  put(body, pid);
  put(body, pid);
  put_text(body, name);
  put(body, pid);
  put(body, pid);
  put(body, std::uint64_t{0});
  put_record(records_, PERF_RECORD_COMM, 0, body);
}

void SampledImageData::add_mapping(std::uint32_t pid, std::uint64_t start, std::uint64_t size,
                                   std::string_view file, std::span<const std::byte> build_id) {
  constexpr std::uint32_t kReadExecute = 5;
  constexpr std::uint32_t kPrivate = 2;
  std::string body;
  put(body, pid);
  put(body, pid);
  put(body, start);
  put(body, size);
  put(body, start);
  put(body, static_cast<std::uint32_t>(build_id.size()));
  put_bytes(body, build_id);
  put(body, kReadExecute);
  put(body, kPrivate);
  put_text(body, file);
  put(body, pid);
  put(body, pid);
  put(body, std::uint64_t{0});
  put_record(records_, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
             body);
  std::string listed;
  put(listed, std::numeric_limits<std::uint32_t>::max());
  put_bytes(listed, build_id);
  put(listed, static_cast<std::uint32_t>(build_id.size()));
  put_text(listed, file);
  put_record(build_ids_, kBuildIdRecord, PERF_RECORD_MISC_USER | kBuildIdSizeGiven, listed);
}

void SampledImageData::add_sample(std::uint32_t pid, std::span<const std::uint64_t> chain) {
  std::string body;
  put(body, chain.front());
  put(body, pid);
  put(body, pid);
  put(body, time_ += 1'000'000);
  put(body, std::uint64_t{chain.size() + 1});
  put(body, static_cast<std::uint64_t>(PERF_CONTEXT_USER));
  for (const std::uint64_t address : chain) {
    put(body, address);
  }
  put_record(records_, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, body);
}

std::string SampledImageData::bytes() const {
  constexpr std::uint64_t kHeaderSize = 104;
  constexpr std::uint64_t kAttrSize = kAttr + 16;  // and its list of ids
  const std::uint64_t data = kHeaderSize + kAttrSize;
  const std::uint64_t features = data + records_.size();
  std::string file = "PERFILE2";
  for (const std::uint64_t value :
       {kHeaderSize, kAttrSize, kHeaderSize, kAttrSize, data, std::uint64_t{records_.size()},
        std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1} << kBuildIdFeature, std::uint64_t{0},
        std::uint64_t{0}, std::uint64_t{0}}) {
    put(file, value);
  }
  const auto attr = make_attr();
  file.append(reinterpret_cast<const char*>(&attr), kAttr);  // NOLINT: a file's layout
  put(file, std::uint64_t{0});
  put(file, std::uint64_t{0});
  file += records_;
  put(file, features + 16);
  put(file, std::uint64_t{build_ids_.size()});
  return file + build_ids_;
}

}  // namespace pyinject::test
