#include "pyinject/targets/stop_requests.hpp"

#include "pyinject/base/error.hpp"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace pyinject::targets {

StopRequests::StopRequests() : arrived_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (!arrived_.valid()) {
    throw base::SystemError{"cannot make an eventfd", errno};
  }
}

void StopRequests::listen(std::function<void(int)> listener) {
  const std::scoped_lock lock{mutex_};
  listener_ = std::move(listener);
  if (listener_ && !queue_.empty()) {
    listener_(queue_.front().number);
  }
}

void StopRequests::add(StopSignal request) {
  const std::scoped_lock lock{mutex_};
  queue_.push_back(request);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(arrived_.get(), &one, sizeof one);
  if (listener_) {
    listener_(request.number);
  }
}

std::optional<StopSignal> StopRequests::next_with_origin() {
  const std::scoped_lock lock{mutex_};
  if (queue_.empty()) {
    return std::nullopt;
  }
  const auto request = queue_.front();
  queue_.pop_front();
  if (queue_.empty()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(arrived_.get(), &count, sizeof count);
  }
  return request;
}

std::optional<int> StopRequests::next() {
  const auto request = next_with_origin();
  return request ? std::optional{request->number} : std::nullopt;
}

const std::vector<int>& StopRequests::ignored_before() const {
  static const std::vector<int> none;
  return none;
}

}  // namespace pyinject::targets
