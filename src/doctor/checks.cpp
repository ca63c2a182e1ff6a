#include "doctor/checks.hpp"

#include <utility>

namespace pyinject::doctor {

Check ok(std::string_view name, std::string found) {
  return {.name = std::string{name}, .state = State::kOk, .found = std::move(found)};
}

std::vector<std::string_view> every_engine() { return {kTrampoline, kBpf}; }

std::string as_root(const OwnFacts& own, const std::string& command) {
  return own.root ? command : "sudo " + command;
}

std::string set_sysctl(const OwnFacts& own, const std::string& settings) {
  return as_root(own, "sysctl " + settings);
}

bool has(const OwnFacts& own, procfs::Capability capability) {
  return procfs::holds(own.capabilities, capability);
}

std::string install(const Facts& facts, const Packages& packages) {
  const auto is = [&](std::string_view id) {
    return facts.perf.distribution.find(id) != std::string::npos;
  };
  if (is("ubuntu")) {
    return packages.ubuntu.empty() ? "" : as_root(facts.own, "apt-get install " + packages.ubuntu);
  }
  if (is("debian")) {
    return packages.debian.empty() ? "" : as_root(facts.own, "apt-get install " + packages.debian);
  }
  if (is("fedora") || is("rhel")) {
    return packages.fedora.empty() ? "" : as_root(facts.own, "dnf install " + packages.fedora);
  }
  return {};
}

}  // namespace pyinject::doctor
