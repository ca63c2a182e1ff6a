// perf's side-band records: a process chooses its name and the names of its files.
#include "fuzz/fuzz.hpp"
#include "watch/side_band.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace pyinject::fuzz {
namespace {

void any_record(std::string bytes) {
  if (bytes.size() >= 8 && bytes.size() <= 0xffff) {
    const auto size = static_cast<std::uint16_t>(bytes.size());
    std::memcpy(bytes.data() + 6, &size, sizeof size);
  }
  const auto decoded = watch::decode_side_band(std::as_bytes(std::span{bytes}));
  if (!decoded) {
    return;
  }
  const auto& event = decoded->event;
  require(bytes.size() >= 16, "a record has a header and a time");
  require(decoded->lost || event.pid.value() > 0, "a process has a pid");
  require(event.parent.value() >= 0, "a parent has one, or is not known");
  require(event.path.size() < bytes.size() && event.path.find('\0') == std::string::npos,
          "names are bounded");
  require(event.change != watch::Change::kMapped || event.file.inode != 0, "a mapped file is one");
}

void in_order(std::string_view times) {
  std::vector<watch::SideBand> held;
  for (const char time : times) {
    held.push_back({.time = static_cast<unsigned char>(time), .lost = false, .event = {}});
  }
  constexpr std::uint64_t kNow = 128;
  const auto taken = watch::take_until(held, kNow);
  require(taken.size() + held.size() == times.size(), "none is lost");
  for (std::size_t i = 0; i < taken.size(); ++i) {
    require(taken[i].time <= kNow && (i == 0 || taken[i - 1].time <= taken[i].time), "in order");
  }
}

}  // namespace

void run(Input input) {
  any_record(std::string{input.text()});
  in_order(input.text());
}

}  // namespace pyinject::fuzz
