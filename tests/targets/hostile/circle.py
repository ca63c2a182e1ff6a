# A cyclic list of interpreters, each with 32,000 thread states.
import os

from hostile import Offsets, fake_threads, interpreter, ready, wait_forever, word

offsets = Offsets()
kept = fake_threads(offsets, 32_000, [os.getpid()])
word(interpreter() + offsets.next_interpreter).value = interpreter()
ready()
wait_forever()
