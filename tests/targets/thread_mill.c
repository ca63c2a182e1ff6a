/* Starts short-lived threads forever, at least as many at a time as kMills. */
#include <pthread.h>
#include <stdio.h>

enum { kMills = 8 };

static void* end(void* unused) { return unused; }

static void* mill(void* unused) {
  while (1) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, end, NULL) == 0) {
      pthread_join(thread, NULL);
    }
  }
  return unused;
}

int main(void) {
  for (int i = 1; i < kMills; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, mill, NULL) != 0) {
      return 1;
    }
  }
  puts("ready");
  fflush(stdout);
  mill(NULL);
}
