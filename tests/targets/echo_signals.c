// Prints "ready", then "got" for each SIGUSR1, until its stdin is closed.
#include <errno.h>
#include <signal.h>
#include <unistd.h>

static void say_got(int signal) {
  const int saved = errno;
  (void)signal;
  (void)!write(1, "got\n", 4);
  errno = saved;
}

int main(void) {
  char byte = 0;
  signal(SIGUSR1, say_got);
  (void)!write(1, "ready\n", 6);
  while (read(0, &byte, 1) != 0) {
  }
  return 0;
}
