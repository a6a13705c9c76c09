#!/usr/bin/env bash
# Take the README's picture of the report: explore everything, and photograph the
# first screen in headless Chromium. Below 300 kB.
set -euo pipefail
cd "$(dirname "$0")/.."

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	{ echo "picture: no Chromium; scripts/setup.sh installs it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

evidence=${1:-$work}
[[ $# -gt 0 ]] || bin/stockproof verify --out "$work" >/dev/null
bin/stockproof report "$evidence/evidence.json" --out "$work/report.html"
options=(--headless=new --disable-gpu --hide-scrollbars "--user-data-dir=$work/profile" --window-size=1280,1000 --lang=en)
[[ $(id -u) != 0 ]] || options+=(--no-sandbox)
"$browser" "${options[@]}" --virtual-time-budget=5000 --screenshot="$work/report.png" "file://$work/report.html" 2>/dev/null >&2
size=$(stat -c %s "$work/report.png")
((size < 300000)) || { echo "picture: $size bytes, more than 300 kB" >&2; exit 1; }
cp "$work/report.png" docs/report.png
echo "picture: docs/report.png, $size bytes"
