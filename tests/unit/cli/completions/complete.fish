# fish --no-config complete.fish DIRECTORY LINE...: prints what the completions in DIRECTORY offer at the end of each LINE, in
# lines of their own, and "." after each LINE.
set fish_complete_path $argv[1]
for line in $argv[2..-1]
    complete -C $line
    echo .
end
