// Blocks of memory that an allocator tells by the static probes otel_memory:alloc(address, size, weight) and
// otel_memory:free(address), while somebody listens. Layout of the notes:
// https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
#include <stdint.h>
#include <stdlib.h>

#define SEMAPHORE(name) \
  __attribute__((section(".probes"), visibility("hidden"), used)) volatile unsigned short name##_semaphore

SEMAPHORE(alloc);
SEMAPHORE(free);

#define NOTE(name, arguments)                                                                  \
  "990: nop\n"                                                                                 \
  ".pushsection .note.stapsdt, \"\", \"note\"\n"                                               \
  ".balign 4\n"                                                                                \
  ".4byte 992f - 991f, 994f - 993f, 3\n"                                                       \
  "991: .asciz \"stapsdt\"\n"                                                                  \
  "992: .balign 4\n"                                                                           \
  "993: .8byte 990b, sampled_heap_base, " name "_semaphore\n"                                  \
  ".asciz \"otel_memory\"\n"                                                                   \
  ".asciz \"" name "\"\n"                                                                      \
  ".asciz \"" arguments "\"\n"                                                                 \
  "994: .balign 4\n"                                                                           \
  ".popsection\n"

__asm__(
    ".pushsection .stapsdt.base, \"a\", \"progbits\"\n"
    "sampled_heap_base: .space 1\n"
    ".popsection\n");

uintptr_t allocate(uint64_t size, uint64_t weight) {
  const uintptr_t block = (uintptr_t)malloc(size);
  if (alloc_semaphore != 0) {
    __asm__ volatile(NOTE("alloc", "8@%0 8@%1 8@%2")::"r"(block), "r"(size), "r"(weight));
  }
  return block;
}

void release(uintptr_t block) {
  if (free_semaphore != 0) {
    __asm__ volatile(NOTE("free", "8@%0")::"r"(block));
  }
  free((void*)block);
}
