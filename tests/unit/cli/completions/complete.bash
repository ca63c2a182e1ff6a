# bash --norc complete.bash FILE LINE...: prints what the completion in FILE offers at the end of each LINE, in lines of
# their own, and "." after each LINE.
# shellcheck source=/dev/null
source "$1"
shift
for line; do
  # As readline does with the default COMP_WORDBREAKS.
  read -r -a COMP_WORDS <<<"${line//=/ = }"
  [[ $line != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9
  [[ $(complete -p "${COMP_WORDS[0]}") =~ \ -F\ ([^ ]+) ]]
  # Within completion only: compopt.
  "${BASH_REMATCH[1]}" 2>/dev/null
  ((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
  echo .
done
