"""A service whose system calls, page faults and waits are known: docs/recipes.md records it."""
import mmap
import os
import socket
import tempfile
import threading
import time


def load_prices():
    with open("/proc/self/stat") as file:
        return file.read()


def ask_stock(port):
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(b"?")
        return peer.recv(1)


def resize_image():
    with mmap.mmap(-1, 1 << 20) as image:
        for page in range(0, 1 << 20, 4096):
            image[page] = 1


def save_order(log):
    os.write(log, b"order\n")
    os.fsync(log)


def answer(server):
    while True:
        peer, _ = server.accept()
        with peer:
            peer.recv(1)
            peer.sendall(b"!")


def serve(port, log):
    while True:
        for _ in range(3):
            load_prices()
        for _ in range(2):
            ask_stock(port)
        resize_image()
        save_order(log)
        time.sleep(0.005)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=answer, args=(listener,), daemon=True).start()
    with tempfile.TemporaryFile(dir=".") as orders:
        serve(listener.getsockname()[1], orders.fileno())
