// An observer's events, held back until it is known that their engine will be used: another one
// that takes its place begins anew, and says the same once more.
#pragma once

#include "pyinject/record/record_observer.hpp"
#include "pyinject/targets/stats.hpp"

#include <optional>
#include <vector>

namespace pyinject::session {

class DeferredObserver : public RecordObserver {
 public:
  explicit DeferredObserver(RecordObserver& observer) : observer_{observer} {}

  // What was held back is passed on, and all that comes from now on. ACTIVE: the targets that
  // activated() was called for meanwhile; none where the recording has come to nothing. A second
  // call does nothing.
  void release(const ActiveTargets& active);

  void activated(const ActiveTarget& target) override {
    if (released_) {
      observer_.activated(target);
    }
  }
  void on_event(const Event& event) override;
  void counted(const Stats& stats) override;
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
  std::vector<Event> events_;
  const Stats* stats_ = nullptr;  // of a recording that lives until release()
};

}  // namespace pyinject::session
