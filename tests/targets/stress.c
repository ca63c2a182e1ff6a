// The library of the torture programs (tests/targets/stress): live registers in C, a GIL that is held for long, pending
// calls, numbered signals.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The code below uses the offsets.
struct registers {
  uint8_t vector[32][64];  // 0
  uint64_t mask[8];        // 2048, 16 bits each
  uint64_t general[8];     // 2112: r8, r9, r10, r12 to r15
  double x87[8];           // 2176
  uint32_t mxcsr;          // 2240
  uint16_t control;        // 2244, of x87
  uint8_t rest[58];        // 2304 bytes in all
};
struct both {
  struct registers in;
  struct registers out;
};
_Static_assert(sizeof(struct registers) == 2304, "the code below knows it");

// %rbx points to the struct both; BODY may use rax, rcx, rdx, rsi, rdi and r11.
#define NUMBERS16 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define NUMBERS32 NUMBERS16 ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define EACH(NUMBERS, LINE) ".irp n," NUMBERS "\n" LINE "\n.endr\n"
#define LOAD_COMMON                                                                       \
  EACH("7,6,5,4,3,2,1,0", "fldl 2176+\\n*8(%%rbx)")                                       \
  "ldmxcsr 2240(%%rbx)\n"                                                                 \
  "fldcw 2244(%%rbx)\n"                                                                   \
  "mov 2112(%%rbx), %%r8\n mov 2120(%%rbx), %%r9\n mov 2128(%%rbx), %%r10\n"              \
  "mov 2136(%%rbx), %%r12\n mov 2144(%%rbx), %%r13\n mov 2152(%%rbx), %%r14\n"            \
  "mov 2160(%%rbx), %%r15\n"
#define STORE_COMMON                                                                      \
  "mov %%r8, 4416(%%rbx)\n mov %%r9, 4424(%%rbx)\n mov %%r10, 4432(%%rbx)\n"              \
  "mov %%r12, 4440(%%rbx)\n mov %%r13, 4448(%%rbx)\n mov %%r14, 4456(%%rbx)\n"            \
  "mov %%r15, 4464(%%rbx)\n"                                                              \
  EACH("0,1,2,3,4,5,6,7", "fstpl 4480+\\n*8(%%rbx)")                                      \
  "stmxcsr 4544(%%rbx)\n"                                                                 \
  "fnstcw 4548(%%rbx)\n"
#define CLOBBERED                                                                         \
  "cc", "memory", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "st", "st(1)",    \
      "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1", "xmm2",       \
      "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",  \
      "xmm13", "xmm14", "xmm15"
#define CLOBBERED_512                                                                     \
  CLOBBERED, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",      \
      "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", \
      "k3", "k4", "k5", "k6", "k7"

#define SPIN "1: dec %%rcx\n jnz 1b\n"
#define CALL "syscall\n"

// Each returns the system call's result; without a system call, an arbitrary value.
#define VARIANT(NAME, TARGET, BODY, LOAD, STORE, ...)                                     \
  __attribute__((target(TARGET))) static long NAME(struct both* registers, long count,    \
                                                   long number, long a, void* b) {        \
    long third = 1;                                                                       \
    __asm__ volatile(LOAD LOAD_COMMON BODY STORE STORE_COMMON                             \
                     : "+a"(number), "+c"(count), "+D"(a), "+S"(b), "+d"(third)           \
                     : "b"(registers)                                                     \
                     : __VA_ARGS__);                                                      \
    return number;                                                                        \
  }
#define LOAD_512                                                  \
  EACH(NUMBERS32, "vmovdqu64 \\n*64(%%rbx), %%zmm\\n")            \
  EACH("1,2,3,4,5,6,7", "kmovw 2048+\\n*8(%%rbx), %%k\\n")
#define STORE_512                                                 \
  EACH(NUMBERS32, "vmovdqu64 %%zmm\\n, 2304+\\n*64(%%rbx)")       \
  EACH("1,2,3,4,5,6,7", "kmovw %%k\\n, 4352+\\n*8(%%rbx)") "vzeroupper\n"
#define LOAD_256 EACH(NUMBERS16, "vmovdqu \\n*64(%%rbx), %%ymm\\n")
#define STORE_256 EACH(NUMBERS16, "vmovdqu %%ymm\\n, 2304+\\n*64(%%rbx)") "vzeroupper\n"
#define LOAD_128 EACH(NUMBERS16, "movdqu \\n*64(%%rbx), %%xmm\\n")
#define STORE_128 EACH(NUMBERS16, "movdqu %%xmm\\n, 2304+\\n*64(%%rbx)")

VARIANT(spin_512, "avx512f", SPIN, LOAD_512, STORE_512, CLOBBERED_512)
VARIANT(call_512, "avx512f", CALL, LOAD_512, STORE_512, CLOBBERED_512)
VARIANT(spin_256, "avx", SPIN, LOAD_256, STORE_256, CLOBBERED)
VARIANT(call_256, "avx", CALL, LOAD_256, STORE_256, CLOBBERED)
VARIANT(spin_128, "sse2", SPIN, LOAD_128, STORE_128, CLOBBERED)
VARIANT(call_128, "sse2", CALL, LOAD_128, STORE_128, CLOBBERED)

enum width { k128, k256, k512 };

static enum width width_here(void) {
  if (__builtin_cpu_supports("avx512f")) {
    return k512;
  }
  return __builtin_cpu_supports("avx") ? k256 : k128;
}

