/* Shared by the BPF program (sampler.bpf.c) and its loader: what is known about a process, and the
 * records that the program sends back. C, since both include it. */
#ifndef PYINJECT_BPF_SAMPLER_RECORDS_H
#define PYINJECT_BPF_SAMPLER_RECORDS_H

#include <linux/types.h>

/* NOLINTBEGIN(readability-identifier-naming): C, with the names that C has */

enum sampler_limits {
  SAMPLER_MOST_WORDS = 3072, /* of a record: Python frames, places and program counters */
  SAMPLER_MOST_FRAMES = 512,  /* of one stack; the outermost are cut off */
  SAMPLER_MOST_PLACED = 1024, /* frames and places; the states of a thread have equal shares */
  SAMPLER_MOST_STATES = 8,    /* of one thread, in which it runs Python */
  SAMPLER_FRAME_BYTES = 88,   /* read of a _PyInterpreterFrame */
  SAMPLER_CODE_BYTES = 160,   /* read of a code object */
  SAMPLER_CODE_WORDS = 10,    /* the constant words of these, from the first line on */
  SAMPLER_MOST_QUALNAME = 1024,
  SAMPLER_MOST_FILE = 4096,
  SAMPLER_MOST_LINES = 24576,
  /* New names per sample that the program copies itself; the loader reads the others. */
  SAMPLER_NAMES_AT_ONCE = 16,
  /* New names that a process may have: so many, and some more for each sample with new ones. */
  SAMPLER_NAMES_IN_STOCK = 4096,
  SAMPLER_NAMES_ADDED = 16,
};

/* The new names that a process may still have. */
struct sampled_stock {
  __u64 refused; /* frames without a name, because there were too many new names */
  __u32 left;
  __u32 closed; /* set by the loader: no more names */
};

/* Addresses and offsets in one process. Offsets are in bytes and below the limits above. */
struct sampled_process {
  __u64 interpreters; /* address of the pointer to the newest interpreter */
  __u64 code_type;    /* address of PyCode_Type */
  __u64 text_type;    /* address of PyUnicode_Type, the type of asyncio's task names */
  __u64 executable_tags;
  /* PyInterpreterState */
  __u32 next_interpreter;
  __u32 interpreter_id;
  __u32 threads_head; /* the word before it counts the thread states that were ever made */
  __u32 gil;
  /* PyThreadState */
  __u32 next_thread;
  __u32 thread_interpreter;
  __u32 thread_id;
  __u32 current_frame;
  __u32 frame_in_cframe;
  __u32 previous_cframe;
  __u32 running_task; /* 0: not known */
  __u32 tasks_later;  /* the loader will look for running_task again */
  /* _PyInterpreterFrame */
  __u32 executable;
  __u32 previous;
  __u32 instruction;
  __u32 owner;
  /* PyCodeObject */
  __u32 file_name;
  __u32 qualified_name;
  __u32 line_table;
  __u32 first_line;
  __u32 byte_code;
  /* Free-threaded builds from 3.14 on (StackLayout); 0: the threads have no copies of byte code. */
  __u32 thread_byte_code;
  __u32 byte_code_index;
  /* all objects, bytes, str, int, asyncio's Task */
  __u32 type;
  __u32 item_count;
  __u32 bytes_data;
  __u32 text_length;
  __u32 text_state;
  __u32 text_shift; /* bits to the right, to the form in struct sampled_python */
  __u32 ascii_data;
  __u32 int_digits;
  __u32 task_name;
  /* struct _gil_runtime_state */
  __u32 gil_last_holder;
  __u32 gil_locked;
  /* PyInterpreterState.gc.collecting; 0: not known */
  __u32 gc_collecting;
  /* The opcodes that call C functions, as bits; none: not known. */
  __u64 calls_c[4];
  /* The number of greenlet's module among those with thread-local variables; 0: not loaded. */
  __u32 greenlet_module;
  __u32 unused;
};

/* Identical in all versions of CPython: FrameOwners and TextForm of
 * python/layout/stack_layout.hpp. */
struct sampled_python {
  __u32 generator_owner;
  __u32 first_entry_owner;
  __u32 text_kind_shift;
  __u32 text_kind_mask;
  __u32 text_compact;
  __u32 text_ascii;
  __u32 text_utf8_fields;
};

enum sampler_record_kind {
  SAMPLER_STACK = 1,
  SAMPLER_CODE = 2,
  SAMPLER_TASK = 3,
  SAMPLER_WAKE = 4,
  SAMPLER_POLL = 5,
};

enum sampler_gil {
  SAMPLER_GIL_UNKNOWN = 0,
  SAMPLER_GIL_NONE = 1,
  SAMPLER_GIL_HELD = 2,
  SAMPLER_GIL_WAITED_FOR = 3,
};

enum sampler_flags {
  SAMPLER_TRUNCATED = 1,  /* more than SAMPLER_MOST_FRAMES */
  SAMPLER_UNREADABLE = 2, /* the outermost frames could not be read */
  SAMPLER_NO_STATE = 4,   /* the thread has no thread state: not a Python thread */
  SAMPLER_BY_CLOCK = 8,   /* TIME was read just before or after the sample's own */
  SAMPLER_TRACED = 16,    /* at a tracepoint or probe: TIME was read before its samples were made */
  SAMPLER_NO_PROCESS = 32, /* the process is not added: only its native stack is read */
  SAMPLER_PLACED = 64,     /* frames of several interpreters: each group is followed by its place */
  SAMPLER_UNGROUPED = 128, /* which frames share an activation of the evaluator is not known */
};

