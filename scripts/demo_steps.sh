# The steps of ./demo and docker/demo.  They use variables: primaries, seconds, clients, scale, dsn[K], work, background;
# and functions: kill_primary K, every process of it at once, as a power cut would; start_primary K, which returns when it
# serves.

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

# load SCRIPT K SECONDS [RUN]: the unmodified built-in script of pgbench on primary K, with progress.  Each transaction of
# tpcb-like that was acknowledged is a line in pgbench's log.
load() {
  local script=$1 k=$2 time=$3 out=$work/$1.$2.out${4-} log=()
  [[ $script != tpcb-like ]] || log=(--log --log-prefix "$work/$script.$k.log${4-}")
  set -o pipefail
  PGAPPNAME="primary $k" pgbench -n -b "$script" -T "$time" -c "$clients" -j 1 -P 5 "${log[@]}" "${dsn[$k]}" 2>&1 |
    tee "$out" | sed -u -n "s/^progress: /  primary $k: /p; s/^pgbench: error: /  primary $k: /p"
}

# run_everywhere SCRIPT [VICTIM]: the load on all primaries at once.  Primary VICTIM dies and comes back meanwhile.
run_everywhere() {
  local script=$1 victim=${2-} k failed=0 pids=()
  for ((k = 1; k <= primaries; k++)); do
    counters "$k" >"$work/$script.$k.before"
    load "$script" "$k" "$seconds" &
    pids[k]=$!
  done
  background+=("${pids[@]}")
  if [[ -n $victim ]]; then
    local ends=$((SECONDS + seconds))
    sleep "$(awk -v s="$seconds" 'BEGIN { print s * 0.3 }')"
    kill_primary "$victim"
    ! wait "${pids[$victim]}" || die "pgbench on primary $victim had ended before its server was killed"
    start_primary "$victim"
    echo "  primary $victim is back; a second pgbench goes on there"
    counters "$victim" >"$work/$script.$victim.before"
    load "$script" "$victim" $((ends - SECONDS > 2 ? ends - SECONDS : 2)) .again &
    pids[victim]=$!
    background+=("$!")
  fi
  for k in "${!pids[@]}"; do wait "${pids[$k]}" || failed=1; done
  for ((k = 1; k <= primaries; k++)); do counters "$k" >"$work/$script.$k.after"; done
  if [[ $failed -ne 0 ]]; then
    tail -n 15 "$work/$script".*.out*
    die "pgbench failed"
  fi
}

# acknowledged K: how many transactions of tpcb-like its clients were told to be committed, their latency in ms on average,
# and the longest time in ms between two of them.
acknowledged() {
  cat "$work/tpcb-like.$1.log".* | sort -n -k 5,5 -k 6,6 | awk '
    $3 != "failed" {
      now = $5 * 1e3 + $6 / 1e3
      if (n++ && now - last > pause) pause = now - last
      last = now; latency += $3 / 1e3
    }
    END { printf "%d %.2f %.0f\n", n, n ? latency / n : 0, pause }'
}

# value FILE NAME: a counter, 0 when it is not there.
value() { sed -n "s/^$2=//p" "$1" | grep -E '^[0-9]+$' || echo 0; }
grown() { echo $(($(value "$work/$1.$2.after" "$3") - $(value "$work/$1.$2.before" "$3"))); }

table() {
  local script=$1 k out tps latency hits misses ratio n pause sum=0
  echo
  printf '%8s %8s %10s %14s %7s %11s %11s %11s %10s\n' primary tps 'latency ms' 'longest pause' 'hits %' 'round trips' \
    'inval. sent' 'inval. recd' forwarded
  for ((k = 1; k <= primaries; k++)); do
    out=$work/$script.$k.out pause=-
    tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$out")
    latency=$(sed -n 's/^latency average = \([0-9.]*\).*/\1/p' "$out")
    if [[ $script == tpcb-like ]]; then
      read -r n latency pause < <(acknowledged "$k")
      pause="$pause ms"
      tps=$(awk -v n="$n" -v s="$seconds" 'BEGIN { print n / s }')
    fi
    hits=$(grown "$script" "$k" cache_hits) misses=$(grown "$script" "$k" cache_misses)
    ratio=$(awk -v h="$hits" -v m="$misses" 'BEGIN { if (h + m > 0) printf "%.2f", 100 * h / (h + m); else print "-" }')
    printf '%8s %8.0f %10.2f %14s %7s %11s %11s %11s %10s\n' "$k" "$tps" "$latency" "$pause" "$ratio" \
      "$(grown "$script" "$k" round_trips)" "$(grown "$script" "$k" invalidations_sent)" \
      "$(grown "$script" "$k" invalidations_received)" "$(grown "$script" "$k" pages_forwarded)"
    sum=$(awk -v a="$sum" -v b="$tps" 'BEGIN { print a + b }')
  done
  printf '%8s %8.0f\n' all "$sum"
}

# proof [VICTIM]: what pgbench's clients were told is in history, and no more than they had under way when VICTIM died.
proof() {
  local victim=${1-} k n rest rows in_flight answer first='' sums all=0
  for ((k = 1; k <= primaries; k++)); do
    read -r n rest < <(acknowledged "$k")
    in_flight=$([[ $k == "$victim" ]] && echo "$clients" || echo 0)
    rows=$(ask 1 "SELECT count(*) FROM pgbench_history WHERE filler = 'primary $k'")
    echo "  primary $k: $n acknowledged <= $rows in history <= $n + $in_flight in flight"
    [[ $n -gt 0 && $n -le $rows && $rows -le $((n + in_flight)) ]] || die "history is not what was committed on primary $k"
    all=$((all + rows))
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
    [[ $rows == "$all" ]] || die "history has $all rows of the primaries, but primary $k has $rows"
    [[ -z $first || $answer == "$first" ]] || die "primary $k gives another answer than primary 1"
    first=$answer
  done
  echo "  Acknowledged are the transactions in pgbench's logs: their clients were told that they are committed."
  [[ -z $victim ]] || echo "  In flight is at most one for each of the $clients clients whose server was killed."
  echo "  History has them all, the four sums agree, and all $primaries primaries give the same answer."
}

# show_load: the load on all primaries, one of which dies meanwhile, and the proof.
show_load() {
  say "pgbench -i -s $scale on primary 1, with gcl tables"
  PGOPTIONS='-c default_table_access_method=gcl' pgbench -i -q -s "$scale" "${dsn[1]}" 2>&1 | tail -n 3
  # Each row of history says which primary wrote it: pgbench leaves this column to its default.
  ask 1 "ALTER TABLE pgbench_history ALTER filler SET DEFAULT current_setting('application_name')"

  local victim=''  # the primary that dies; one alone has no others that go on
  [[ $primaries -eq 1 ]] || victim=$primaries
  say "tpcb-like on all $primaries primaries at the same time, $seconds s, $clients clients each"
  [[ -z $victim ]] || echo "  primary $victim is killed meanwhile, and comes back"
  run_everywhere tpcb-like "$victim"
  table tpcb-like
  [[ -z $victim ]] || echo "  tps: of all $seconds s; hits and the columns after it, of primary $victim: since it is back"
  say "select-only on all $primaries primaries at the same time, $seconds s, $clients clients each"
  run_everywhere select-only
  table select-only
  say "Proof"
  proof "$victim"
}
