#include "record/interruption.hpp"

#include <csignal>

namespace pyinject::record {

Interruption::Interruption(targets::StopRequests& requests, bool repeated)
    : requests_{requests}, repeated_{repeated} {
  requests_.listen([this](int) { cancellation_.cancel(); });
}

bool Interruption::take() {
  const auto signal = requests_.next();
  if (!signal) {
    return false;
  }
  const int before = signal_;
  if (before == 0 || (repeated_ && before == SIGHUP)) {
    signal_ = *signal;
  }
  if (!repeated_ || !completing_) {
    return true;
  }
  return *signal != SIGHUP && before != 0 && before != SIGHUP;
}

void Interruption::drop_all() {
  while (requests_.next()) {
  }
}

}  // namespace pyinject::record
