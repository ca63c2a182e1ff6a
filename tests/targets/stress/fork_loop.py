# Forks while it is switched on and off; one child lives for a while.
long_child = []
pipe = []


def run_child(work):
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        status = 7
    except BaseException:
        traceback.print_exc()
        status = 8
    unlink_map(os.getpid())
    os._exit(status)


def reap(pid):
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
    unlink_map(pid)


# Works until its pipe is closed.
def live():
    os.close(pipe[1])
    os.set_blocking(pipe[0], False)
    while True:
        calls()
        PAGE[60] += 1
        try:
            if os.read(pipe[0], 1) == b"":
                return
        except BlockingIOError:
            pass


def release():
    if long_child:
        os.close(pipe[1])
        reap(long_child.pop())
        os.close(pipe[0])
        pipe.clear()


turn = itertools.count()


def work():
    if next(turn) % 20 == 0:
        release()
        pipe.extend(os.pipe())
        long_child.append(run_child(live))
    reap(run_child(calls))


torture(work, end=release)
