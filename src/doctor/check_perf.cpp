#include "doctor/checks.hpp"

#include <fmt/format.h>

#include <string_view>

namespace pyinject::doctor {

namespace {

// A message of the form "perf: FOUND: install PACKAGE ..." in its parts.
void split_remedy(std::string_view message, Check& check) {
  constexpr std::string_view kSubject = "perf: ";
  constexpr std::string_view kRemedy = ": install ";
  if (message.starts_with(kSubject)) {
    message.remove_prefix(kSubject.size());
  }
  const auto at = message.find(kRemedy);
  check.found = message.substr(0, at);
  if (at != std::string_view::npos) {
    check.remedy = message.substr(at + 2);
  }
}

Check no_perf(const Facts& facts) {
  Check check{
      .name = "perf",
      .state = State::kLimited,
      .cost =
          "record, flamegraph and export record without it; what only perf has is refused: "
          "record --functions, weave, many options of perf record",
      .command = install(
          facts, {.debian = "linux-perf", .ubuntu = "linux-tools-$(uname -r)", .fedora = "perf"})};
  if (facts.perf.named) {  // nothing takes the place of one that the user has chosen
    check.state = State::kFailed;
    check.cost = "record, flamegraph and export cannot record";
    check.blocks = every_engine();
  }
  split_remedy(facts.perf.problem, check);
  return check;
}

Check check_control(const Facts& facts) {
  if (facts.perf.has_control) {
    return ok("perf_control", "perf record has --control");
  }
  return {
      .name = "perf_control",
      .state = State::kFailed,
      .found = fmt::format("{} has no record --control", facts.perf.path),
      .cost = "record cannot switch perf's events on and off",
      .remedy =
          "install a newer perf (6.1, 6.12 and 7.2 were tried), or name one with --perf "
          "PATH or PERF=PATH; it need not belong to the running kernel",
      .command = install(
          facts, {.debian = "linux-perf", .ubuntu = "linux-tools-$(uname -r)", .fedora = "perf"}),
      .blocks = every_engine()};
}

Check check_trial(const Facts& facts) {
  if (facts.perf.record_failure.empty()) {
    return ok("perf_record", "a trial recording works");
  }
  return {.name = "perf_record",
          .state = State::kFailed,
          .found = facts.perf.record_failure,
          .cost = "nothing can be recorded",
          .remedy = "run perf record -- true and read its messages",
          .blocks = every_engine()};
}

Check check_addr2line(const Facts& facts) {
  if (!facts.perf.lacks_addr2line) {
    return ok("perf_addr2line", "addr2line is on PATH, or this perf needs none");
  }
  return {.name = "perf_addr2line",
          .state = State::kLimited,
          .found = fmt::format("perf {} asks addr2line, which is not on PATH", facts.perf.major),
          .cost = "perf report and perf script end without a message, after one sample or none",
          .remedy = "install binutils, or use perf report --no-inline, perf script --no-inline",
          .command =
              install(facts, {.debian = "binutils", .ubuntu = "binutils", .fedora = "binutils"})};
}

std::string mebibytes(std::uint64_t bytes) {
  constexpr unsigned kShift = 20;
  return fmt::format("{} MiB", bytes >> kShift);
}

}  // namespace

void check_perf(const Facts& facts, std::vector<Check>& checks) {
  if (!facts.perf.problem.empty()) {
    checks.push_back(no_perf(facts));
    return;
  }
  checks.push_back(ok("perf", fmt::format("{}, version {}.{}", facts.perf.path, facts.perf.major,
                                          facts.perf.minor)));
  checks.push_back(check_control(facts));
  checks.push_back(check_addr2line(facts));
  checks.push_back(check_trial(facts));
}

Check check_directory(const Facts& facts) {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kLittle = std::uint64_t{256} << 20U;
  const auto& directory = facts.directory;
  Check check{.name = "directory",
              .state = State::kFailed,
              .cost = "perf cannot write perf.data here",
              .remedy = "change to another directory, or name a file in one: record -o FILE",
              .command = "cd \"$(mktemp -d)\"",
              .blocks = every_engine()};
  if (!directory.writable) {
    check.found = fmt::format("{}: {}", directory.path, directory.why_not);
    return check;
  }
  check.found = fmt::format("{}: {} free", directory.path, mebibytes(directory.free_bytes));
  if (directory.free_bytes < kNone) {
    return check;
  }
  if (directory.free_bytes < kLittle) {
    check.state = State::kLimited;
    check.cost = "perf writes 1 to 15 MB for each second and busy CPU: a long recording fails";
    check.blocks.clear();
    return check;
  }
  return ok(check.name, check.found);
}

Check check_build(const Facts& facts) {
  Check check = ok("build", "all parts");
  for (const auto& part : facts.parts) {
    if (part.built_in) {
      continue;
    }
    const bool first = check.state == State::kOk;
    check.state = State::kLimited;
    check.found =
        fmt::format("{}without {} ({})", first ? "" : check.found + ", ", part.name, part.needs);
    check.cost = fmt::format("{}{}", first ? "" : check.cost + "; ", part.cost);
    check.remedy = "install what is missing, and build perf-pyinject again";
    check.command =
        "scripts/setup build && cmake --preset release && cmake --build --preset release";
  }
  return check;
}

}  // namespace pyinject::doctor
