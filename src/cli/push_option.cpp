#include "cli/push_option.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/profile_source.hpp"
#include "cli/reporter.hpp"
#include "push/client.hpp"
#include "push/process_labels.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/report/reader.hpp"
#include "targets/target_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::cli {

namespace {

using record::kUsage;

constexpr std::size_t kMostDestinations = 8;

std::vector<std::string> values_of(const ParsedWords& parsed, const char* option) {
  return parsed.has(option) ? parsed.values[option].as<std::vector<std::string>>()
                            : std::vector<std::string>{};
}

push::Labels parse_labels(const std::vector<std::string>& texts) {
  push::Labels labels;
  for (const auto& text : texts) {
    auto label = push::parse_label(text);
    if (!label) {
      throw CommandLineError{
          fmt::format("--label {}: expected NAME=VALUE: a name of letters, digits and _ (not __ "
                      "first), a value of up to {} printable characters",
                      base::printable(text, push::kLongestValue), push::kLongestValue),
          kUsage};
    }
    push::set_label(labels, label->name, std::move(label->value));
  }
  if (labels.size() > push::kMostLabels) {
    throw CommandLineError{fmt::format("--label: at most {} of them", push::kMostLabels), kUsage};
  }
  return labels;
}

std::vector<push::Destination> parse_destinations(const std::vector<std::string>& texts) {
  std::vector<push::Destination> all;
  for (const auto& text : texts) {
    auto parsed = push::parse_destination(text);
    if (const auto* const error = std::get_if<push::DestinationError>(&parsed)) {
      throw CommandLineError{error->why, kUsage};
    }
    auto destination = std::get<push::Destination>(std::move(parsed));
    if (!destination.is_directory() && !push::can_send()) {
      throw CommandLineError{
          fmt::format("--push {}: this build has no libcurl", destination.store->kind), kUsage};
    }
    if (std::ranges::find(all, destination) == all.end()) {
      all.push_back(std::move(destination));
    }
  }
  if (all.size() > kMostDestinations) {
    throw CommandLineError{fmt::format("--push: at most {} of them", kMostDestinations), kUsage};
  }
  return all;
}

std::size_t count_servers(const push::PushOptions& options) {
  return static_cast<std::size_t>(std::ranges::count_if(
      options.destinations, [](const auto& one) { return !one.is_directory(); }));
}

void warn_of_destinations(const push::PushOptions& options, base::Logger& logger) {
  for (const auto& destination : options.destinations) {
    if (!destination.store->caution.empty()) {
      logger.warning("--push {}", destination.store->caution);
    }
    if (!destination.encrypted) {
      logger.warning("--push {}: profiles{} travel unencrypted: https:// encrypts them",
                     destination.name(), options.credentials.empty() ? "" : " and credentials");
    }
  }
}

// Like read_recording(), but an empty recording is no error: the processes were idle.
std::optional<report::Profile> read_for_push(const std::string& file, base::Logger& logger) {
  auto read = report::read_profile(file, {.open_perf_map = targets::open_perf_map});
  if (const auto* const unsupported = std::get_if<perfdata::UnsupportedFile>(&read)) {
    logger.error("--push: {}: {}", base::printable(file), unsupported->why);
    return std::nullopt;
  }
  return std::get<report::Profile>(std::move(read));
}

}  // namespace

void parse_push_options(const ParsedWords& parsed, RecordCommand& command) {
  if (!parsed.has("push")) {
    return;
  }
  const auto& output = command.record.perf_options->output;
  if (command.functions || output.pipe || output.several) {
    throw CommandLineError{command.functions ? "--push is for samples, not for --functions"
                                             : "--push needs perf's output in one file",
                           kUsage};
  }
  push::PushOptions options;
  options.destinations = parse_destinations(values_of(parsed, "push"));
  options.labels = parse_labels(values_of(parsed, "label"));
  options.spool = parsed.value("spool").value_or("");
  command.push_credentials = parsed.value("push-credentials");
  if (command.push_credentials && count_servers(options) != 1) {
    throw CommandLineError{"--push-credentials is for one server: give one --push KIND=URL",
                           kUsage};
  }
  command.push = std::move(options);
}

std::unique_ptr<push::Pusher> start_pushing(const RecordCommand& command, Reporter& reporter) {
  auto options = *command.push;
  auto& logger = reporter.logger();
  if (command.push_credentials) {
    options.credentials = push::read_credentials(*command.push_credentials);
  }
  push::take_token_from_environment(options.credentials);
  const auto servers = count_servers(options);
  if (servers > 1 && !options.credentials.empty()) {
    throw base::Error{
        "PYINJECT_PUSH_TOKEN is for one server, but there are several: give one --push KIND=URL"};
  }
  warn_of_destinations(options, logger);
  if (servers != 0 && options.spool.empty()) {
    options.spool = push::default_spool();
  }
  auto pusher = std::make_unique<push::Pusher>(
      std::move(options),
      [&logger](const std::string& file) { return read_for_push(file, logger); },
      push::labels_of_process, push::live_process, logger);
  if (const auto left = pusher->counts().spooled; left != 0) {
    logger.info("--push: {} of an earlier run in the spool", base::counted(left, "profile"));
  }
  return pusher;
}

void note_pushed(const push::Pusher* pusher, Reporter& reporter) {
  if (pusher != nullptr) {
    const auto counts = pusher->counts();
    reporter.add(record::PushStats{.pushed = counts.pushed,
                                   .retried = counts.retried,
                                   .dropped = counts.dropped,
                                   .merged = counts.merged,
                                   .spooled = counts.spooled});
  }
}

void finish_pushing(push::Pusher* pusher, Reporter& reporter) {
  if (pusher == nullptr) {
    return;
  }
  pusher->finish();
  note_pushed(pusher, reporter);
  const auto counts = pusher->counts();
  auto& logger = reporter.logger();
  logger.info("--push: {} pushed, {}, {} dropped", base::counted(counts.pushed, "profile"),
              base::counted(counts.retried, "retry", "retries"), counts.dropped);
  if (counts.spooled != 0) {
    logger.warning("--push: {} in the spool: the next run with --push sends {}",
                   base::counted(counts.spooled, "profile stays", "profiles stay"),
                   counts.spooled == 1 ? "it" : "them");
  }
}

}  // namespace pyinject::cli
