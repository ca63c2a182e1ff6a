// The code of the guard process.
#pragma once

#include "base/file.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/targets/guard.hpp"
#include "targets/forked_children.hpp"
#include "targets/guard_message.hpp"
#include "targets/stalled_stops.hpp"

#include <string>
#include <vector>

namespace pyinject::targets {

class GuardProcess {
 public:
  GuardProcess(python::Detector& detector, python::Injector& injector, base::Logger& logger,
               const GuardOptions& options, base::Pid tool)
      : injector_{injector},
        logger_{logger},
        options_{options},
        tool_{tool},
        children_{detector, logger, options.session.value_or(base::ProcessId{})} {}

  // Returns when the guard should exit.
  void run(int socket);

 private:
  struct Watched {
    python::Target target;
    base::UniqueFd map;
    bool settled = false;  // verified to be off, or provably exited
    std::string problem = {};
  };

  void wait_for_message(int socket);
  void kill_tool();
  void take_over();
  void switch_off_all();
  void try_to_settle(Watched& watched);
  [[nodiscard]] bool no_more_children();

  python::Injector& injector_;
  base::Logger& logger_;
  const GuardOptions& options_;
  base::Pid tool_;
  base::UniqueFd tool_pidfd_;
  bool knows_targets_ = false;
  bool killed_tool_ = false;
  StalledStops stops_;
  base::Deadline next_look_ = base::Deadline::after(StalledStops::kPollInterval);
  std::vector<Watched> watched_;
  ForkedChildren children_;
  base::DescriptorReserve reserve_;
};

}  // namespace pyinject::targets
