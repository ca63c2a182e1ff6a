"""FastAPI on uvicorn with uvloop. Prints "ready PORT"; exits when its stdin is closed."""
import os
import socket
import threading

import fastapi
import uvicorn

app = fastapi.FastAPI()


def total(depth, n):
    if depth:
        return total(depth - 1, n)
    return sum(i * i % 7 for i in range(n))


@app.get("/items/{number}")
async def item(number: int, size: int = 200):
    return {"number": number, "total": total(number % 8, size), "names": [f"n{i}" for i in range(20)]}


@app.get("/threaded/{number}")
def threaded(number: int):
    return {"number": number, "total": total(number % 8, 300)}


def end_with_stdin():
    while os.read(0, 100):
        pass
    os._exit(0)


def main():
    threading.Thread(target=end_with_stdin, daemon=True).start()
    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    config = uvicorn.Config(app, loop="uvloop", log_level="error", access_log=False)
    print("ready", listening.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
