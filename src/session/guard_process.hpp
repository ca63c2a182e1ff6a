// What runs in the guard process.
#pragma once

#include "pyinject/session/guard.hpp"
#include "session/forked_children.hpp"
#include "session/guard_message.hpp"

#include <vector>

namespace pyinject::session {

class GuardProcess {
 public:
  GuardProcess(python::Detector& detector, python::Injector& injector, base::Logger& logger,
               const GuardOptions& options, base::Pid tool)
      : detector_{detector},
        injector_{injector},
        logger_{logger},
        options_{options},
        tool_{tool},
        children_{detector, logger, options.session.value_or(base::ProcessId{})} {}

  // Returns when it is to end.
  void run(int socket);

 private:
  struct Watched {
    python::Target target;
    base::UniqueFd map;
    bool settled = false;
  };

  void take_over();
  void switch_off_all();
  void try_to_settle(Watched& watched);
  void switch_off_children();
  void collect_map(Watched& watched);

  python::Detector& detector_;
  python::Injector& injector_;
  base::Logger& logger_;
  const GuardOptions& options_;
  base::Pid tool_;
  std::vector<Watched> watched_;
  ForkedChildren children_;
};

}  // namespace pyinject::session
