# Read by the -report scripts beside it: runs perf script with the arguments given to `perf script report NAME`.
# perf refuses options it does not know, so those of our scripts go behind the --; everything else is perf's.
# shellcheck shell=sh

pyinject_report() {
  script=$1
  shift
  left=$#
  ours=''
  separator=
  while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ -n "$separator" ]; then
      ours="$ours $(pyinject_quote "$argument")"
      continue
    fi
    case $argument in
    --) separator=1 ;;
    --python-only | --strip-interpreter | --period | --by-thread | --wide | --event=* | --limit=* | --sort=* | --native=*)
      ours="$ours $(pyinject_quote "$argument")"
      ;;
    --native)
      ours="$ours $argument"
      case ${1-} in
      [0-9]*) [ "$left" -eq 0 ] || { ours="$ours $1" && shift && left=$((left - 1)); } ;;
      esac
      ;;
    --event | --limit | --sort)
      ours="$ours $argument"
      [ "$left" -eq 0 ] || { ours="$ours $(pyinject_quote "$1")" && shift && left=$((left - 1)); }
      ;;
    *) set -- "$@" "$argument" ;;
    esac
  done
  eval "exec perf script -s \"\$script\" \"\$@\" -- $ours"
}

pyinject_quote() {
  printf '%s\n' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
}
