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
      pyinject_ours "$argument"
      continue
    fi
    case $argument in
    --) separator=1 ;;
    --python-only | --strip-interpreter | --period | --off-cpu | --event=* | --output=* | --title=* | --least=*)
      pyinject_ours "$argument"
      ;;
    --event | --output | --title | --least)
      pyinject_ours "$argument"
      [ "$left" -eq 0 ] || { pyinject_ours "$1" && shift && left=$((left - 1)); }
      ;;
    *) set -- "$@" "$argument" ;;
    esac
  done
  eval "set -- \"\$@\" -- $ours"
  exec perf script -s "$script" "$@"
}

# Appends its argument to $ours so that eval gives it back as it is. Plain shell: perf changes PATH.
pyinject_ours() {
  rest=$1
  quoted=
  while :; do
    case $rest in
    *\'*) quoted="$quoted${rest%%\'*}'\\''" rest=${rest#*\'} ;;
    *) break ;;
    esac
  done
  ours="$ours '$quoted$rest'"
}
