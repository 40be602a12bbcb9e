// What a transaction of pgbench logs, counted.
#include "tests/unit/engine/tpcb_like.hpp"

namespace engine_test {

namespace {

// Of a record in PostgreSQL's WAL: its header, that of its data, and what aligns the next one.
uint64_t in_wal(uint64_t bytes) { return (24 + (bytes < 256 ? 2 : 5) + bytes + 7) / 8 * 8; }
constexpr uint64_t kCommitRecord = 40, kCommitNote = 32;  // the server's own, and ours (txn.commit-noted-before-host)

}  // namespace

// Where the accounts' pages are full, so that new versions go to other pages and enter the index, and where they have
// room that earlier versions left.
TEST(RedoBudget, ATransactionOfPgbench) {
  Engine engine({.cluster = {.nodes = 1, .frames = 8192, .pool_bytes = 128 << 20, .keep_records = true}});
  Worker worker(engine, 0);
  TpcbLike bank(worker, engine.cluster().pool(0), 10, 4000);
  size_t seen = engine.cluster().log(0).records().size();
  const auto logged = [&](uint64_t transactions) {
    const uint64_t moved = bank.accounts_moved();
    for (uint64_t i = 0; i < transactions; ++i) bank.transaction();
    const auto records = engine.cluster().log(0).records();
    uint64_t redo = 0, wal = (kCommitRecord + kCommitNote) * transactions;
    const size_t count = records.size() - seen;
    for (; seen < records.size(); ++seen) {
      redo += records[seen].size();
      wal += in_wal(records[seen].size());
    }
    printf("a transaction: %.2f records of redo, %lu bytes, in PostgreSQL's WAL %lu; %.2f accounts moved\n",
           double(count) / double(transactions), redo / transactions, wal / transactions,
           double(bank.accounts_moved() - moved) / double(transactions));
    return wal / transactions;
  };
  EXPECT_LE(logged(500), 500u);
  (void)logged(4000);
  EXPECT_LE(logged(2000), 450u);
}

}  // namespace engine_test
