# Daemon threads are busy while the interpreter ends.
torture(calls, [calls] * 4, daemon=True)