/* The instruction of the innermost frame. */
enum sampler_does {
  SAMPLER_DOES_UNKNOWN = 0,
  SAMPLER_DOES_BYTE_CODE = 1,
  SAMPLER_DOES_CALL = 2, /* it calls a function that may be written in C */
  SAMPLER_COLLECTS = 0x80, /* added to one of these: the thread runs the garbage collector */
};

enum sampler_where {
  SAMPLER_OUTERMOST = 0x80000000U,  /* of the frames that share one C activation of the evaluator */
  SAMPLER_OFFSET = 0x7fffffffU,     /* of the instruction, from the start of the code object */
};

/* As sampled_frame.code: the word is not a frame. With SAMPLER_PLACED, each group of frames, which
 * share one C activation of the evaluator, is followed by the place of that activation's entry
 * frame on the C stack. The groups of one interpreter follow those of another one: only their
 * places tell which group calls which. */
enum sampler_word {
  SAMPLER_PARENT = 0xfffffffcU,    /* the frames of the parent of the greenlet that runs follow */
  SAMPLER_PLACE = 0xfffffffeU,     /* WHERE: in words above the stack pointer */
  SAMPLER_STATE_END = 0xffffffffU, /* the last word of an interpreter. WHERE, unless 0: its groups
                                    * outside of the last place are missing */
};

struct sampled_frame {
  __u32 code; /* number of a struct sampled_name; 0: lost */
  __u32 where;
};

/* One sample of perf, or one hit of a tracepoint or probe. Its Python frames follow, the innermost
 * first, and then the program counters of the native stack: the innermost one, and of its callers
 * the last byte of the call instruction. */
struct sampled_stack_head {
  __u32 kind;
  __u32 pid; /* pid and tid are those in the loader's pid namespace */
  __u32 tid;
  __u32 count;
  __u64 time; /* the sample's own, by the event's clock; see SAMPLER_BY_CLOCK, SAMPLER_TRACED */
  __u64 address; /* of the instruction that ran; 0: in the kernel */
  __u32 task; /* number of a SAMPLER_TASK; 0: none, or not requested */
  __u8 gil;
  __u8 flags;
  __u8 native_end; /* enum native_end */
  __u8 does; /* enum sampler_does */
  __u32 native_count;
  __u32 unused_too;
};

struct sampled_stack {
  struct sampled_stack_head head;
  union {
    struct sampled_frame frames[SAMPLER_MOST_PLACED];
    __u64 words[SAMPLER_MOST_WORDS];
  };
};

/* The parts that were not in memory when the program read them. */
enum sampler_missing {
  SAMPLER_MISSING_NAME = 1,
  SAMPLER_MISSING_FILE = 2,
  SAMPLER_MISSING_LINES = 4,
};

/* A code object or a task's name, sent when first seen: always before the first stack with it. Its
 * bytes follow: the name, the file, the line table. */
struct sampled_name_head {
  __u32 kind;
  __u32 pid;
  __u32 number;
  __s32 first_line; /* for a SAMPLER_TASK without a name: the task's number */
  __u32 byte_code;  /* sampled_process.byte_code */
  __u32 name_bytes;
  __u32 file_bytes;
  __u32 line_bytes;
  __u8 name_width; /* of a character; 0 for a SAMPLER_TASK without a name */
  __u8 file_width;
  __u8 name_cut;
  __u8 missing; /* of enum sampler_missing */
  /* Only for code objects. */
  __u64 address;
  __u64 fingerprint;
};

struct sampled_name {
  struct sampled_name_head head;
  __u8 bytes[SAMPLER_MOST_QUALNAME + SAMPLER_MOST_FILE + SAMPLER_MOST_LINES];
};

/* A thread of a known process may run again (SAMPLER_WAKE), or calls epoll_wait(2) or the like
 * (SAMPLER_POLL). The stack of a waker has the same time, and comes before this. */
struct sampled_moment {
  __u32 kind;
  __u32 pid;
  __u32 tid;
  __u32 waker; /* thread of the same process that has released a futex; 0: others, or not known */
  __u64 time;  /* CLOCK_MONOTONIC */
};

enum sampler_counter {
  SAMPLER_COUNT_SAMPLES,    /* of known processes */
  SAMPLER_COUNT_FOUND,      /* the thread state was the one of the last sample */
  SAMPLER_COUNT_SEARCHED,   /* the thread state was found by a search of the list */
  SAMPLER_COUNT_TRUNCATED,
  SAMPLER_COUNT_UNREADABLE,
  SAMPLER_COUNT_GIL_HELD,
  SAMPLER_COUNT_GIL_WAITED_FOR,
  SAMPLER_COUNT_LOST,       /* the ring was full */
  SAMPLER_COUNT_LOST_NAMES,
  SAMPLER_COUNT_BY_CLOCK,
  SAMPLER_COUNT_TRACED,
  SAMPLER_COUNT_BIRTHS,     /* threads and processes that known ones have started */
  SAMPLER_COUNTERS,
};

/* Adds WORD to FINGERPRINT. Equal sequences of words give equal fingerprints, others rarely do. */
static inline __u64 sampler_mix(__u64 fingerprint, __u64 word) {
  fingerprint = (fingerprint ^ word) * 0x9e3779b97f4a7c15ULL;
  return fingerprint ^ (fingerprint >> 29);
}

/* NOLINTEND(readability-identifier-naming) */

#endif
