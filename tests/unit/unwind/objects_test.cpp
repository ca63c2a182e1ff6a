#include "unwind/objects.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

namespace pyinject::unwind {
namespace {

constexpr std::uint32_t kGone = 7;

// Finds this program, except for processes that are gone together with their file system.
class Finder : public FileFinder {
 public:
  std::vector<base::UniqueFd> candidates(const MappedFile& file) override {
    std::vector<base::UniqueFd> found;
    if (file.mapped_by != kGone) {
      found.emplace_back(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    }
    return found;
  }
};

MappedFile mapped_by(std::uint32_t pid) {
  MappedFile file;
  file.begin = 0x1000;
  file.end = 0x2000;
  file.executable = true;
  file.inode = 42;
  file.path = "/usr/bin/python3";
  file.mapped_by = pid;
  return file;
}

TEST(Objects, AFileThatOneProcessTookAwayIsFoundByTheNext) {
  Finder finder;
  Objects objects{finder};
  const auto gone = mapped_by(kGone);
  const auto here = mapped_by(kGone + 1);
  base::Allowance steps;
  EXPECT_EQ(objects.of(gone, kGone, steps).object, nullptr);
  const auto* const found = objects.of(here, kGone + 1, steps).object;
  EXPECT_NE(found, nullptr);
  const auto third = mapped_by(kGone);
  EXPECT_EQ(objects.of(third, kGone, steps).object, found);
}

}  // namespace
}  // namespace pyinject::unwind
