# A child keeps stopping and continuing it.
import signal


def begin():
    global child
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        while not stopping():
            os.kill(parent, signal.SIGSTOP)
            time.sleep(0.002)
            os.kill(parent, signal.SIGCONT)
            time.sleep(0.004)
            PAGE[60] += 1
        os._exit(7)


def end():
    expect(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
    unlink_map(child)


torture(calls, [calls], begin=begin, end=end)
