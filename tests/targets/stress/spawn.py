# Threads that each wait as a parent in vfork.
def work():
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], os.environ)
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 5)


torture(work, [work] * 3)
