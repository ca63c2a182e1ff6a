# The main thread has called pthread_exit; the others keep running.
import ctypes


# The state of the main thread, which the kernel keeps as a zombie.
def main_state():
    with open("/proc/self/stat") as file:
        return file.read().rpartition(") ")[2][0]


def rest():
    while main_state() != "Z":
        time.sleep(0.001)
    threads = [start(calls) for _ in range(2)]
    for thread in threads:
        thread.join()
    verdict()
    sys.stdin.readline()
    os._exit(0)


print("ready", flush=True)
sys.stdin.readline()
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)
