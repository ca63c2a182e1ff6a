# Completion of perf for fish behind "perf pyinject": that of perf-pyinject.

function __perf_pyinject_follows
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = pyinject
end

function __perf_pyinject_delegate
    set -l words (commandline -opc)
    complete -C (string join ' ' -- perf-pyinject (string escape -- $words[3..-1]) (commandline -ct))
end

complete -c perf -n 'test (count (commandline -opc)) = 1' -a pyinject -d 'Profile running Pythons'
complete -c perf -n __perf_pyinject_follows -f -a '(__perf_pyinject_delegate)'
