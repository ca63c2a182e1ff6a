#include "bpf/cold_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::bpf {
namespace {

constexpr std::uint64_t kCodeType = 0x500;
constexpr std::uint64_t kCode = 0x1000;
constexpr std::uint64_t kName = 0x2000;
constexpr std::uint64_t kFile = 0x3000;
constexpr std::uint64_t kLineTable = 0x4000;

sampled_process cold_process() {
  sampled_process process{};
  process.code_type = kCodeType;
  process.type = 8;
  process.first_line = 64;
  process.qualified_name = 72;
  process.file_name = 80;
  process.line_table = 88;
  process.item_count = 16;
  process.bytes_data = 32;
  process.text_length = 16;
  process.text_state = 32;
  process.ascii_data = 40;
  return process;
}

class ColdNamesTest : public testing::Test {
 protected:
  ColdNamesTest() {
    put_code(7);
    put_text(kName, "Shop.serve");
    put_text(kFile, "shop.py");
    words(kLineTable, {0, 0, 2, 0, 0xabcd});
  }

  void words(std::uint64_t address, const std::vector<std::uint64_t>& values) {
    for (const auto value : values) {
      memory_[address] = value;
      address += sizeof value;
    }
  }
  void put_text(std::uint64_t address, std::string_view text) {
    words(address, {0, 0, text.size(), 0, 0x20 | 1U << 2U | 0x40});
    for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      const auto part = text.substr(at, sizeof word);
      std::memcpy(&word, part.data(), part.size());
      memory_[address + 40 + at] = word;
    }
  }
  void put_code(std::uint64_t version) {
    words(kCode, std::vector<std::uint64_t>(SAMPLER_CODE_BYTES / 8));
    words(kCode + 8, {kCodeType});
    words(kCode + 64, {version, kName, kFile, kLineTable});
  }
  // The record of the code object with VERSION.
  [[nodiscard]] static std::vector<std::byte> record(std::uint64_t version) {
    sampled_name_head head{};
    head.kind = SAMPLER_CODE;
    head.pid = 5;
    head.number = 3;
    head.address = kCode;
    head.missing = SAMPLER_MISSING_NAME | SAMPLER_MISSING_FILE | SAMPLER_MISSING_LINES;
    std::array<std::uint64_t, SAMPLER_CODE_WORDS> constant{version, kName, kFile, kLineTable};
    for (const auto word : constant) {
      head.fingerprint = sampler_mix(head.fingerprint, word);
    }
    std::vector<std::byte> bytes(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
  }
  // The text after the head of RECORD; empty: some of it is missing.
  [[nodiscard]] static std::string text(std::span<const std::byte> record) {
    sampled_name_head head{};
    std::memcpy(&head, record.data(), sizeof head);
    const auto rest = record.subspan(sizeof head);
    return head.missing != 0 || head.number != 3
               ? ""
               : std::string{reinterpret_cast<const char*>(rest.data()), rest.size()};
  }
  [[nodiscard]] std::vector<std::string> try_again() {
    std::vector<std::string> taken;
    names_.try_again([&](auto record) { taken.push_back(text(record)); });
    return taken;
  }

  std::map<std::uint64_t, std::uint64_t> memory_;  // words by address
  std::optional<sampled_process> process_ = cold_process();
  ColdNames names_{[this](std::uint32_t pid) { return pid == 5 ? process_ : std::nullopt; },
                   [this](base::Pid, base::RemoteAddress from, std::span<std::byte> into) {
                     for (std::size_t at = 0; at < into.size(); at += sizeof(std::uint64_t)) {
                       const auto word = memory_.find(from.value() + at);
                       if (word == memory_.end()) {
                         return false;
                       }
                       const auto part = into.subspan(at).first(
                           std::min(sizeof(std::uint64_t), into.size() - at));
                       std::memcpy(part.data(), &word->second, part.size());
                     }
                     return true;
                   }};
};

const std::string kWhole = "Shop.serveshop.py\xcd\xab";

TEST_F(ColdNamesTest, AddsWhatBecomesReadable) {
  EXPECT_EQ(text(names_.complete(record(7))), kWhole);
  EXPECT_EQ(names_.unnamed(), 0U);
  EXPECT_TRUE(try_again().empty());
}

TEST_F(ColdNamesTest, RetriesWhatIsUnreadable) {
  memory_.erase(kFile + 40);
  EXPECT_EQ(text(names_.complete(record(7))), "");
  EXPECT_TRUE(try_again().empty());
  EXPECT_EQ(names_.unnamed(), 1U);
  put_text(kFile, "shop.py");
  EXPECT_EQ(try_again(), std::vector{kWhole});
  EXPECT_EQ(names_.unnamed(), 0U);
  EXPECT_TRUE(try_again().empty());
}

TEST_F(ColdNamesTest, AnotherCodeObjectAtTheSamePlaceGivesItNoName) {
  put_code(8);
  EXPECT_EQ(text(names_.complete(record(7))), "");
  EXPECT_EQ(names_.unnamed(), 1U);
  put_code(7);
  EXPECT_TRUE(try_again().empty());
}

TEST_F(ColdNamesTest, AProcessThatHasEndedIsNotTriedAgain) {
  memory_.erase(kName + 40);
  (void)names_.complete(record(7));
  process_.reset();
  EXPECT_TRUE(try_again().empty());
  process_ = cold_process();
  put_text(kName, "Shop.serve");
  EXPECT_TRUE(try_again().empty());
  EXPECT_EQ(names_.unnamed(), 1U);
}

TEST_F(ColdNamesTest, OtherRecordsAreLeftAsTheyAre) {
  const std::vector<std::byte> little(3);
  EXPECT_EQ(names_.complete(little).data(), little.data());
  auto named = record(7);
  named[offsetof(sampled_name_head, missing)] = std::byte{0};
  EXPECT_EQ(names_.complete(named).data(), named.data());
}

}  // namespace
}  // namespace pyinject::bpf
