// A caller that cannot be stopped: after a byte on stdin, it is in state D (a vfork parent) until
// FIFO is opened for reading.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

int vfork_when_told(const char* fifo) {
  char byte;
  if (read(STDIN_FILENO, &byte, 1) != 1) {
    return -1;
  }
  const pid_t child = vfork();
  if (child == 0) {
    (void)open(fifo, O_WRONLY);
    _exit(0);
  }
  return waitpid(child, NULL, 0) == child ? 0 : -1;
}
