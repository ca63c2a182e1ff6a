#include "inspect/core_signal.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace pyinject::inspect {
namespace {

elf::CoreSignal made_signal(int number, int code) {
  elf::CoreSignal signal;
  signal.number = number;
  signal.code = code;
  signal.address = 0x10;
  signal.sender = base::Pid{7};
  signal.sender_uid = 1000;
  return signal;
}

TEST(CoreSignal, HasAName) {
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(SIGABRT), "SIGABRT");
  EXPECT_EQ(signal_name(40), "signal 40");
  EXPECT_EQ(signal_name(-1), "signal -1");
}

TEST(CoreSignal, HasACauseInWords) {
  EXPECT_EQ(cause_of(made_signal(SIGSEGV, SEGV_MAPERR)), "no memory is mapped at 0x10");
  EXPECT_EQ(cause_of(made_signal(SIGBUS, BUS_ADRERR)), "no storage is behind the memory at 0x10");
  EXPECT_EQ(cause_of(made_signal(SIGFPE, FPE_INTDIV)), "integer division by zero at 0x10");
  EXPECT_EQ(cause_of(made_signal(SIGABRT, SI_TKILL)), "sent by pid 7 (uid 1000)");
  EXPECT_EQ(cause_of(made_signal(SIGSEGV, SI_USER)), "sent by pid 7 (uid 1000)");
  EXPECT_EQ(cause_of(made_signal(SIGSEGV, SI_KERNEL)),
            "an access that the processor does not permit");
  EXPECT_EQ(cause_of(made_signal(SIGSEGV, 77)), "");
}

}  // namespace
}  // namespace pyinject::inspect
