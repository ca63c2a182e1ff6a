# fish --no-config complete.fish FILE LINE...: prints what the completion in FILE offers at the end of each LINE, in lines
# of their own, and "." after each LINE.
source $argv[1]
for line in $argv[2..-1]
    complete -C $line
    echo .
end
