#!/usr/bin/env bash
# Install what `make test` needs on a Debian machine, and nothing that is there
# already: Redis and PostgreSQL (process backend), SPIN (independent check), Chromium (the report),
# redis-py (a scheme of others that is judged), and, for
# the container backend, images: the official ones when they are present or can be
# pulled, otherwise a local one built from Debian packages.
#
# When something cannot be installed this says so and goes on: the tests report what
# they lack themselves. Needs root, or sudo, only when a package is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
redis_image=${STOCKPROOF_REDIS_IMAGE:-redis:7}
postgres_image=${STOCKPROOF_POSTGRES_IMAGE:-postgres:15}
local_image=stockproof-local:bookworm

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
	if [[ $(id -u) == 0 ]]; then
		"$@"
	elif have sudo && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 127
	fi
}

# install PACKAGE... : through apt-get, once, together.
updated=no
install() {
	if ! have apt-get; then
		say "missing and no apt-get here, install by hand: $*"
		return 1
	fi
	say "installing $* with apt-get"
	if [[ $updated == no ]]; then
		as_root apt-get -qq update >&2 || say "apt-get update failed; trying with the lists there are"
		updated=yes
	fi
	if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >&2; then
		say "could not install: $* (root, or sudo without a password, is needed)"
		return 1
	fi
}

missing=()
have redis-server || missing+=(redis-server)
have postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
have spin || missing+=(spin)
# The system's own Python, for the subjects in examples/subjects.
[[ -x /usr/bin/python3 ]] && /usr/bin/python3 -c 'import redis' 2>/dev/null || missing+=(python3 python3-redis)
have chromium || have chromium-browser || have google-chrome || missing+=(chromium) # the report is tested in it
have gcc || missing+=(gcc libc6-dev) # SPIN's verifiers are C programs
if ((${#missing[@]})); then
	install "${missing[@]}" || true
else
	say "redis-server, postgres, spin, gcc, chromium and python3-redis are there"
fi

present() { docker image inspect "$1" >/dev/null 2>&1; }
obtain() { present "$1" || timeout 300 docker pull -q "$1" >/dev/null 2>&1; }

if [[ ${STOCKPROOF_BACKEND:-} == process ]]; then
	say "no images needed: STOCKPROOF_BACKEND=process"
elif ! have docker || ! docker info >/dev/null 2>&1; then
	say "no docker daemon answers: no container backend"
elif obtain "$redis_image" && obtain "$postgres_image"; then
	say "images $redis_image and $postgres_image are there"
elif [[ -n ${STOCKPROOF_REDIS_IMAGE:-}${STOCKPROOF_POSTGRES_IMAGE:-} ]]; then
	say "$redis_image and $postgres_image were asked for, and are neither present nor can be pulled"
elif present "$local_image"; then
	say "image $local_image is there"
else
	say "$redis_image and $postgres_image cannot be pulled: building $local_image"
	have debootstrap || [[ -n ${STOCKPROOF_ROOTFS:-} ]] || install debootstrap || true
	if [[ $(id -u) == 0 || -n ${STOCKPROOF_ROOTFS:-} ]]; then
		"$here/build-image.sh" "$local_image" || say "the image could not be built: no container backend"
	else
		as_root "$here/build-image.sh" "$local_image" || say "the image could not be built (root is needed): no container backend"
	fi
fi
