#include "base/greenlet_name.hpp"

#include <algorithm>
#include <array>

namespace pyinject::base {

namespace {

// gevent/greenlet.py, gevent/pywsgi.py, eventlet/greenthread.py: they run what the program wants to
// have run.
constexpr auto kPackages =
    std::to_array<std::string_view>({"/gevent/", "/eventlet/", "/greenlet/"});

bool starts_greenlets(std::string_view file) {
  return std::ranges::any_of(kPackages, [file](std::string_view package) {
    return file.find(package) != std::string_view::npos;
  });
}

}  // namespace

void GreenletName::add(std::string_view function, std::string_view file) {
  if (open()) {
    state_ = starts_greenlets(file) ? State::kOpen : State::kKnown;
    if (!open() || function_.empty()) {
      function_ = function;
    }
  }
}

void GreenletName::add_unknown() {
  if (open() && function_.empty()) {
    function_ = "[unknown]";
  }
  state_ = State::kKnown;
}

std::string GreenletName::text() const {
  return function_.empty() ? "[greenlet]" : "[greenlet] " + function_;
}

}  // namespace pyinject::base
