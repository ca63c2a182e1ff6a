# Checks that print a line each; sourced by the parts of scripts/package-test.
# shellcheck shell=bash

failures=0

# FILE: from now on, the output of commands goes to FILE, and the lines of the checks to stdout.
log_to() { exec 3>&1 >>"$1" 2>&1; }

report() { printf '%s\n' "$*" && printf '%s\n' "$*" >&3; }
note() { report "     $*"; }
ok() { report "ok   $*"; }
skipped() { report "skip $*"; }
failed() {
  report "FAILED: $*"
  failures=$((failures + 1))
}

# NAME COMMAND...
check() {
  local name=$1 status=0
  shift
  printf '\n=== %s: %s\n' "$name" "$*"
  "$@" </dev/null || status=$?
  if ((status == 0)); then ok "$name"; else failed "$name (status $status)"; fi
  return "$status"
}

# NAME PATTERN COMMAND...: COMMAND succeeds and prints a line that matches PATTERN.
check_prints() {
  local name=$1 pattern=$2 status=0 out
  shift 2
  printf '\n=== %s: %s\n' "$name" "$*"
  out=$("$@" </dev/null 2>&1) || status=$?
  head -c 20000 <<<"$out"
  if ((status != 0)); then
    failed "$name (status $status)"
  elif ! grep -qE -e "$pattern" <<<"$out"; then
    failed "$name: the output has no '$pattern'"
  else
    ok "$name"
    return 0
  fi
  return 1
}

# SECONDS COMMAND...
within() { timeout --kill-after=5 "$@"; }

# SECONDS COMMAND...: tries COMMAND again until it succeeds.
eventually() {
  local end=$((EPOCHSECONDS + $1))
  shift
  until "$@"; do
    ((EPOCHSECONDS < end)) || return 1
    sleep 0.1
  done
}

# COMMAND...: starts COMMAND, which prints `ready`, and sets `service` to its pid.
start_service() {
  local answer='' output
  exec {output}< <(exec "$@")
  # shellcheck disable=SC2034 # for the caller
  service=$!
  read -r -t 60 answer <&"$output" || true
  [[ $answer == ready ]]
}

# FILE SHELL-COMMAND PATTERN: runs SHELL-COMMAND in a terminal, presses q when PATTERN has been shown, and expects that it
# ends by itself. FILE gets its output.
press_q() {
  local out=$1 command=$2 pattern=$3 status=0 keys
  : >"$out"
  rm -f "$out.keys"
  mkfifo "$out.keys"
  timeout --kill-after=5 40 script -qefc "stty cols 100 rows 30; $command" "$out" <"$out.keys" >/dev/null &
  local terminal=$!
  exec {keys}<>"$out.keys" # also readable, so that writing never fails
  eventually 30 ended_or_shows "$terminal" "$out" "$pattern" || echo "'$pattern' was not shown"
  printf q >&"$keys"
  wait "$terminal" || status=$?
  exec {keys}>&-
  return "$status"
}
ended_or_shows() { ! kill -0 "$1" 2>/dev/null || grep -qaE -e "$3" "$2"; }
