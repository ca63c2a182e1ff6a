# Maps many small libraries, each from a different file; then maps them again and again.
import os
import time

from hostile import Mapped, elf, ready

count = int(os.environ.get("PYINJECT_HOSTILE_FILES", "6000"))
content = elf([], b"\0")
for number in range(count):
    os.close(Mapped(f"file{number}.so", content).fd)
ready()
late = [None] * 1000  # at most these at a time: vm.max_map_count is 65,530
number = 0
while True:
    time.sleep(0.005)
    number = (number + 1) % len(late)
    if late[number] is not None:
        late[number].unmap()
    late[number] = Mapped(f"late{number}.so", content)
    os.close(late[number].fd)
