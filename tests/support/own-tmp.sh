#!/bin/sh
# Runs COMMAND with another /tmp, in this mount namespace.
#
#   own-tmp.sh MOUNT THEN COMMAND [ARGUMENT...]
#
# MOUNT: a shell command that mounts the new /tmp on /mnt. THEN: a shell command to run when it is in place. This tree, the
# interpreters and all that COMMAND names keep their paths, even below /tmp. TMPDIR is unset.
set -e
mount=$1
then=$2
shift 2
eval "$mount"
old_ifs=$IFS
IFS=: # splits PATH
set -f
for path in "$0" "$@" "${HOME-}" "${XDG_CACHE_HOME-}" "${PYINJECT_ROOTS-}" "${PERF_CONFIG-}" $PATH; do
  name=${path#/tmp/}
  name=${name%%/*}
  case $path in
    /tmp/?*) [ ! -d "/tmp/$name" ] || [ -e "/mnt/$name" ] || {
      mkdir -m 755 "/mnt/$name"
      mount --rbind "/tmp/$name" "/mnt/$name"
    } ;;
  esac
done
IFS=$old_ifs
set +f
mount --move /mnt /tmp
cd /
eval "$then"
unset TMPDIR
exec "$@"
