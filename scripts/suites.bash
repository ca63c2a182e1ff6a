# Packages of Debian's suites other than this machine's, by apt with a state of its own; sourced by scripts. No host names:
# the archives are those of the machine's apt configuration.
# shellcheck shell=bash

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The Debian archives known to this machine's apt, likeliest first. Labels are empty before the first apt-get update.
mirrors() {
  # shellcheck disable=SC2016 # apt's variables, not ours
  apt-get indextargets --format '$(LABEL)|$(COMPONENT)|$(IDENTIFIER)|$(REPO_URI)' |
    awk -F'|' '$2 == "main" && $3 == "Packages" && $4 !~ /security/ && !seen[$4]++ {
                 if ($1 == "Debian") print $4; else late = late $4 "\n" }
               END { printf "%s", late }'
}

# Runs apt with a state of its own, but with the machine's acquisition settings (proxies and the like).
own_apt() {
  local tool=$1 state=$2
  shift 2
  "$tool" -qq -o Dir::Etc::SourceList="$state/suite.sources" -o Dir::Etc::SourceParts=- \
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
    -o Dir::State="$state" -o Dir::State::Lists="$state/lists" -o Dir::State::Status="$state/status" \
    -o Dir::State::extended_states="$state/extended" -o Dir::Cache="$state/cache" -o Dir::Log=/dev/null \
    -o APT::Sandbox::User= -o APT::Install-Recommends=false -o APT::Architecture=amd64 -o Acquire::Languages=none \
    -o APT::Get::List-Cleanup=false "$@"
}

# STATE SUITE [deb-src]: prepares the new directory STATE for own_apt. Fails, after apt's messages, if no archive has SUITE.
open_suite() {
  local state=$1 suite=$2 uri
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : >"$state/status"
  while read -r uri; do
    printf 'Types: deb %s\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "${3-}" "$uri" "$suite" "$keyring" \
      >"$state/suite.sources"
    if own_apt apt-get "$state" update >"$state/log" 2>&1 && own_apt apt-cache "$state" show libc6 >/dev/null 2>&1; then
      return 0
    fi
  done < <(mirrors)
  [[ ! -s $state/log ]] || tail -n 5 "$state/log" >&2
  return 1
}
