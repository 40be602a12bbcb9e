#!/bin/bash
# A regular expression of the tests that see what differs from main, the quickest of them: what `./check quick` runs.  On main
# itself, with nothing changed: of what has been committed last.  Empty: there are none.
set -euo pipefail
cd "$(dirname "$0")/.."

tests_of() {
  case $1 in
    coherence/transport/tcp/*) echo 'test_(coherence|conformance|memnode)\.|fuzz\.' ;;
    coherence/*) echo 'test_(coherence|conformance|bufmgr)\.' ;;
    bufmgr/*) echo 'test_(bufmgr|recovery|replacement)\.' ;;
    recovery/*) echo 'test_(recovery|engine)\.' ;;
    extension/engine/*) echo 'test_engine\.' ;;
    extension/pg/* | sql/*) echo 'cluster\.(sql|views)$' ;;
    tests/cluster/*_test.py) echo "cluster\\.$(basename "$1" _test.py)\$" ;;
    tests/cluster/ddl_kinds.py) echo 'cluster\.ddl_kinds$' ;;
    tests/cluster/*.py) echo 'cluster\.(sql|views)$' ;;
    tests/unit/*) echo "test_$(cut -d/ -f3 <<<"$1")\\." ;;
    tests/conformance/* | tests/replacement/* | tests/sim/*) echo "test_$(cut -d/ -f2 <<<"$1")\\." ;;
    tests/fuzz/*) echo 'fuzz\.' ;;
    tests/model/*) echo 'test_model' ;;
    tests/isolation/* | tests/regress/*) echo "$(cut -d/ -f2 <<<"$1")" ;;
    tests/isolation_suite/* | tests/accepted/* | scripts/fetch_isolation_suite.sh) echo 'isolation_suite' ;;
    tests/memnode/* | tools/memnode/*) echo 'test_memnode\.' ;;
    tests/fuzz/*) echo 'fuzz\.' ;;
    tests/scripts/*) echo 'scripts\.' ;;
    tools/* | scripts/* | check | demo | docker/*) echo 'scripts\.' ;;
    debian/* | META.json | tests/packages/*) echo 'packages\.' ;;
    bench/*) echo 'bench\.' ;;
  esac
}

base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
[[ $base != $(git rev-parse HEAD) || -n $(git status --porcelain) ]] ||
  base=$(git rev-parse -q --verify HEAD~1 || echo HEAD)
{ git diff --name-only --no-renames "$base" && git ls-files --others --exclude-standard; } |
  while read -r file; do tests_of "$file"; done | sort -u | paste -sd'|'
