/* Maps the segments of an ELF file as a loader would, but relocates and runs nothing, prints
 * `ready` and waits for the end of its input: a file that no loader would start can be examined in
 * a process. With a second argument, it stops after the first segment with code. */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kMostSegments = 32 };

static uint64_t down(uint64_t value) { return value / kPage * kPage; }
static uint64_t up(uint64_t value) { return down(value + kPage - 1); }

static int protection(uint32_t flags) {
  return ((flags & PF_R) != 0 ? PROT_READ : 0) | ((flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((flags & PF_X) != 0 ? PROT_EXEC : 0);
}

int main(int argc, char** argv) {
  Elf64_Ehdr header;
  Elf64_Phdr segments[kMostSegments];
  if (argc < 2) {
    return 2;
  }
  const int file = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (file < 0 || pread(file, &header, sizeof header, 0) != sizeof header ||
      header.e_phnum > kMostSegments) {
    return 1;
  }
  const ssize_t size = (ssize_t)(header.e_phnum * sizeof *segments);
  if (pread(file, segments, (size_t)size, (off_t)header.e_phoff) != size) {
    return 1;
  }
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD) {
      begin = segments[i].p_vaddr < begin ? down(segments[i].p_vaddr) : begin;
      end = segments[i].p_vaddr + segments[i].p_memsz > end
                ? up(segments[i].p_vaddr + segments[i].p_memsz)
                : end;
    }
  }
  const int fixed = header.e_type == ET_EXEC ? MAP_FIXED_NOREPLACE : 0;
  const int partly = argc > 2;
  char* const base = mmap(fixed != 0 ? (void*)(uintptr_t)begin : NULL, end - begin,
                          PROT_READ | (partly ? 0 : PROT_WRITE),
                          MAP_PRIVATE | (partly ? 0 : MAP_ANONYMOUS) | fixed, partly ? file : -1, 0);
  if (base == MAP_FAILED) {
    perror("mmap");
    return 1;
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    const Elf64_Phdr* one = &segments[i];
    if (one->p_type != PT_LOAD || one->p_filesz == 0) {
      continue;
    }
    const uint64_t first = down(one->p_vaddr);
    if (mmap(base + (first - begin), up(one->p_vaddr + one->p_filesz) - first,
             protection(one->p_flags), MAP_PRIVATE | MAP_FIXED, file,
             (off_t)down(one->p_offset)) == MAP_FAILED) {
      perror("mmap");
      return 1;
    }
    if (partly && (one->p_flags & PF_X) != 0) {
      break;
    }
  }
  close(file);
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
