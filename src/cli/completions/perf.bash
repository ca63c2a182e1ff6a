# Completion of perf for bash: perf's own, and that of perf-pyinject behind "perf pyinject". bash-completion prefers a file
# "perf" of the same directory, but not one of a later directory.

# Stops if perf is completed by something other than a function.
_perf_pyinject_wrap() {
  local directory
  local -a directories own
  local -i i
  declare -F _perf_pyinject >/dev/null || source "${BASH_SOURCE[0]%/*}/perf-pyinject" || return
  if ! complete -p perf &>/dev/null; then
    IFS=: read -r -a directories <<<"${XDG_DATA_DIRS:-/usr/local/share:/usr/share}"
    for directory in "${directories[@]}"; do
      if [[ -f $directory/bash-completion/completions/perf ]]; then
        # shellcheck source=/dev/null
        source "$directory/bash-completion/completions/perf"
        break
      fi
    done
  fi
  read -r -a own < <(complete -p perf 2>/dev/null)
  if ((${#own[@]} == 0)); then
    complete -o bashdefault -o default -F _perf_or_pyinject perf
    return
  fi
  for ((i = 1; i < ${#own[@]}; i++)); do
    if [[ ${own[i]} == -F && ${own[i + 1]} != _perf_or_pyinject ]]; then
      _perf_pyinject_own=${own[i + 1]}
      own[i + 1]=_perf_or_pyinject
      "${own[@]}"
      return
    fi
  done
}

_perf_or_pyinject() {
  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == pyinject ]]; then
    local line=perf-pyinject${COMP_LINE#*pyinject}
    ((COMP_POINT += ${#line} - ${#COMP_LINE}))
    COMP_LINE=$line
    COMP_WORDS=(perf-pyinject "${COMP_WORDS[@]:2}")
    ((COMP_CWORD -= 1))
    compopt +o nospace +o default +o bashdefault
    _perf_pyinject
    return
  fi
  COMPREPLY=()
  [[ ! ${_perf_pyinject_own-} ]] || "$_perf_pyinject_own" "$@"
  if ((COMP_CWORD == 1)) && [[ pyinject == "${COMP_WORDS[1]}"* ]]; then
    COMPREPLY+=(pyinject)
  fi
}

_perf_pyinject_wrap
unset -f _perf_pyinject_wrap
