#include "support/stand_in_perf.hpp"

#include "support/find_perf.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace pyinject::test {

std::string stand_in_perf(const TempDir& directory, const std::string& script) {
  const auto path = directory.file(
      "perf", fmt::format("#!/bin/sh\nPERF={}\n[ \"$1\" = record ] || exec $PERF \"$@\"\n{}",
                          find_perf("perf").value(), script));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

// perf is called as "record -D -1 --control fd:COMMANDS,ANSWERS ...". FILTER must die with perf,
// since it holds both ends of the pipe.
std::string handed_on_perf(const TempDir& directory, const std::string& filter) {
  return stand_in_perf(directory, fmt::format("pipes=${{5#fd:}}\n"
                                              "mkfifo {0}/heard\n"
                                              "setpriv --pdeathsig KILL {1} "
                                              "</proc/self/fd/${{pipes%,*}} >{0}/heard &\n"
                                              "exec 8<{0}/heard\n"
                                              "exec $PERF \"$@\" --control fd:8,${{pipes#*,}}\n",
                                              directory.path().string(), filter));
}

std::string deaf_perf(const TempDir& directory) {
  return handed_on_perf(directory, "sed -u -e '/^disable$/d' -e '/^stop$/d'");
}

}  // namespace pyinject::test
