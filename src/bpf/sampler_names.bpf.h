/* Identifies and names code objects. */
#ifndef PYINJECT_BPF_SAMPLER_NAMES_BPF_H
#define PYINJECT_BPF_SAMPLER_NAMES_BPF_H

#include "sampler_work.bpf.h"

struct text {
  __u32 bytes;
  __u8 width;
  __u8 cut;
};

/* Copies the characters of the str at ADDRESS to NAME's bytes from AT on. */
static __always_inline struct text put_text(struct sampled_name *name, __u32 at, __u32 most,
                                            const struct sampled_process *process, __u64 address) {
  struct text text = {0, 0, 0};
  __u64 length = read_word(address + process->text_length);
  __u32 state = (__u32)read_word(address + process->text_state) >> (process->text_shift & 31);
  __u32 width = (state >> python.text_kind_shift) & python.text_kind_mask;
  bool ascii = (state & python.text_ascii) != 0;
  if (!(state & python.text_compact) || (width != 1 && width != 2 && width != 4)) { /* not compact */
    return text;
  }
  __u64 size = length > most ? most + 4 : length * width;
  if (size > most) {
    size = most & ~3U;
    text.cut = 1;
  }
  KEEP(size);
  if (size > most) {
    return text;
  }
  __u64 from = address + process->ascii_data + (ascii ? 0 : python.text_utf8_fields);
  if (bpf_probe_read_user(name->bytes + at, size, (void *)from) == 0) {
    text.bytes = (__u32)size;
    text.width = (__u8)width;
  }
  return text;
}

static __always_inline long put_record(struct sampled_name *name, __u32 bytes) {
  __u64 size = __builtin_offsetof(struct sampled_name, bytes) + bytes;
  KEEP(size);
  if (size > sizeof *name) {
    return -1;
  }
  return bpf_ringbuf_output(&records, name, size, wake());
}

static __always_inline struct sampled_name *new_name(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&names, &zero);
}

/* Takes one new name from the process's stock. False: none is left. */
CHECKED_ONCE bool take_from_stock(struct work *work) {
  if (!work) {
    return false;
  }
  __u32 pid = work->stack.head.pid;
  struct sampled_stock *stock = bpf_map_lookup_elem(&stocks, &pid);
  if (!stock) {
    struct sampled_stock full = {.left = SAMPLER_NAMES_IN_STOCK};
    bpf_map_update_elem(&stocks, &pid, &full, BPF_ANY);
    stock = bpf_map_lookup_elem(&stocks, &pid);
  }
  if (!stock) {
    return false;
  }
  if (!work->restocked) {
    work->restocked = 1;
    __u32 left = stock->left + SAMPLER_NAMES_ADDED;
    stock->left = left > SAMPLER_NAMES_IN_STOCK ? SAMPLER_NAMES_IN_STOCK : left;
  }
  if (stock->closed || stock->left == 0) {
    ++stock->refused;
    return false;
  }
  --stock->left;
  ++work->named;
  return true;
}

/* Reports only the address of a code object, so that the loader reads its name: copying all names
 * of a deep stack takes long, and nothing interrupts the program. */
static __always_inline bool name_later(struct sampled_name *name) {
  name->head.name_bytes = name->head.file_bytes = name->head.line_bytes = 0;
  name->head.name_width = name->head.file_width = name->head.name_cut = 0;
  name->head.missing = SAMPLER_MISSING_NAME | SAMPLER_MISSING_FILE | SAMPLER_MISSING_LINES;
  return put_record(name, 0) == 0;
}

