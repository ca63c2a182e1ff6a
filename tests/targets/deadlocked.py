"""A program whose three threads wait forever: for locks that are never released, and for a pipe without data."""

import os
import threading

first, second = threading.Lock(), threading.Lock()
first.acquire()
second.acquire()
reads, writes = os.pipe()


def waits_for_a_lock():
    first.acquire()


def reads_a_pipe():
    os.read(reads, 1)


def main_waits():
    second.acquire()


for function in waits_for_a_lock, reads_a_pipe:
    threading.Thread(target=function, daemon=True).start()
print("ready", flush=True)
main_waits()
