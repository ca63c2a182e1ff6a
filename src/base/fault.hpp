// Places where tests can make this tool die or fail: the numbered steps of docs/architecture.md.
// Outside of tests no handler is installed, and a step costs one load.
#pragma once

namespace pyinject::base {

// In the order in which a recording reaches them. A name says what has just been done.
enum class Step {
  kNone,
  kSessionBegun,
  kGuardRuns,
  kTargetsChosen,
  kPerfRuns,
  kSideEventsEnabled,
  kGuardTold,
  kOldMapMoved,
  kThreadSeized,
  kThreadInterrupted,
  kThreadStopped,
  kAllStopped,
  kOnOwnerWritten,
  kOnStored,
  kRequestWritten,
  kBreakerSet,
  kQueueWritten,
  kFutexWoken,
  kFramesWritten,
  kFramesNoted,
  kFramesStarted,
  kAllReleased,
  kEffectAwaited,
  kSecondLook,
  kEffectSeen,
  kEvaluatorLearned,
  kVerified,
  kPayloadBlanked,
  kTakenBack,
  kActivated,
  kEventsEnabled,
  kCommandStarted,
  kRecording,
  kEventsDisabled,
  kOffEvaluatorKept,
  kOffStored,
  kOffOwnerCleared,
  kTargetsOff,
  kChildrenOff,
  kPerfEnded,
  kMapCopyBegun,
  kMapCopied,
  kWeaveBegun,
  kWoven,
  kGuardDismissed,
  kLast = kGuardDismissed,
};

// Called at each step. May exit the process, or throw base::Error to make the step fail.
using FaultHandler = void (*)(Step);

// nullptr: no handler, the default.
void set_fault_handler(FaultHandler handler);

void reached(Step step);

}  // namespace pyinject::base
