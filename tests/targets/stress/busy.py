torture(calls)
