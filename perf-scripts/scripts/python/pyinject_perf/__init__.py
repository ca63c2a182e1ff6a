"""What the pyinject-* scripts for perf script share. Python 3.9 and later, standard library only."""
