#include "report/names.hpp"

#include <fmt/format.h>

#include <string_view>

namespace pyinject::report {

namespace {

std::string_view base_name(std::string_view path) {
  while (!path.empty() && path.back() == '/') {
    path.remove_suffix(1);
  }
  return path.substr(path.rfind('/') + 1);
}

std::string_view without_brackets(std::string_view name) {
  if (name.starts_with('[')) {
    name.remove_prefix(1);
  }
  if (name.ends_with(']')) {
    name.remove_suffix(1);
  }
  return name;
}

}  // namespace

std::string file_of(const Profile& profile, const Function& function) {
  const bool native = function.kind == Kind::kNative || function.kind == Kind::kKernel;
  return native && function.object < profile.objects.size() ? profile.objects[function.object].path
                                                            : function.file;
}

std::string name_of(const Profile& profile, const Function& function) {
  if (!function.name.empty()) {
    return function.name;
  }
  const auto file = file_of(profile, function);
  const auto name = without_brackets(base_name(file));
  return fmt::format("[{}]", name.empty() ? "unknown" : name);
}

bool is_garbage_collector(const Function& function) {
  return function.kind == Kind::kPython && function.name == kGarbageCollector &&
         function.file.empty();
}

bool is_start_of_greenlet(const Function& function) {
  return function.kind == Kind::kMark && function.name == "[greenlet]";
}

std::uint64_t weight_of(const Profile& profile, const Sample& sample) {
  const auto unit = profile.events[sample.event].unit;
  return weighs_time(unit) || unit == Unit::kBytes ? sample.period : 1;
}

}  // namespace pyinject::report
