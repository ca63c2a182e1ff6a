# Threads keep starting and exiting.
def storm():
    total = []
    threads = [threading.Thread(target=lambda: total.append(fib(6))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(total, [8] * 6)


torture(storm, [storm, storm])
