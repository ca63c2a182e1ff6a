// What programs in Python let C do.
#include <pthread.h>

typedef int (*callback)(void);

static void* call_again_and_again(void* argument) {
  const callback call = *(const callback*)argument;
  while (call() != 0) {
  }
  return 0;
}

// Calls back from a thread that CPython does not know, until the callback returns 0.
int call_from_a_thread(callback call) {
  pthread_t thread;
  if (pthread_create(&thread, 0, call_again_and_again, &call) != 0) {
    return -1;
  }
  return pthread_join(thread, 0);
}

// Keeps ADDRESS in a register forever.
void keep_in_a_register(void* address) {
  for (;;) {
    __asm__ volatile("" : : "r"(address));
  }
}
