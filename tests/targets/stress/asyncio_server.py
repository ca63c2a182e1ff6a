# A server in the main thread, clients in two others.
import asyncio
import json
import socket

port = 0


async def serve(reader, writer):
    while line := await reader.readline():
        numbers = json.loads(line)
        await asyncio.sleep(0)
        writer.write(json.dumps({"sum": sum(numbers), "fib": fib(8)}).encode() + b"\n")
        await writer.drain()
    writer.close()
    await writer.wait_closed()


def client(number):
    def work():
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rw") as stream:
            for i in range(10):
                stream.write(json.dumps([i, number, 1]) + "\n")
                stream.flush()
                expect(json.loads(stream.readline()), {"sum": i + number + 1, "fib": 21})

    return work


async def run():
    global port
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    clients = [start(client(number)) for number in range(2)]
    while any(thread.is_alive() for thread in clients):
        await asyncio.sleep(0.01)
    server.close()
    await server.wait_closed()


torture(begin=lambda: asyncio.run(run()))
