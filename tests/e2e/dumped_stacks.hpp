// The stacks in a dump, and those that the program dumped.py prints.
#pragma once

#include "base/text.hpp"
#include "support/python_process.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::test {

using Stack = std::vector<std::tuple<std::string, std::string, int>>;

// By native thread id.
using Stacks = std::map<long, Stack>;

inline Stacks stacks_of(const nlohmann::json& process) {
  Stacks stacks;
  for (const auto& thread : process.at("threads")) {
    EXPECT_TRUE(thread.at("settled"));
    EXPECT_TRUE(thread.at("complete"));
    for (const auto& frame : thread.at("frames")) {
      stacks[thread.at("tid")].emplace_back(frame.at("function"), frame.at("file"),
                                            frame.at("line"));
    }
  }
  return stacks;
}

inline Stacks read_stacks(PythonProcess& python) {
  Stacks stacks;
  const auto told = nlohmann::json::parse(python.read_line());
  for (const auto& [tid, frames] : told.items()) {
    for (const auto& frame : frames) {
      stacks[std::stol(tid)].emplace_back(base::printable(frame.at(0).get<std::string>()),
                                          base::printable(frame.at(1).get<std::string>()),
                                          frame.at(2));
    }
  }
  return stacks;
}

inline bool all_wait(const nlohmann::json& process) {
  return std::ranges::all_of(process.at("threads"), [](const nlohmann::json& thread) {
    return thread.at("state") == "sleeping" && thread.at("ran_meanwhile") == false &&
           thread.at("gil") == "none";
  });
}

}  // namespace pyinject::test
