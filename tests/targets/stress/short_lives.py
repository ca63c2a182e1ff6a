# Exits by itself after a short time.
print("ready", flush=True)
delay = float(sys.stdin.readline())
end = time.monotonic() + delay
while time.monotonic() < end:
    calls()
    PAGE[1] += 1
verdict()
