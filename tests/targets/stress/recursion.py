# 3.12 permits 748 nested calls with the trampoline.
def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


# Through C code at every level.
def deep_in_c(n):
    return 0 if n == 0 else 1 + max(map(deep_in_c, (n - 1,)))


def work():
    expect(deep(500), 500)
    expect(deep_in_c(60), 60)


torture(work, [work, work])
