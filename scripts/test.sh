#!/usr/bin/env bash
# Run the tests on every backend this machine has: all packages on the first one, and
# on the others only the packages whose tests start servers, so that nothing is
# tested twice. Full output goes to out/test-<backend>.log.
#
# STOCKPROOF_BACKEND=container|process   only that backend
# STOCKPROOF_REQUIRE=container,process   fail when one of these is missing
# STOCKPROOF_LIVE=off                    leave live tests out
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'test: %s\n' "$*" >&2; }

mkdir -p out
rm -f out/test-*.log
backends=$(go run ./live/backends)
[[ -n $backends ]] || { say "live tests are left out"; backends=none; }

live_packages() {
	{
		go list ./live/servers
		go list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}}{{end}}' ./... |
			awk '{for (i = 2; i <= NF; i++) if ($i == "stockproof/live/servers") {print $1; next}}'
	} | sort -u | grep -vE "$own"
}

# These start processes of their own, whatever the backend is, or no server at all.
own='^stockproof/(explore|engines|evidence)(/|$)'

# What has nothing to do with the servers is not repeated on a second backend.
serverless='^(TestExplore|TestTheTablesOfWhatWeRecommend.*|TestTheDocs.*|TestABrokenSchemeIsConvictedForAnyNumber.*|TestThePage.*|TestTheREADME.*|TestEvery.*README.*|TestAServerThatDies.*|TestASubjectThatMisbehaves.*|TestSubjectCheck.*)$'

status=0
packages=./...
skip='^$'
for backend in $backends; do
	log=out/test-$backend.log
	say "backend $backend: $(wc -w <<<"$packages" | tr -d ' ') package pattern(s), full output in $log"
	[[ $backend == none ]] || export STOCKPROOF_BACKEND=$backend
	# -count=1: a cached result says nothing about the servers of this run.
	# shellcheck disable=SC2086 # a list of packages
	if ! go test -count=1 -v -timeout 30m -skip "$skip" $packages 2>&1 | tee "$log" |
		{ grep --line-buffered -E '^(ok|FAIL|panic:|stockproof:)|--- (FAIL|SKIP):' || true; }; then
		status=1
		say "failures on backend $backend, with what they said:"
		grep -E -B 40 -- '--- FAIL:|^panic:|^FAIL' "$log" >&2 || true
	fi
	packages=$(live_packages)
	skip=$serverless
done
exit "$status"
