#compdef perf
# Completion of perf for zsh: zsh's own, and that of perf-pyinject behind "perf pyinject".

if ((CURRENT > 2)) && [[ $words[2] == pyinject ]]; then
  words=(perf-pyinject "${(@)words[3,-1]}")
  ((CURRENT--))
  _perf-pyinject
  return
fi
local -i found=1
if ((CURRENT == 2)); then
  local -a extension=('pyinject:profile running Pythons')
  _describe -t commands subcommand extension && found=0
fi
if (($+functions[_perf])); then
  _perf "$@" && found=0
elif ((CURRENT > 2)); then
  _default && found=0
fi
return found
