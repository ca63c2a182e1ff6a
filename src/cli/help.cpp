#include "cli/help.hpp"

namespace pyinject::cli {

namespace {

constexpr std::string_view kGeneral =
    R"(usage: perf-pyinject VERB [OPTION...]

Profiles running CPython 3.12 to 3.15 processes with stock perf: kernel, C and
Python functions in one stack. The processes need no flag and no restart.

  record      profile processes, or launch a program and profile it
  join        add Python stacks to a perf record that is already running
  functions   show the calls that record --functions has recorded
  trace, top, sched record, kmem record
              run perf's own verb while the targets' trampoline is on
  weave       unwind a perf.data that was recorded without perf-pyinject
  activate    switch CPython's perf trampoline on and leave it on
  deactivate  switch it off
  status      list Python processes, and whether they can be recorded

  -h, --help     this text, or that of a verb: perf-pyinject record --help
      --version  the version, and what is built in

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

Runs perf record and adds the Python functions to its stacks. COMMAND sets the
duration and is not profiled; without it, Ctrl-C ends the recording. Without -p,
-a, -u, --comm and -G, COMMAND itself is launched and profiled. Options that are
not listed here go to perf record unchanged.

which processes:
  -p, --pid LIST   these processes
      --children   and all Python processes below them, now and later
  -a, --all-cpus   all processes, in containers and started later as well
  -u, --uid USER   only processes of USER (name or number)
      --comm GLOB  only processes with this name: --comm 'gunicorn*'
  -G, --cgroup CG  only processes in this cgroup or below it
      --strict     fail if one target cannot be recorded (default with -p)
      --lenient    skip targets that cannot be recorded (default with -a)
how:
      --engine E   trampoline (default); bpf: read the stacks in the kernel and
                   leave the processes unchanged (needs CAP_BPF, CAP_PERFMON,
                   Linux 5.17 with BTF); auto: bpf where possible
      --off-cpu    show where threads wait and for how long, deadlocks included
      --gil, --tasks  mark who holds the GIL, which asyncio task runs (3.14+);
                   implies bpf
      --functions  record every call and return instead of samples (3.15, -p): 1
                   to 3 us each, calls 20 to 60 times slower; functions --help
      --no-backfill  omit functions that were entered before the attach
      --deactivate-timeout SEC  for switching off all targets (5)
      --perf PATH  the perf to run (else $PERF, else the one on PATH)
output:
      --lines      add line numbers to the function names; without it:
                   perf report --children -g none -s sym,srcline
      --repeat TIME/PERIOD  such as 30s/5m: record TIME every PERIOD, into
                   perf.data.YYYYMMDDHHMMSShh; SIGHUP starts the next one
      --keep N     keep the latest N files of --repeat (12)
      --keep-raw   also keep perf's own file, as NAME.raw
      --stats FILE, --log-format json  figures and messages for programs
  -q, --quiet, -v, --verbose  only warnings and errors; also perf's messages

exit status: COMMAND's; 125 refused or failed; 126, 127 COMMAND cannot run; 129
usage; 128 + N ended by signal N; 0 if the targets exited first

example:
  perf-pyinject record -p 4711,4712 -F 999 -o web.data -- sleep 30
)";

constexpr std::string_view kJoinHelp =
    R"(usage: perf-pyinject join PERF_PID [OPTION...]

Adds Python stacks to a perf record that is already running with -g or
--call-graph. A BPF program reads them at perf's samples (needs CAP_BPF,
CAP_PERFMON, Linux 5.17 with BTF). When perf has ended, they are written into
its file. Samples from before the join have no Python functions; neither may
those of threads and processes that started between perf and the join. Ctrl-C
detaches: perf goes on, and the stacks collected so far are added when it ends.
A second Ctrl-C drops them. perf and its targets are not changed.

      --perf PATH  the perf whose build-id cache is used
      --gil, --tasks  mark who holds the GIL, which asyncio task runs (3.14+)
      --lines      add line numbers to the function names; without it:
                   perf report --children -g none -s sym,srcline
      --keep-raw   also keep perf's own file, as NAME.raw
      --stats FILE, --log-format json  figures and messages for programs
  -q, --quiet      only warnings and errors
  -v, --verbose    more

exit status: 0 when perf has ended and its file has the stacks; 125 refused or
failed; 128 + N after signal N; 129 usage

example:
  perf record -F 99 -g -p 4711 &
  perf-pyinject join $!
)";