// The values differ each time, so that a value left by another thread is detected.
static void fill(struct both* both, enum width width) {
  static atomic_uint turn;
  const uint32_t seed = atomic_fetch_add(&turn, 1);
  memset(both, 0, sizeof *both);
  const int vectors = width == k512 ? 32 : 16;
  const int bytes = 16 << width;
  for (int i = 0; i < vectors; ++i) {
    for (int j = 0; j < bytes; ++j) {
      both->in.vector[i][j] = (uint8_t)(seed * 131 + (uint32_t)i * 17 + (uint32_t)j + 1);
    }
  }
  for (int i = 1; width == k512 && i < 8; ++i) {
    both->in.mask[i] = (uint16_t)(seed * 7919 + (uint32_t)i * 257);
  }
  for (int i = 0; i < 7; ++i) {
    both->in.general[i] = (uint64_t)seed << 32 | (uint64_t)(i + 1) * 0x01010101;
  }
  for (int i = 0; i < 8; ++i) {
    both->in.x87[i] = seed + i * 0.25;
  }
  both->in.mxcsr = 0xdf80;   // round upwards, flush tiny results to zero
  both->in.control = 0x0f7f;  // round towards zero
}

// Returns a bit for each part that differs.
static int differences(const struct both* both) {
  const struct registers* in = &both->in;
  const struct registers* out = &both->out;
  return (memcmp(in->vector, out->vector, sizeof in->vector) != 0) |
         (memcmp(in->mask, out->mask, sizeof in->mask) != 0) << 1 |
         (memcmp(in->general, out->general, sizeof in->general) != 0) << 2 |
         (memcmp(in->x87, out->x87, sizeof in->x87) != 0) << 3 | (in->mxcsr != out->mxcsr) << 4 |
         (in->control != out->control) << 5;
}

static void restore_modes(void) {
  const uint32_t mxcsr = 0x1f80;
  const uint16_t control = 0x037f;
  __asm__ volatile("ldmxcsr %0\n fldcw %1" : : "m"(mxcsr), "m"(control));
}

// Keeps values in all registers for SPINS rounds of a loop; 0: none has changed.
int stress_registers(long spins) {
  struct both both;
  const enum width width = width_here();
  fill(&both, width);
  (width == k512 ? spin_512 : width == k256 ? spin_256 : spin_128)(&both, spins, 0, 0, 0);
  restore_modes();
  return differences(&both);
}

// The same while waiting for one byte from FD.
int stress_registers_in_read(int fd) {
  struct both both;
  char byte = 0;
  const enum width width = width_here();
  fill(&both, width);
  const long got = (width == k512   ? call_512
                    : width == k256 ? call_256
                                    : call_128)(&both, 1, SYS_read, fd, &byte);
  restore_modes();
  return differences(&both) | (got != 1) << 6;
}

void stress_spin(long nanoseconds) {
  struct timespec begin;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < nanoseconds);
}

static atomic_long ran;

static int count(void* nothing) {
  (void)nothing;
  atomic_fetch_add(&ran, 1);
  return 0;
}

long stress_pending_ran(void) { return atomic_load(&ran); }

// Calls Py_AddPendingCall TIMES times; returns how often it succeeded.
long stress_add_pending(int (*add)(int (*)(void*), void*), long times) {
  long taken = 0;
  for (long i = 0; i < times; ++i) {
    taken += add(count, 0) == 0;
  }
  return taken;
}

static atomic_long numbers_received;
static atomic_long numbers_sum;
static volatile long* numbers_sent;  // shared with the sender
static pid_t sender;

static void receive_number(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  atomic_fetch_add(&numbers_received, 1);
  atomic_fetch_add(&numbers_sum, info->si_value.sival_int);
}

static void sleep_for(long nanoseconds) {
  const struct timespec span = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  nanosleep(&span, 0);
}

int stress_receive_numbers(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = receive_number;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  return sigaction(SIGRTMIN + 3, &action, 0);
}

// Starts a process that queues a numbered signal for this one every 150 us until *STOP.
int stress_send_numbers(volatile uint64_t* stop) {
  const pid_t receiver = getpid();
  void* const shared = mmap(0, sizeof *numbers_sent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return -1;
  }
  numbers_sent = shared;
  sender = fork();
  if (sender != 0) {
    return sender > 0 ? 0 : -1;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (*stop == 0 && getppid() == receiver) {
    const union sigval value = {.sival_int = (int)*numbers_sent + 1};
    if (sigqueue(receiver, SIGRTMIN + 3, value) == 0) {
      ++*numbers_sent;
    }
    sleep_for(150000);
  }
  _exit(0);
}

// After *STOP: waits for the sender's exit and returns the number of lost signals; -1: their numbers are wrong.
long stress_missing_numbers(void) {
  while (waitpid(sender, 0, 0) < 0 && errno == EINTR) {
  }
  const long sent = *numbers_sent;
  for (int i = 0; i < 10000 && atomic_load(&numbers_received) < sent; ++i) {
    sleep_for(1000000);
  }
  const long missing = sent - atomic_load(&numbers_received);
  return missing != 0 ? missing : sent * (sent + 1) / 2 == atomic_load(&numbers_sum) ? 0 : -1;
}

// Puts the calling thread into state D for that long.
int stress_vfork(long nanoseconds) {
  const pid_t child = vfork();
  if (child == 0) {
    sleep_for(nanoseconds);
    _exit(0);
  }
  return waitpid(child, 0, 0) == child ? 0 : -1;
}
