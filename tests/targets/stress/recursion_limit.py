# Runs into the recursion limit and catches it, in a thread.
def endless(n):
    return endless(n + 1)


def work():
    try:
        endless(0)
    except RecursionError:
        return
    raise AssertionError("no RecursionError")


torture(calls, [work, work])
