"""celery with a prefork pool of two and a broker in a directory: celery_pool.py DIRECTORY. Prints "ready PID", the
pid of a worker, when both workers have done a task, and keeps queueing tasks. Exits when its stdin is closed."""
import os
import signal
import sys
import threading
import time

import celery

BROKER = sys.argv[1]
app = celery.Celery("pool", broker="filesystem://")
app.conf.update(
    broker_transport_options={
        "data_folder_in": BROKER,
        "data_folder_out": BROKER,
        "control_folder": os.path.join(BROKER, "control"),
    },
    result_backend=None,
    task_ignore_result=True,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


def total(depth, n):
    if depth:
        return total(depth - 1, n)
    return sum(i * i % 7 for i in range(n))


@app.task(name="work")
def work(number):
    total(number % 8, 400_000)
    open(os.path.join(BROKER, f"done-{os.getpid()}"), "w").close()


def put_tasks():
    number = 0
    said = False
    while True:
        waiting = sum(name.endswith(".msg") for name in os.listdir(BROKER))
        for _ in range(8 - waiting):
            work.delay(number)
            number += 1
        workers = [name.removeprefix("done-") for name in os.listdir(BROKER) if name.startswith("done-")]
        if not said and len(workers) == 2:
            said = True
            print("ready", workers[0], file=sys.__stdout__, flush=True)  # celery redirects sys.stdout to its log
        time.sleep(0.02)


def end_with_stdin():
    while os.read(0, 100):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    os.setpgid(0, 0)
    os.makedirs(os.path.join(BROKER, "control"), exist_ok=True)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    threading.Thread(target=put_tasks, daemon=True).start()
    app.worker_main(
        ["worker", "--pool=prefork", "--concurrency=2", "--loglevel=error", "--without-gossip", "--without-mingle",
         "--without-heartbeat"])
