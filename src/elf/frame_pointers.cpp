#include "elf/frame_pointers.hpp"

#include "elf/eh_frame.hpp"

#include <vector>

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kLargeFunction = 256;
constexpr std::size_t kMostSamples = 2000;
// Several files are examined concurrently.
constexpr std::uint64_t kMostMemoryOfSurvey = std::uint64_t{48} << 20U;
constexpr std::uint64_t kMostStepsOfSurvey = 10'000'000;

}  // namespace

std::optional<double> frame_pointer_share(const ElfFile& file) {
  base::Allowance memory{kMostMemoryOfSurvey};
  const auto table = EhFrame::of(file, memory);
  if (!table) {
    return std::nullopt;
  }
  std::vector<base::ElfAddress> middles;
  for (const auto& function : table->functions()) {
    if (function.size >= kLargeFunction) {
      middles.emplace_back(function.begin.value() + function.size / 2);
    }
  }
  if (middles.empty()) {
    return std::nullopt;
  }
  const std::size_t step = (middles.size() + kMostSamples - 1) / kMostSamples;
  std::size_t samples = 0;
  std::size_t with_frame_pointer = 0;
  base::Allowance steps{kMostStepsOfSurvey};
  for (std::size_t i = 0; i < middles.size(); i += step) {
    const auto row = table->row_at(middles[i], steps);
    ++samples;
    with_frame_pointer += row && row->cfa_register == kFramePointer ? 1 : 0;
  }
  return static_cast<double>(with_frame_pointer) / static_cast<double>(samples);
}

}  // namespace pyinject::elf
