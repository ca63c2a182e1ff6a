#include "cli/help.hpp"

namespace pyinject::cli {

namespace {

constexpr std::string_view kGeneral =
    R"(usage: perf-pyinject VERB [OPTION...]

Whole stacks in stock perf, with the names of Python functions, for CPython
3.12 to 3.15 processes that are running already and were started without any
flag.

  record      record with perf: while the perf trampoline of the targets is on,
              or (--engine bpf) by a program in the kernel, which leaves them
              alone; or launch a program and record it from the beginning
  join        give Python stacks to a perf record that is running already
  functions   what record --functions has recorded: every call of a function
  trace, top, sched record, kmem record
              perf's own, while the trampoline of the targets is on
  weave       complete the stacks of a perf.data that was recorded otherwise
  activate    switch the trampoline on and leave it on
  deactivate  switch it off
  status      every visible Python process, and what could be done with it

  -h, --help     this text, or that of a verb: perf-pyinject record --help
      --version  the version of this tool, and what was built in

examples:
  perf-pyinject status
  perf-pyinject record -p 4711 -- sleep 30 && perf report
  perf-pyinject record -p 4711 --engine bpf -- sleep 30 && perf report
  perf-pyinject record -- python3 app.py && perf report
)";

constexpr std::string_view kRecordHelp =
    R"(usage: perf-pyinject record (-p PID[,PID...] | -a | -u USER | --comm GLOB |
                             -G CGROUP) [OPTION...] [-- COMMAND...]
       perf-pyinject record [OPTION...] -- COMMAND...

Starts perf record, switches the trampoline of the targets on, records until
COMMAND ends (it is the clock, it is not profiled), or without COMMAND until
Ctrl-C, switches the trampoline off, and completes the stacks in perf's file.
Without -p, -a, -u, --comm, -G COMMAND is launched and is the target, with its
children; the variable PYTHONPERFSUPPORT=1 switches their trampolines on.
The kind of call graph is chosen by the target unless -g or --call-graph says
it. Every option that is not listed here goes to perf record unchanged.

  -p, --pid LIST   the targets
      --children   their descendants, too, also later ones
  -a, --all-cpus   the whole system, and every Python process on it, also those
                   that start meanwhile, and in containers
  -u, --uid USER   of the whole system the processes of USER (name or number)
      --comm GLOB  those whose name matches, as in --comm 'gunicorn*'
  -G, --cgroup CG  those in this control group or below it
      --perf PATH  the perf to use (else the variable PERF, else that on PATH)
      --strict     one target that cannot be activated ends it (default with -p)
      --lenient    such targets are named and left out (default with -a)
      --engine E   trampoline (default); bpf: a program in the kernel reads the
                   stacks, nothing is done to the targets (CAP_BPF, CAP_PERFMON,
                   Linux 5.17 with BTF); auto: bpf if possible
      --gil, --tasks  with bpf: who held the GIL, which asyncio task ran
      --off-cpu    also where threads wait, and for how long
      --no-backfill  leave out functions that were entered before
      --lines      lines in the names (trampoline: of functions entered before);
                   without it: perf report --children -g none -s sym,srcline
      --keep-raw   keep perf's own file, too, as NAME.raw
      --repeat TIME/PERIOD  TIME long every PERIOD, as in 30s/5m, into
                   perf.data.YYYYMMDDHHMMSShh until all targets have exited or
                   SIGTERM; SIGHUP begins the next one
      --keep N     the latest N files of --repeat are kept (12)
      --deactivate-timeout SEC  for switching off all targets (5)
      --functions  not samples, but every call and return (3.15, with -p): 1 to
                   3 us each, calls 20 to 60 times slower; see functions --help
      --stats FILE, --log-format json  figures, messages for programs
  -q, --quiet, -v, --verbose  warnings and errors only; also what perf says

exit status: that of COMMAND; 125 refused or failed; 126, 127 COMMAND cannot
run; 129 usage; 128 + N ended by signal N; 0 when the targets exited first

examples:
  perf-pyinject record -p 4711,4712 -F 999 -o web.data -- sleep 30
  perf-pyinject record -F 999 -- python3 -m pytest
  perf-pyinject record -p 4711 --engine bpf --off-cpu -- sleep 30
  perf-pyinject record -p 4711 --repeat 30s/5m --keep 24
)";

constexpr std::string_view kJoinHelp =
    R"(usage: perf-pyinject join PERF_PID [OPTION...]

Gives Python stacks to a perf record that somebody else has started, with -g or
another --call-graph: a program in the kernel reads them at its samples (as
record --engine bpf; CAP_BPF, CAP_PERFMON, Linux 5.17 with BTF), and when that
perf has ended they are put into its file. Whom perf records is what it was
started with. Samples of before have no Python functions, nor may those of
threads and processes that began between perf's start and this. Ctrl-C leaves
perf: it goes on without Python stacks, those collected are put in at its end; a
second one gives them up. Nothing else is done to perf or to the targets.

      --perf PATH  the perf whose build-id cache is used
      --gil, --tasks  who held the GIL, which asyncio task ran
      --lines      lines in the names; without it:
                   perf report --children -g none -s sym,srcline
      --keep-raw   keep perf's own file, too, as NAME.raw
      --stats FILE, --log-format json  figures, messages for programs
  -q, --quiet      warnings and errors only
  -v, --verbose    more