constexpr std::string_view kFunctionsHelp =
    R"(usage: perf-pyinject functions [-i FILE] [OPTION...]

Shows the calls that perf-pyinject record --functions has recorded: for each
function the number of calls, how many of them returned, and their time with and
without callees, sorted by own time. The times include the cost of recording, 1
to 3 us for each call and return. A generator or coroutine is entered when it is
created and each time it is resumed; each yield is a return.

  -i, --input FILE  the recording (perf.data)
      --timeline    print every call and return in order instead
      --json        for programs: docs/functions.md describes the fields
  -q, --quiet       only warnings and errors
  -v, --verbose     more

examples:
  perf-pyinject record --functions -p 4711 -- sleep 1
  perf-pyinject functions
  perf-pyinject functions --timeline -i calls.data | head -50
)";

constexpr std::string_view kWrapped =
    R"(usage: perf-pyinject trace|top -p PID[,PID...] [OPTION...]
       perf-pyinject sched|kmem record -p PID[,PID...] [OPTION...] [-- CMD...]

Switches the targets' perf trampoline on, runs perf's verb in the foreground,
and switches the trampoline off at its end. Options that are not listed here go
to perf. Live views show what perf finds by itself: whole stacks with frame
pointers (perf-pyinject status, column FP) and --call-graph fp, else the
innermost function only. Recorded stacks (-g, --call-graph dwarf) are unwound
as those of record.

  -p, --pid LIST   the targets
      --perf PATH  the perf to run (else $PERF, else the one on PATH)
      --strict     fail if one target cannot be activated (default)
      --lenient    skip targets that cannot be activated

exit status: perf's; 125 refused or failed; 129 usage

examples:
  perf-pyinject trace --call-graph fp -e 'write*' -p 4711
  perf-pyinject top -g -p 4711
  perf-pyinject sched record -g -p 4711 -- sleep 5 && perf sched timehist
)";

constexpr std::string_view kWeaveHelp =
    R"(usage: perf-pyinject weave FILE [-o OUTPUT] [OPTION...]

Unwinds the stacks of a perf.data that was recorded without perf-pyinject.
Copied stacks (--call-graph dwarf) become callchains, also through CPython's
trampolines. Names from perf maps go into perf's build-id cache. The programs,
libraries and /tmp/perf-PID.map of the recording must not have changed. record
does all this by itself.

  -o, --output PATH  the result; default: replace FILE
      --perf PATH    the perf whose build-id cache is used
  -q, --quiet        only warnings and errors
  -v, --verbose      more

example:
  perf record --call-graph dwarf,32768 -p 4711 -- sleep 10
  perf-pyinject weave perf.data -o whole.data && perf report -i whole.data
)";

constexpr std::string_view kActivateHelp =
    R"(usage: perf-pyinject activate -p PID[,PID...] [OPTION...]

Switches CPython's perf trampoline on in the targets and leaves it on, for a
perf that you run yourself. Programs that mostly call functions run at up to
half their speed until it is switched off.

  -p, --pid LIST  the targets
      --strict    if one fails, switch the others off again (default)
      --lenient   skip targets that fail
      --stats FILE, --log-format json  figures and messages for programs
  -q, --quiet     only warnings and errors
  -v, --verbose   more

example, for an interpreter with frame pointers:
  perf-pyinject activate -p 4711 && perf top -g -p 4711
)";

constexpr std::string_view kDeactivateHelp =
    R"(usage: perf-pyinject deactivate (-p PID[,PID...] | --abandoned) [OPTION...]

Switches off trampolines that perf-pyinject has switched on. Those that a
program has switched on itself (python -X perf, or its own call) stay on.

  -p, --pid LIST  the targets
      --abandoned  all processes left on by sessions that were killed together
                  with their guard; not those of activate
      --deactivate-timeout SEC  for all targets together (5)
      --stats FILE, --log-format json  figures and messages for programs
  -q, --quiet     only warnings and errors
  -v, --verbose   more

example:
  perf-pyinject deactivate -p 4711
)";

constexpr std::string_view kStatusHelp =
    R"(usage: perf-pyinject status [-p PID[,PID...]] [OPTION...]

Lists the visible Python processes, or those of -p: version, whether the
interpreter keeps frame pointers (FP), the state of the trampoline, and, if it
cannot be switched on, the reason. Nothing is stopped or changed.

  -p, --pid LIST  only these processes
      --json      for programs: docs/status-json.md describes the fields
  -q, --quiet     only warnings and errors
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
