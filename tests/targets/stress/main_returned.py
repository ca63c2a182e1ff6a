# The main thread has finished and waits inside the interpreter for the others.
def rest():
    for thread in threads:
        thread.join()
    verdict()
    sys.stdin.readline()


print("ready", flush=True)
sys.stdin.readline()
threads = [start(calls) for _ in range(2)]
threading.Thread(target=rest).start()
