#!/usr/bin/env bash
# Build one local container image that can play both server roles (Redis and
# PostgreSQL) from Debian packages, for machines that can reach a Debian mirror
# but no image registry.
#
# usage: scripts/build-image.sh [--force] [IMAGE]
#
# IMAGE defaults to $STOCKPROOF_LOCAL_IMAGE, then stockproof-local:bookworm.
# An image of that name is kept as it is unless --force is given.
#
# STOCKPROOF_ROOTFS   use this folder, made earlier by debootstrap, and skip debootstrap
# STOCKPROOF_MIRROR   Debian mirror (default: debootstrap's own choice)
# STOCKPROOF_SUITE    Debian release (default: bookworm)
set -euo pipefail

say() { printf 'build-image: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

force=no
image=${STOCKPROOF_LOCAL_IMAGE:-stockproof-local:bookworm}
for arg in "$@"; do
	case $arg in
	--force) force=yes ;;
	-h | --help) sed -n '2,/^set -euo/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 0 ;;
	-*) say "unknown option $arg"; exit 2 ;;
	*) image=$arg ;;
	esac
done
suite=${STOCKPROOF_SUITE:-bookworm}
mirror=${STOCKPROOF_MIRROR:-}

command -v docker >/dev/null || die "there is no docker command: apt-get install docker.io"
docker info >/dev/null 2>&1 || die "the docker daemon does not answer: start it, or check that this user may talk to it"

old=$(docker image inspect --format '{{.Id}}' "$image" 2>/dev/null || true)
if [[ -n $old && $force == no ]]; then
	say "$image is there already (--force builds it again)"
	exit 0
fi

work=
cleanup() { if [[ -n $work ]]; then rm -rf --one-file-system "$work"; fi; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

rootfs=${STOCKPROOF_ROOTFS:-}
if [[ -n $rootfs ]]; then
	[[ -d $rootfs/usr && -d $rootfs/etc ]] || die "STOCKPROOF_ROOTFS=$rootfs does not look like a root file system"
	say "using the root file system in $rootfs"
else
	[[ $(id -u) == 0 ]] || die "debootstrap needs root: run this as root, or give a ready folder in STOCKPROOF_ROOTFS"
	command -v debootstrap >/dev/null || die "there is no debootstrap: apt-get install debootstrap"
	work=$(mktemp -d "${TMPDIR:-/tmp}/stockproof-image.XXXXXX")
	rootfs=$work/rootfs
	say "debootstrap $suite with redis-server and postgresql (a few minutes)"
	debootstrap --variant=minbase --include=redis-server,postgresql "$suite" "$rootfs" ${mirror:+"$mirror"} >"$work/log" 2>&1 ||
		{ tail -n 20 "$work/log" >&2; die "debootstrap failed"; }
fi
[[ -x $rootfs/usr/bin/redis-server ]] || die "$rootfs holds no redis-server"
compgen -G "$rootfs/usr/lib/postgresql/*/bin/postgres" >/dev/null || die "$rootfs holds no postgres"

# Documentation, package lists and the cluster the Debian package made are of no
# use here; the cluster would carry a key that every copy of the image shares.
say "importing as $image"
tar -C "$rootfs" --numeric-owner -c \
	--exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' --exclude='./tmp/*' --exclude='./run/*' \
	--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/info/*' --exclude='./usr/share/locale/*' \
	--exclude='./var/lib/apt/lists/*' --exclude='./var/cache/*' --exclude='./var/log/*' \
	--exclude='./var/lib/postgresql/*/main' --exclude='./etc/postgresql/*/main' --exclude='./etc/ssl/private/*' . |
	docker import \
		--change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
		--change 'LABEL stockproof.image=local' \
		--message "Debian $suite with redis-server and postgresql" \
		- "$image" >/dev/null

new=$(docker image inspect --format '{{.Id}}' "$image")
if [[ -n $old && $old != "$new" ]]; then
	# Not fatal: a container that is still running may hold the old image.
	docker image rm "$old" >/dev/null 2>&1 || say "the earlier image $old is still in use and was left"
fi
say "done: $(docker image inspect --format '{{.Size}}' "$image" | awk '{printf "%.0f MB", $1/1e6}')"
