#include "push/pusher.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "push/quiet_thread.hpp"
#include "push/spool_entry.hpp"
#include "pyinject/base/error.hpp"
#include "report/clock.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>

namespace pyinject::push {

namespace {

using base::Deadline;
using report::Profile;

constexpr std::size_t kMostFiles = 64;  // that wait to be exported

// Of the first sample; if the recording does not say, now.
std::chrono::system_clock::time_point time_of(const Profile& profile) {
  const auto time = report::wall_time(profile.clock, profile.samples.front().time);
  return time ? std::chrono::system_clock::time_point{std::chrono::duration_cast<
                    std::chrono::system_clock::duration>(std::chrono::nanoseconds{*time})}
              : std::chrono::system_clock::now();
}

}  // namespace

Pusher::Pusher(PushOptions options, ProfileReader read, LabelSource labels, LiveProcesses live,
               base::Logger& logger)
    : options_{std::move(options)},
      read_{std::move(read)},
      labels_{std::move(labels)},
      live_{std::move(live)},
      logger_{logger} {
  for (const auto& destination : options_.destinations) {
    if (destination.is_directory()) {
      directories_.emplace_back(destination, ProfileDirectory{destination.place});
      continue;
    }
    if (!spool_) {
      spool_ = std::make_unique<Spool>(options_.spool, options_.spool_bytes, logger_);
    }
    senders_.push_back(std::make_unique<Sender>(destination, options_.credentials, options_.times,
                                                options_.backoff, *spool_, counts_, logger_));
  }
  exporter_ = start_quiet_thread([this] { export_files(); });
}

Pusher::~Pusher() {
  stop_exporting(Deadline::after({}));
  senders_.clear();
}

void Pusher::add(const std::string& file) {
  std::string skipped;
  {
    const std::lock_guard lock{mutex_};
    files_.push_back(file);
    if (files_.size() > kMostFiles) {
      skipped = std::move(files_.front());
      files_.pop_front();
      ++counts_.dropped;
    }
  }
  changed_.notify_all();
  if (!skipped.empty()) {
    logger_.warning("--push: {} is not pushed: recordings finish faster than they can be exported",
                    base::printable(skipped));
  }
}

void Pusher::stop_exporting(Deadline deadline) {
  {
    const std::lock_guard lock{mutex_};
    complete_ = true;
    end_ = deadline;
  }
  changed_.notify_all();
  if (exporter_.joinable()) {
    exporter_.join();
  }
}

void Pusher::finish() {
  stop_exporting(Deadline::after(options_.export_patience));
  const auto deadline = Deadline::after(options_.patience);
  for (const auto& sender : senders_) {
    sender->finish(deadline);
  }
  for (const auto& sender : senders_) {
    sender->join();
  }
}

PushCounts Pusher::counts() const {
  if (spool_) {
    return spool_->totals(counts_);
  }
  return {.pushed = counts_.pushed,
          .retried = counts_.retried,
          .dropped = counts_.dropped,
          .merged = counts_.merged,
          .spooled = 0};
}

std::optional<std::string> Pusher::next_file() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return complete_ || !files_.empty(); });
  if (end_ && end_->expired() && !files_.empty()) {
    counts_.dropped += files_.size();
    logger_.warning(
        "--push: {}: not exported within {:g} s of the end",
        base::counted(files_.size(), "recording is not pushed", "recordings are not pushed"),
        std::chrono::duration<double>{options_.export_patience}.count());
    files_.clear();
  }
  if (files_.empty()) {
    return std::nullopt;
  }
  auto file = std::move(files_.front());
  files_.pop_front();
  return file;
}

void Pusher::export_files() {
  while (const auto file = next_file()) {
    try {
      export_file(*file);
    } catch (const std::exception& error) {
      ++counts_.dropped;
      logger_.error("--push: {}: {}", base::printable(*file), error.what());
    }
  }
}

void Pusher::export_file(const std::string& file) {
  auto profile = read_(file);
  if (!profile) {
    ++counts_.dropped;
    return;
  }
  if (profile->samples.empty()) {
    return;
  }
  const auto labels = [this](const RecordedProcess& process) {
    auto all = labels_(process);
    for (const auto& label : options_.labels) {
      set_label(all, label.name, label.value);
    }
    return all;
  };
  for (const auto& series : series_of(*profile, labels, live_)) {
    if (series.sets > 1) {
      logger_.warning(
          "--push: {} sets of labels are pushed as one profile with service_name=other: a "
          "recording has at most {}, shared among the users of its processes",
          series.sets, kMostSeries);
      counts_.merged += series.sets;
    }
    deliver(series);
  }
}

void Pusher::deliver(const Series& series) {
  for (const auto& [destination, directory] : directories_) {
    auto profile = series.profile;
    for (const auto& label : series.labels) {
      profile.notes.push_back(fmt::format("label {}={}", label.name, label.value));
    }
    try {
      directory.write({.id = new_id(), .labels = series.labels, .profile = &profile},
                      time_of(profile));
      ++counts_.pushed;
    } catch (const base::Error& error) {
      ++counts_.dropped;
      logger_.error("--push {}: {}", destination.name(), error.what());
    }
  }
  if (senders_.empty()) {
    return;
  }
  for (const auto& destination : options_.destinations) {
    if (!destination.is_directory()) {
      spool(destination, series);
    }
  }
  for (const auto& sender : senders_) {
    sender->wake();
  }
}

// Stores have the same profile under different IDs: an ID is that of an entry.
void Pusher::spool(const Destination& destination, const Series& series) {
  const Delivery delivery{.id = new_id(), .labels = series.labels, .profile = &series.profile};
  const SpoolEntry entry{.id = delivery.id,
                         .destination = destination.name(),
                         .request = destination.store->request(delivery)};
  try {
    if (!spool_->add(entry)) {
      logger_.warning("--push {}: a profile of {} bytes does not fit into the spool: dropped",
                      destination.name(), entry.request.body.size());
    }
  } catch (const base::Error& error) {
    ++counts_.dropped;
    logger_.error("--push {}: {}", destination.name(), error.what());
  }
}

}  // namespace pyinject::push
