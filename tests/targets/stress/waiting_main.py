# The main thread waits in a join all the time.
torture(None, [calls] * 3)
