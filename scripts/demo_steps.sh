# The steps of ./demo.  They use its variables: primaries, seconds, clients, scale, dsn[K], work, background.

ask() { psql -X -A -t -q -v ON_ERROR_STOP=1 -d "${dsn[$1]}" -c "$2"; }

# show K SQL: as a person at psql on primary K would see it.
show() {
  local k=$1
  shift
  printf '\033[1mprimary %s=#\033[0m %s\n' "$k" "$1"
  psql -X -d "${dsn[$k]}" -P footer=off -c "$1" 2>&1 | sed -e 's/^/    /' -e '/^ *$/d'
}

transcript() {
  local two=$((primaries >= 2 ? 2 : 1)) three=$((primaries >= 3 ? 3 : 1))
  show 1 "CREATE EXTENSION gcl"
  show 1 "CREATE TABLE notes (id int PRIMARY KEY, body text) USING gcl"
  show 1 "INSERT INTO notes VALUES (1, 'written on primary 1')"
  show $two "SELECT * FROM notes"
  printf '\033[1mprimary %s=#\033[0m BEGIN; SELECT * FROM notes FOR UPDATE;   -- holds the row\n' "$three"
  local commands holder
  exec {commands}> >(exec psql -X -q -v ON_ERROR_STOP=1 -d "${dsn[$three]}" >"$work/holder")
  holder=$!
  background+=("$holder")
  printf '%s\n' 'BEGIN;' 'SELECT * FROM notes FOR UPDATE;' '\echo it is locked' >&"$commands"
  until grep -q 'it is locked' "$work/holder"; do
    kill -0 "$holder" 2>/dev/null || die "primary $three did not lock the row"
    sleep 0.1
  done
  printf '\033[1mprimary 1=#\033[0m SET lock_timeout = 300; UPDATE notes SET body = body || %s\n' "', and again'"
  local refused
  refused=$(PGOPTIONS='-c lock_timeout=300' psql -X -d "${dsn[1]}" \
    -c "UPDATE notes SET body = body || ', and again'" 2>&1) && die "the row was not locked: $refused"
  sed 's/^/    /' <<<"$refused"
  grep -q 'lock timeout' <<<"$refused" || die "that is not a lock timeout"
  { sleep 1; echo 'COMMIT;' >&"$commands"; } &
  show 1 "UPDATE notes SET body = body || ', updated on 1 once $three had committed'"
  exec {commands}>&-
  wait "$holder"
  show $two "SELECT * FROM notes"
  [[ $(ask $two "SELECT count(*) FROM notes WHERE body LIKE '%updated on 1%'") == 1 ]] || die "the update is not seen"
}

# Counters of primary K as "name=value" lines.
counters() {
  ask "$1" "SELECT key || '=' || value FROM gcl_stat_node AS s, jsonb_each_text(to_jsonb(s))" 2>/dev/null || true
}

# run_everywhere SCRIPT: the unmodified built-in script of pgbench on all primaries at once, with progress.
run_everywhere() {
  local script=$1 k failed=0 pids=()
  for ((k = 1; k <= primaries; k++)); do
    counters "$k" >"$work/$script.$k.before"
    (set -o pipefail
     pgbench -n -b "$script" -T "$seconds" -c "$clients" -j 1 -P 5 "${dsn[$k]}" 2>&1 | tee "$work/$script.$k.out" |
       sed -u -n "s/^progress: /  primary $k: /p; s/^pgbench: error/  primary $k: error/p") &
    pids+=($!)
  done
  background+=("${pids[@]}")
  for k in "${!pids[@]}"; do wait "${pids[$k]}" || failed=1; done
  for ((k = 1; k <= primaries; k++)); do counters "$k" >"$work/$script.$k.after"; done
  if [[ $failed -ne 0 ]]; then
    tail -n 15 "$work/$script".*.out
    die "pgbench failed"
  fi
}

# value FILE NAME: a counter, 0 when it is not there.
value() { sed -n "s/^$2=//p" "$1" | grep -E '^[0-9]+$' || echo 0; }
grown() { echo $(($(value "$work/$1.$2.after" "$3") - $(value "$work/$1.$2.before" "$3"))); }

table() {
  local script=$1 k out tps latency hits misses ratio sum=0
  echo
  printf '%8s %10s %10s %8s %12s %12s %12s %12s\n' primary tps 'latency ms' 'hits %' 'round trips' 'inval. sent' \
    'inval. recd' 'forwarded'
  for ((k = 1; k <= primaries; k++)); do
    out=$work/$script.$k.out
    tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$out")
    latency=$(sed -n 's/^latency average = \([0-9.]*\).*/\1/p' "$out")
    hits=$(grown "$script" "$k" cache_hits) misses=$(grown "$script" "$k" cache_misses)
    ratio=$(awk -v h="$hits" -v m="$misses" 'BEGIN { if (h + m > 0) printf "%.2f", 100 * h / (h + m); else print "-" }')
    printf '%8s %10.0f %10.2f %8s %12s %12s %12s %12s\n' "$k" "$tps" "$latency" "$ratio" \
      "$(grown "$script" "$k" round_trips)" "$(grown "$script" "$k" invalidations_sent)" \
      "$(grown "$script" "$k" invalidations_received)" "$(grown "$script" "$k" pages_forwarded)"
    sum=$(awk -v a="$sum" -v b="$tps" 'BEGIN { print a + b }')
  done
  printf '%8s %10.0f\n' all "$sum"
}

proof() {
  local k committed=0 n answer first='' sums
  for ((k = 1; k <= primaries; k++)); do
    n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$work/tpcb-like.$k.out")
    committed=$((committed + n))
  done
  for ((k = 1; k <= primaries; k++)); do
    sums=$(ask "$k" "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),
                            (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history),
                            (SELECT count(*) FROM pgbench_history)")
    answer="$sums|$(ask "$k" "SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts
                              WHERE abalance <> 0")"
    echo "  primary $k: accounts|tellers|branches|history|rows = $sums"
    IFS='|' read -r accounts tellers branches history rows <<<"$sums"
    [[ $accounts == "$tellers" && $accounts == "$branches" && $accounts == "$history" ]] ||
      die "the balances on primary $k do not agree"
    [[ $rows == "$committed" ]] || die "$committed transactions were committed, but primary $k has $rows rows of history"
    [[ -z $first || $answer == "$first" ]] || die "primary $k gives another answer than primary 1"
    first=$answer
  done
  echo "  The four sums agree, history has one row for each of $committed committed transactions, and all $primaries primaries"
  echo "  give the same answer."
}
