# Completion of perf-pyinject for fish. Generated from the table of the verbs.

# Succeeds if the verb on the command line is VERB; '': if there is none.
function __perf_pyinject_at
    set -l words (commandline -opc)
    for word in $words[2..-1]
        string match -q -- '-*' $word; and continue
        test "$word" = "$argv[1]"
        return
    end
    test -z "$argv[1]"
end

# Succeeds behind "--".
function __perf_pyinject_in_command
    contains -- -- (commandline -opc)
end

# Completes the command behind "--".
function __perf_pyinject_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    printf '%s\n' (complete -C (string join ' ' -- $words[(math $at + 1)..-1]))
end

# PIDs of KIND, python or perf, with their command lines. Others may be Pythons, too.
function __perf_pyinject_pids
    for directory in (string match -r -- '^/proc/[0-9]+$' /proc/*)
        test -r $directory/cmdline; or continue
        set -l line (string split0 <$directory/cmdline)
        test -n "$line[1]"; or continue
        set -l name (string split -f1 -- ' ' $line[1] | string replace -r -- '^.*/' '')
        switch "$argv[1]:$name"
            case 'python:python*' 'python:Python*' 'python:gunicorn*' 'python:uwsgi*' 'python:uvicorn*' 'python:*celery*' perf:perf 'perf:perf_*'
                set -l shown (string sub -l 60 -- "$line" | string replace -ra -- '[[:cntrl:]]' '?')
                printf '%s\t%s\n' (string replace -- /proc/ '' $directory) "$shown"
        end
    end
end

# The values, behind those of the list that is typed already.
function __perf_pyinject_list
    set -l typed (commandline -ct | string replace -r -- '^(-[a-zA-Z]|--[a-z-]+=)' '')
    set -l head (string match -r -- '^.*,' $typed)
    printf '%s\n' "$head"$argv
end

complete -c perf-pyinject -f
# TABLE
