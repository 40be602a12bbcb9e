#!/bin/bash
# A regular expression of the tests that see what differs from main, the quickest of them: what `./check quick` runs.  On main
# itself, with nothing changed: of what has been committed last.  Empty: there are none.
set -euo pipefail
cd "$(dirname "$0")/.."

# Lines of alternatives, few of which have parentheses: an expression of ctest's has nine pairs at most.
tests_of() {
  case $1 in
    coherence/transport/tcp/*) echo 'test_(coherence|conformance|memnode)\.|fuzz\.' ;;
    coherence/transport/verbs/*) echo 'test_coherence\.Verbs|rdma\.' ;;
    coherence/latch/* | coherence/line/* | coherence/message/* | coherence/session*)
      echo 'test_(coherence|conformance|bufmgr)\.'
      printf '%s\n' 'test_model\.few' 'test_sim\.Sim/Seeds\..*/[01]' 'test_sim\.Sim/SurvivorSeeds\..*/[01]' ;;
    coherence/*) echo 'test_(coherence|conformance|bufmgr)\.' ;;
    bufmgr/*) echo 'test_(bufmgr|recovery|replacement)\.' ;;
    recovery/*)
      echo 'test_(recovery|engine)\.'
      printf '%s\n' 'test_sim\.Sim/SurvivorSeeds\..*/[01]' 'test_sim\.Sim/PoolSurvivorSeeds\..*/[01]' ;;
    extension/engine/*) echo 'test_engine\.' ;;
    extension/pg/* | sql/*) echo 'cluster\.(sql|views)$' ;;
    tests/cluster/*_test.py) echo "cluster\\.$(basename "$1" _test.py)\$" ;;
    tests/cluster/ddl_kinds.py) echo 'cluster\.ddl_kinds$' ;;
    tests/cluster/*.py) echo 'cluster\.(sql|views)$' ;;
    tests/unit/*) echo "test_$(cut -d/ -f3 <<<"$1")\\." ;;
    tests/conformance/* | tests/replacement/* | tests/sim/*) echo "test_$(cut -d/ -f2 <<<"$1")\\." ;;
    tests/fuzz/*) echo 'fuzz\.' ;;
    tests/model/serializable/*) echo 'test_serializable_model\.' ;;
    tests/model/*) echo 'test_model' ;;
    tests/power/*) echo 'cluster\.power_loss$' ;;
    tests/support/hooked_transport.hpp) echo 'test_engine\.' ;;
    tests/support/*)
      echo 'test_(coherence|conformance|bufmgr)\.'
      printf '%s\n' 'test_recovery\.' 'test_memnode\.' 'test_sim\.Sim/Seeds\..*/[01]' ;;
    tests/histories/*) echo 'histories' ;;
    tests/isolation/* | tests/regress/*) echo "$(cut -d/ -f2 <<<"$1")" ;;
    tests/isolation_suite/* | tests/accepted/* | scripts/fetch_isolation_suite.sh) echo 'isolation_suite' ;;
    tests/memnode/* | tools/memnode/*) echo 'test_memnode\.' ;;
    tests/rdma/* | scripts/fetch_guest_kernel.sh) echo 'rdma\.' ;;
    tests/scripts/*) echo 'scripts\.' ;;
    tools/* | scripts/* | check | demo | docker/* | tests/docker/*) echo 'scripts\.' ;;
    debian/* | META.json | tests/packages/*) echo 'packages\.' ;;
    bench/*) echo 'bench\.' ;;
    cmake/* | CMakeLists.txt | CMakePresets.json | tests/CMakeLists.txt)
      printf '%s\n' 'example\.' 'test_bufmgr\.' 'test_memnode\.' 'cluster\.sql$' ;;
  esac
}

base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
[[ $base != $(git rev-parse HEAD) || -n $(git status --porcelain) ]] ||
  base=$(git rev-parse -q --verify HEAD~1 || echo HEAD)
{ git diff --name-only --no-renames "$base" && git ls-files --others --exclude-standard; } |
  while read -r file; do tests_of "$file"; done | sort -u | paste -sd'|'
