# Keeps exec'ing itself.
again = len(sys.argv) > 2
if not again:
    print("ready", flush=True)
    sys.stdin.readline()
end = time.monotonic() + 0.03
while not stopping() and time.monotonic() < end:
    calls()
    PAGE[1] += 1
if not stopping():
    # The argument of -c is the program's text.
    os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[sys.orig_argv.index("-c") + 1], FOLDER, "again"])
verdict()
sys.stdin.readline()
