import gevent
import gevent.server
import gevent.socket

# Addresses are resolved without gevent's pool: its daemon threads complain if Python ends while one of them runs.
gevent.config.resolver = "block"
serving = 0


def serve(connection, address):
    global serving
    serving += 1
    with connection, connection.makefile("rw") as stream:
        for line in stream:
            gevent.sleep(0)
            stream.write(f"{int(line) + fib(7)}\n")
            stream.flush()
    serving -= 1


def client():
    with gevent.socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        with connection.makefile("rw") as stream:
            for i in range(5):
                stream.write(f"{i}\n")
                stream.flush()
                expect(int(stream.readline()), i + 13)


def work():
    clients = [gevent.spawn(client) for _ in range(4)]
    gevent.joinall(clients, raise_error=True)


def begin():
    global server
    server = gevent.server.StreamServer(("127.0.0.1", 0), serve)
    server.start()


def end():
    while serving:
        gevent.sleep(0.001)
    server.stop()


# The hub opens its own descriptors: do that now.
gevent.sleep(0)
torture(work, begin=begin, end=end)
