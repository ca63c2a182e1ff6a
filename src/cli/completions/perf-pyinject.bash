# Completion of perf-pyinject for bash. Generated from the table of the verbs.
# shellcheck disable=SC2154 # the table sets it

# TABLE
# Sets found to "PID COMMAND" of the processes of KIND: python, perf. Others may be Pythons, too.
_perf_pyinject_find() {
  local directory name
  local -a line
  found=()
  for directory in /proc/[0-9]*; do
    mapfile -d '' -t line <"$directory/cmdline" || continue
    name=${line[0]%% *}
    name=${name##*/}
    case $1:$name in
      python:[Pp]ython* | python:gunicorn* | python:uwsgi* | python:uvicorn* | python:*celery*) ;;
      perf:perf | perf:perf_*) ;;
      *) continue ;;
    esac
    name=${line[*]}
    name=${name:0:60}
    found+=("${directory#/proc/} ${name//[^[:print:]]/?}")
  done 2>/dev/null
}

# Completes a pid that begins with TAIL, below HEAD. The command lines are shown, not inserted.
_perf_pyinject_pids() {
  local -a found
  local process
  _perf_pyinject_find "$1"
  for process in "${found[@]}"; do
    [[ $process != "$tail"* ]] || COMPREPLY+=("$head$process")
  done
  # Types 37 and 42 insert each match.
  if ((${#COMPREPLY[@]} == 1)) || [[ ${COMP_TYPE-} == 37 || ${COMP_TYPE-} == 42 ]]; then
    COMPREPLY=("${COMPREPLY[@]%% *}")
  fi
}

_perf_pyinject_files() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$@" -- "$tail")
  COMPREPLY=("${COMPREPLY[@]/#/$head}")
}

# Completes a value of KIND: TAIL is what is typed of it, behind HEAD.
_perf_pyinject_complete() {
  case $1 in
    word | list) mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "$tail") ;;
    users) mapfile -t COMPREPLY < <(compgen -P "$head" -u -- "$tail") ;;
    pids) _perf_pyinject_pids python ;;
    perf) _perf_pyinject_pids perf ;;
    files) _perf_pyinject_files -f ;;
    directories) _perf_pyinject_files -d ;;
    recordings)
      _perf_pyinject_files -o plusdirs -f -X '!*.data*'
      ((${#COMPREPLY[@]})) || _perf_pyinject_files -f
      ;;
  esac
}

_perf_pyinject() {
  local verb='' options='' kind='' words='' head='' tail=${COMP_WORDS[COMP_CWORD]} option
  local -i i at=COMP_CWORD
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --)
        # A command.
        if declare -F _command_offset >/dev/null; then
          _command_offset $((i + 1))
        else
          mapfile -t COMPREPLY < <(compgen -c -- "$tail")
        fi
        return
        ;;
      -*) ;;
      *) verb=${verb:-${COMP_WORDS[i]}} ;;
    esac
  done
  # The option whose value this may be. "=" and perhaps "," are words of their own.
  if [[ $tail == [=,] ]]; then
    tail=''
    at+=1
  fi
  while ((at > 2)) && [[ ${COMP_WORDS[at - 1]} == , ]]; do
    at+=-2
  done
  option=${COMP_WORDS[at - 1]}
  if [[ $option == = ]]; then
    option=${COMP_WORDS[at - 2]}
  elif [[ $tail == --*=* ]]; then
    option=${tail%%=*}
    head=$option=
    tail=${tail#*=}
  fi
  _perf_pyinject_value "$verb:$option"
  if [[ $kind == list || $kind == pids ]] && [[ $tail == *,* ]]; then
    head+=${tail%,*},
    tail=${tail##*,}
  fi
  if [[ $kind ]]; then
    _perf_pyinject_complete "$kind"
    return
  fi
  _perf_pyinject_options "$verb"
  if [[ $verb ]]; then
    _perf_pyinject_operands "$verb"
  else
    kind=word words=$_perf_pyinject_verbs
  fi
  if [[ $tail == -* || ! $kind || $kind == command ]]; then
    kind=word words=$options
  fi
  _perf_pyinject_complete "$kind"
}

complete -F _perf_pyinject perf-pyinject
