// A test double: the test starts and ends processes.
//
// For example:
//   fake::ProcessWatch processes;
//   processes.tell({.change = watch::Change::kExited, .pid = base::Pid{12}});
//   for (const auto& event : processes.take()) {
//     (void)manager.forget(event.pid);
//   }
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/watch/process_watch.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::fake {

class ProcessWatch : public watch::ProcessWatch {
 public:
  ProcessWatch();  // throws base::SystemError when there are no file descriptors left

  [[nodiscard]] int fd() const override { return fd_.get(); }
  std::vector<watch::ProcessEvent> take() override;
  bool report_write(base::Pid pid, std::uint64_t address) override;
  [[nodiscard]] std::string_view name() const override { return "fake"; }

  // Queues EVENT for the next take(); fd() becomes readable.
  void tell(watch::ProcessEvent event);

  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes): a script and a book
  bool reports_writes = true;                                // result of report_write()
  std::vector<std::pair<base::Pid, std::uint64_t>> watched;  // arguments of report_write()
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

 private:
  base::UniqueFd fd_;  // an eventfd
  std::vector<watch::ProcessEvent> events_;
};

}  // namespace pyinject::fake
