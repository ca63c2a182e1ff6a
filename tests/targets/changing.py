"""Maps files, forks and executes while it is recorded; each part works for a second of CPU time in C functions."""
import os
import sys
import time

WORK = '''
import sys, time
def spin(work):
    end = time.process_time() + 1
    while time.process_time() < end:
        work()
'''
exec(WORK)


def sort():
    sorted(range(50), key=lambda n: -n)


def command_of_this():
    words = open('/proc/self/cmdline').read().split('\0')
    return words[:words.index('-c')]


def wait_for(child):
    status = os.waitpid(child, 0)[1]
    print('child', child, os.waitstatus_to_exitcode(status), flush=True)


print('ready', flush=True)
sys.stdin.readline()

child = os.fork()
if child == 0:
    spin(sort)
    os._exit(0)
wait_for(child)

child = os.fork()
if child == 0:
    program = WORK + 'spin(lambda: sorted(range(50), key=lambda n: -n))'
    os.execv('/proc/self/exe', command_of_this() + ['-c', program])
wait_for(child)

import decimal

context = decimal.Context(prec=2000)
spin(lambda: decimal.Decimal(2).sqrt(context))
print('over', flush=True)
sys.stdin.readline()
