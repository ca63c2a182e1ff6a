import subprocess


def work():
    expect(subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode, 3)
    expect(subprocess.check_output(["/bin/sh", "-c", "IFS= read -r text; echo \"$text$0\"", "word"], input=b"in \n"), b"in word\n")


torture(work, [calls])
