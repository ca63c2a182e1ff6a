# 32,000 thread states of threads that do not exist.
from hostile import Offsets, fake_threads, ready, wait_forever

kept = fake_threads(Offsets(), 32_000, range(100_000, 132_000))
ready()
wait_forever()
