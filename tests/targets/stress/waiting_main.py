# The main thread waits in join() the whole time.
torture(None, [calls] * 3)
