#include "push/profile_directory.hpp"

#include "base/file.hpp"
#include "push/spool.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace pyinject::push {

namespace {

std::string file_name_of(const Delivery& delivery, std::chrono::system_clock::time_point time) {
  constexpr std::size_t kLongestService = 100;
  constexpr std::size_t kDigitsOfId = 8;
  auto service = label_of(delivery.labels, "service_name").substr(0, kLongestService);
  std::ranges::replace_if(
      service,
      [](char one) {
        return !((one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
                 (one >= '0' && one <= '9') || one == '-' || one == '_');
      },
      '_');
  return fmt::format("{}.{:%Y%m%d%H%M%S}.{}.pb.gz", service,
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)),
                     delivery.id.substr(0, kDigitsOfId));
}

}  // namespace

ProfileDirectory::ProfileDirectory(const std::string& path)
    : directory_{open_own_directory(path)} {}

void ProfileDirectory::write(const Delivery& delivery,
                             std::chrono::system_clock::time_point time) const {
  const auto name = file_name_of(delivery, time);
  base::NewFile file{directory_, name};
  base::write_all(file.fd(), pprof_of(*delivery.profile), directory_.path_of(name));
  if (::fsync(file.fd()) != 0) {
    throw base::SystemError{"cannot write " + directory_.path_of(name), errno};
  }
  file.take_place();
}

}  // namespace pyinject::push