/* False: no room for the record. The loader reads what is not in memory (cold_names.hpp). */
CHECKED_ONCE bool name_code(struct work *work, const struct object_key *key, __u64 fingerprint,
                            __u32 number) {
  struct sampled_name *name = new_name();
  if (!work || !name || !key) {
    return false;
  }
  const struct sampled_process *at = &work->at;
  __u8 missing = 0;
  name->head.kind = SAMPLER_CODE;
  name->head.pid = work->stack.head.pid;
  name->head.number = number;
  name->head.byte_code = at->byte_code;
  name->head.address = key->address;
  name->head.fingerprint = fingerprint;
  __u64 first_line = word_of(work->code, at->first_line & ~7U, 0xf8);
  name->head.first_line = (__s32)(at->first_line & 4 ? first_line >> 32 : first_line);
  if (work->named > SAMPLER_NAMES_AT_ONCE) {
    return name_later(name);
  }
  struct text text =
      put_text(name, 0, SAMPLER_MOST_QUALNAME, at, word_of(work->code, at->qualified_name, 0xf8));
  missing |= text.width == 0 ? SAMPLER_MISSING_NAME : 0;
  name->head.name_bytes = text.bytes;
  name->head.name_width = text.width;
  name->head.name_cut = text.cut;
  __u32 used = text.bytes;
  KEEP(used);
  if (used > SAMPLER_MOST_QUALNAME) {
    return false;
  }
  text = put_text(name, used, SAMPLER_MOST_FILE, at, word_of(work->code, at->file_name, 0xf8));
  missing |= text.width == 0 ? SAMPLER_MISSING_FILE : 0;
  name->head.file_bytes = text.bytes;
  name->head.file_width = text.width;
  used += text.bytes;
  KEEP(used);
  if (used > SAMPLER_MOST_QUALNAME + SAMPLER_MOST_FILE) {
    return false;
  }
  __u64 table = word_of(work->code, at->line_table, 0xf8);
  __u64 size = 0;
  bool lines =
      bpf_probe_read_user(&size, sizeof size, (void *)(table + at->item_count)) == 0 &&
      size <= SAMPLER_MOST_LINES; /* a longer one takes too long here */
  size = lines ? size : 0;
  KEEP(size);
  if (size > SAMPLER_MOST_LINES) {
    return false;
  }
  if (bpf_probe_read_user(name->bytes + used, size, (void *)(table + at->bytes_data)) != 0) {
    size = 0;
    lines = false;
  }
  name->head.line_bytes = (__u32)size;
  name->head.missing = missing | (lines ? 0 : SAMPLER_MISSING_LINES);
  used += (__u32)size;
  return put_record(name, used) == 0;
}

/* The number of the object with KEY and FINGERPRINT; 0: not known yet. */
static __always_inline __u32 known_number(const struct object_key *key, __u64 fingerprint) {
  struct known_object *known = bpf_map_lookup_elem(&objects, key);
  return known && known->fingerprint == fingerprint ? known->number : 0;
}

static __always_inline __u32 new_number(void) {
  return __sync_fetch_and_add(&last_number, 1) + 1;
}

static __always_inline void remember(const struct object_key *key, __u64 fingerprint,
                                     __u32 number) {
  struct known_object object = {.fingerprint = fingerprint, .number = number};
  bpf_map_update_elem(&objects, key, &object, BPF_ANY);
}

/* Identifies the code object at ADDRESS by its constant part, which contains pointers, lines and
 * co_version, a number that CPython assigns once. Returns its number, 0 if its name was lost, or
 * kNoCode. */
enum { kNoCode = -1 };
CHECKED_ONCE __s64 number_of_code(struct work *work, __u64 address) {
  if (!work) {
    return kNoCode;
  }
  const struct sampled_process *at = &work->at;
  if (bpf_probe_read_user(work->code, SAMPLER_CODE_BYTES, (void *)address) != 0 ||
      word_of(work->code, at->type, 0xf8) != at->code_type) {
    return kNoCode;
  }
  __u64 fingerprint = 0;
  for (__u32 i = 0; i < SAMPLER_CODE_WORDS; ++i) {
    fingerprint = sampler_mix(fingerprint, word_of(work->code, (at->first_line & ~7U) + 8 * i, 0xf8));
  }
  struct object_key key = {
      .address = address, .pid = work->stack.head.pid, .interpreter = work->walk.interpreter};
  __u32 number = known_number(&key, fingerprint);
  if (number == 0 && take_from_stock(work)) {
    number = new_number();
    if (name_code(work, &key, fingerprint, number)) {
      remember(&key, fingerprint, number);
    } else {
      number = 0;
      count(SAMPLER_COUNT_LOST_NAMES);
    }
  }
  return number;
}

#endif
