#include "integration/withdrawn.hpp"

#include "base/text.hpp"
#include "pyinject/base/deadline.hpp"
#include "python/examine/mailbox.hpp"
#include "tracee/tracee_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <poll.h>
#include <sched.h>

namespace pyinject::test {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

void expect_told(const std::string& found, milliseconds least, milliseconds most) {
  constexpr std::string_view kBefore = "within ";
  const auto at = found.find(kBefore);
  const auto end = found.find(" ms: ");
  ASSERT_TRUE(at != std::string::npos && end != std::string::npos) << found;
  const auto begin = at + kBefore.size();
  const auto told = base::parse_number<long>(std::string_view{found}.substr(begin, end - begin));
  ASSERT_TRUE(told) << found;
  EXPECT_GE(*told, least.count());
  EXPECT_LE(*told, most.count());
}

}  // namespace

python::Refusal withdrawn(Attach& attach, base::Pid pid, milliseconds asked) {
  const auto target = attach.detect(pid);
  std::atomic<bool> cancelled = false;
  std::jthread cancels{[&](const std::stop_token& ended) {
    const tracee::TraceeMemory memory{pid};
    const auto requested = [&] {
      const auto mailbox = python::read_mailbox(memory, target.addresses.mailbox);
      return mailbox && mailbox->requested > mailbox->done;
    };
    while (!requested() && !ended.stop_requested()) {
      ::sched_yield();
    }
    ::poll(nullptr, 0, static_cast<int>(asked.count()));
    cancelled = true;
  }};
  auto options = Attach::patient();
  options.cancelled = &cancelled;
  const auto begin = steady_clock::now();
  auto result = attach.injector().activate(target, options);
  const auto took = steady_clock::now() - begin;
  cancels.request_stop();
  const auto* const refusal = std::get_if<python::Refusal>(&result);
  if (refusal == nullptr) {
    throw base::Error{"it was activated"};
  }
  if (refusal->reason == python::Reason::kDeadline) {
    expect_told(refusal->found, asked, duration_cast<milliseconds>(took));
  }
  return *refusal;
}

}  // namespace pyinject::test
