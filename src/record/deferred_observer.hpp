// Holds back an observer's events until it is certain that their engine will be used: an engine
// that replaces it starts again and reports the same events. The engine only reads its targets.
#pragma once

#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/stats.hpp"

#include <optional>
#include <vector>

namespace pyinject::record {

class DeferredObserver : public RecordObserver {
 public:
  explicit DeferredObserver(RecordObserver& observer) : observer_{observer} {}

  // Passes on the events held back, and from now on every event. ACTIVE: the targets that
  // activated() was called for in the meantime; empty if the recording was abandoned. A second call
  // has no effect.
  void release(const targets::ActiveTargets& active);

  void activated(const targets::ActiveTarget& target) override {
    if (released_) {
      observer_.observed(target);
    }
  }
  void on_event(const targets::Event& event) override;
  void counted(const targets::Stats& stats) override;
  void progress(std::chrono::nanoseconds elapsed, std::optional<std::uint64_t> bytes) override {
    observer_.progress(elapsed, bytes);
  }
  void post_processing(double done, std::uint64_t samples) override {
    observer_.post_processing(done, samples);
  }
  void stopped() override { observer_.stopped(); }
  void finished(const RecordSummary& summary) override { observer_.finished(summary); }

 private:
  RecordObserver& observer_;
  bool released_ = false;
  std::vector<targets::Event> events_;
  const targets::Stats* stats_ = nullptr;  // of a recording, which lives until release()
};

}  // namespace pyinject::record