exit status: 0 when perf has ended and its file has the stacks; 125 refused or
failed; 128 + N after signal N; 129 usage

example:
  perf record -F 99 -g -p 4711 &
  perf-pyinject join $!
)";

constexpr std::string_view kFunctionsHelp =
    R"(usage: perf-pyinject functions [-i FILE] [OPTION...]

Prints what perf-pyinject record --functions has recorded: how often each
function was called, how many of these calls returned, and the time of those,
with and without what they called, the largest own time first. Times hold the
cost of recording, 1 to 3 us for each call and each return in them. A generator
or coroutine is entered when it is made, and again each time it goes on; each
yield is a return.

  -i, --input FILE  what was recorded (perf.data)
      --timeline    every call and return instead, in their order
      --json        for programs: docs/functions.md has the fields
  -q, --quiet       warnings and errors only
  -v, --verbose     more

examples:
  perf-pyinject record --functions -p 4711 -- sleep 1
  perf-pyinject functions
  perf-pyinject functions --timeline -i calls.data | head -50
)";

constexpr std::string_view kWrapped =
    R"(usage: perf-pyinject trace|top -p PID[,PID...] [OPTION...]
       perf-pyinject sched|kmem record -p PID[,PID...] [OPTION...] [-- CMD...]

Switches the trampoline of the targets on, runs that verb of perf's in the
foreground, and switches the trampoline off when it has ended. Every option
that is not listed here is perf's. What is shown live is as perf finds it: with
frame pointers (perf-pyinject status, column FP) whole stacks by --call-graph
fp, else the innermost function only. Stacks that are recorded (-g, --call-graph
dwarf) are completed as those of record.

  -p, --pid LIST   the targets
      --perf PATH  the perf to use (else the variable PERF, else that on PATH)
      --strict     one target that cannot be activated ends it (default)
      --lenient    such targets are named and left out

exit status: that of perf; 125 refused or failed; 129 usage

examples:
  perf-pyinject trace --call-graph fp -e 'write*' -p 4711
  perf-pyinject top -g -p 4711
  perf-pyinject sched record -g -p 4711 -- sleep 5 && perf sched timehist
)";

constexpr std::string_view kWeaveHelp =
    R"(usage: perf-pyinject weave FILE [-o OUTPUT] [OPTION...]

Completes the stacks of a perf.data file: those that perf has copied
(--call-graph dwarf) are unwound, through CPython's trampolines as well, and
written as plain callchains; names of perf maps go into images with build-ids,
in perf's build-id cache. What FILE was recorded from should be as it was:
its programs, libraries and /tmp/perf-PID.map. record does this by itself.

  -o, --output PATH  the result; default: FILE is replaced
      --perf PATH    the perf whose build-id cache is used
  -q, --quiet        warnings and errors only
  -v, --verbose      more

example:
  perf record --call-graph dwarf,32768 -p 4711 -- sleep 10
  perf-pyinject weave perf.data -o whole.data && perf report -i whole.data
)";

constexpr std::string_view kActivateHelp =
    R"(usage: perf-pyinject activate -p PID[,PID...] [OPTION...]

Switches the perf trampoline of the targets on and leaves it on, for a perf that
is started by other means. It costs call-bound programs up to half their speed
until it is switched off.

  -p, --pid LIST  the targets
      --strict    one that fails: those before it are switched off (default)
      --lenient   one that fails is named and left out
      --stats FILE, --log-format json  figures, messages for programs
  -q, --quiet     warnings and errors only
  -v, --verbose   more

example, for an interpreter with frame pointers:
  perf-pyinject activate -p 4711 && perf top -g -p 4711
)";

constexpr std::string_view kDeactivateHelp =
    R"(usage: perf-pyinject deactivate -p PID[,PID...] [OPTION...]

Switches the perf trampoline of the targets off, where perf-pyinject switched it
on. One that is on by itself (python -X perf, or by the program) is left on.

  -p, --pid LIST  the targets
      --deactivate-timeout SEC  for all targets together (5)
      --stats FILE, --log-format json  figures, messages for programs
  -q, --quiet     warnings and errors only
  -v, --verbose   more

example:
  perf-pyinject deactivate -p 4711
)";

constexpr std::string_view kStatusHelp =
    R"(usage: perf-pyinject status [-p PID[,PID...]] [OPTION...]

Lists the visible Python processes, or those named: version, whether their
interpreter keeps frame pointers (FP), state of the trampoline, and the name of
the reason if it cannot be switched on. Nothing is stopped or changed.

  -p, --pid LIST  these processes only
      --json      for programs; the fields are described in docs/status-json.md
  -q, --quiet     warnings and errors only
  -v, --verbose   more

examples:
  perf-pyinject status
  perf-pyinject status --json -p 4711 | jq '.processes[0].ready'
)";

}  // namespace

std::string_view help_text(Verb verb) {
  switch (verb) {
    case Verb::kNone:
      return kGeneral;
    case Verb::kRecord:
      return kRecordHelp;
    case Verb::kJoin:
      return kJoinHelp;
    case Verb::kFunctions:
      return kFunctionsHelp;
    case Verb::kWrapped:
      return kWrapped;
    case Verb::kWeave:
      return kWeaveHelp;
    case Verb::kActivate:
      return kActivateHelp;
    case Verb::kDeactivate:
      return kDeactivateHelp;
    case Verb::kStatus:
      return kStatusHelp;
  }
  return kGeneral;
}

}  // namespace pyinject::cli
