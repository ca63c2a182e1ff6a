# Daemon threads are busy while the interpreter shuts down.
torture(calls, [calls] * 4, daemon=True)
