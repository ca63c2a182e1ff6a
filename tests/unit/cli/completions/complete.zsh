# zsh -f complete.zsh DIRECTORY OUTPUT LINE...: writes what the completion in DIRECTORY offers at the end of each LINE to
# OUTPUT, in lines of their own, and "." after each LINE. Runs zsh's line editor in a pseudoterminal.
zmodload zsh/zpty
export COMPLETIONS=$1 OUTPUT=$2
mkfifo $OUTPUT.answered
exec {answered}<>$OUTPUT.answered
zpty shell zsh -f -i
zpty -w shell '
  PROMPT= fpath=($COMPLETIONS $fpath)
  setopt noautolist noautomenu nobeep
  autoload -Uz compinit && compinit -D -u
  compadd() {
    local -a hits
    if (( ! ${argv[(I)-[OAD]]} )); then
      builtin compadd -A hits "$@"
      (( ! ${#hits} )) || print -rl -- $hits >>$OUTPUT
    fi
    builtin compadd "$@"
  }
  complete-and-answer() { zle complete-word; BUFFER=; print . >>$OUTPUT; print >$OUTPUT.answered }
  zle -N complete-and-answer && bindkey "^I" complete-and-answer
  print >$OUTPUT.answered
'
read -r -u $answered
shift 2
for line; do
  zpty -w -n shell "$line"$'\t'
  read -r -u $answered
done
zpty -d shell
