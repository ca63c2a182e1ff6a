#compdef perf-pyinject
# Completion of perf-pyinject for zsh. Generated from the table of the verbs.

local -a _perf_pyinject_verbs _perf_pyinject_global
# TABLE
# KIND: python, perf. Others may be Pythons, too. What follows KIND is for compadd.
_perf_pyinject_pids() {
  local kind directory name
  local -a line pids shown
  for kind in "$@"; do
    [[ $kind != (python|perf) ]] || break
  done
  set -- "${(@)argv:#$kind}"
  for directory in /proc/<->(N/); do
    { line=("${(0)$(<$directory/cmdline)}") } 2>/dev/null
    name=${${line[1]%% *}:t}
    case $kind:$name in
      python:[Pp]ython* | python:gunicorn* | python:uwsgi* | python:uvicorn* | python:*celery*) ;;
      perf:perf | perf:perf_*) ;;
      *) continue ;;
    esac
    pids+=(${directory:t})
    name="$line"
    shown+=("${directory:t}  ${(V)${name[1,60]}}")
  done
  compadd -l -d shown "$@" -a pids
}

_perf_pyinject() {
  local curcontext=$curcontext state
  local -a line specifications
  integer at=${words[(i)--]}
  if ((at < CURRENT)); then
    # A command.
    shift at words
    ((CURRENT -= at))
    _normal
    return
  fi
  _arguments -C $_perf_pyinject_global '1: :->verb' '*:: :->arguments' && return
  case $state in
    verb) _describe -t verbs verb _perf_pyinject_verbs ;;
    arguments)
      _perf_pyinject_specify $line[1]
      curcontext=${curcontext%:*:*}:perf-pyinject-$line[1]:
      _arguments -s $specifications
      ;;
  esac
}

_perf_pyinject "$@"
