// pgbench's tpcb-like transaction, as the engine sees it: the same rows, byte for byte as PostgreSQL lays them out, the
// same indexes, the same order.
#pragma once

#include <cstring>
#include <random>

#include "extension/engine/blink/build.hpp"
#include "extension/engine/blink/scan.hpp"
#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

// Keys are numbers behind the eight bytes the tree does not look at.
class Numbers final : public blink::Comparator {
 public:
  int compare(const void* search, std::span<const std::byte> key) override {
    uint64_t wanted, found;
    memcpy(&wanted, search, 8), memcpy(&found, key.data() + 8, 8);
    return wanted < found ? -1 : wanted > found;
  }
  uint32_t shorten(std::span<const std::byte> left, std::span<const std::byte> right, std::byte* to) override {
    if (memcmp(left.data() + 8, right.data() + 8, 8) == 0) return 0;
    memcpy(to, right.data(), 16);
    return 16;
  }
};

// A table of rows with a number as their key and a balance, and the index of its key.
class KeyedTable {
 public:
  // A row's body: a byte of padding or null bitmap; 4-byte numbers, the key first and the balance last; the filler.
  struct Form {
    uint32_t numbers;
    uint32_t filler;
    bool has_null;
    uint16_t attributes;
  };
  KeyedTable(Worker& worker, BufferPool& pool, Form form, uint32_t rows)
      : worker_(worker),
        form_(form),
        heap_(worker.txns(), *Heap::create(worker.txns())),
        tree_(*blink::Tree::open(pool, worker.session(), *blink::Tree::create(pool, worker.session()))) {
    auto builder = std::make_unique<blink::Builder>(tree_, worker.session(), numbers_);
    for (uint32_t key = 0; key < rows; ++key) {
      std::vector<std::byte> body(1 + form.numbers * 4 + form.filler, std::byte{' '});
      std::memset(body.data(), form.has_null ? 3 : 0, 1 + form.numbers * 4);
      std::memcpy(body.data() + 1, &key, sizeof key);
      EXPECT_TRUE(builder->add(entry(key), *heap_.insert(image(body), 0)).ok());
    }
    EXPECT_TRUE(builder->finish().ok());
    worker.commit();
  }
  // UPDATE ... SET balance = balance + delta WHERE key = ...
  void add(uint64_t key, int32_t delta, uint32_t command, const Snapshot& now) {
    const RowRead found = find(key, now);
    std::vector<std::byte> body(buffer_.bytes + kRowHeaderBytes, buffer_.bytes + found.bytes);
    std::byte* const balance = body.data() + 1 + (form_.numbers - 1) * 4;
    int32_t value;
    std::memcpy(&value, balance, sizeof value);
    value += delta;
    std::memcpy(balance, &value, sizeof value);
    const auto done =
        heap_.update({.tid = found.tid, .row = image(body), .command = command, .indexed_changed = false});
    ASSERT_TRUE(done.ok() && done->row.result == RowResult::kOk);
    if (done->chained) return;
    ++moved_;
    ASSERT_TRUE(tree_.insert(worker_.session(), numbers_, &key, entry(key), done->tid).ok());
  }
  // SELECT ... WHERE key = ...
  RowRead find(uint64_t key, const Snapshot& now) {
    scan_->reset({.low = {&key, true, true}, .high = {&key, true, true}});
    blink::Entry entry;
    for (auto more = scan_->next(entry); more && *more; more = scan_->next(entry))
      if (const auto row = heap_.fetch_chain(entry.tid, now, buffer_.bytes); row && row->found) return *row;
    ADD_FAILURE() << "no row with key " << key;
    return {};
  }
  uint64_t moved() const { return moved_; }  // updates that entered the index

 private:
  RowImage image(const std::vector<std::byte>& body) const {
    return {body.data(), uint32_t(body.size()), form_.attributes, form_.has_null};
  }
  std::span<const std::byte> entry(uint64_t key) {
    std::memcpy(entry_ + 8, &key, sizeof key);
    return entry_;
  }

  Worker& worker_;
  Form form_;
  Heap heap_;
  blink::Tree tree_;
  Numbers numbers_;
  std::unique_ptr<blink::Scan> scan_ = std::make_unique<blink::Scan>(tree_, worker_.session(), numbers_);
  RowBuffer buffer_;
  uint64_t moved_ = 0;
  std::byte entry_[16] = {};
};

class TpcbLike {
 public:
  TpcbLike(Worker& worker, BufferPool& pool, uint32_t branches, uint32_t accounts_each)
      : worker_(worker),
        accounts_count_(branches * accounts_each),
        branches_count_(branches),
        accounts_(worker, pool, {3, 85, false, 4}, accounts_count_),
        tellers_(worker, pool, {3, 0, true, 4}, branches * 10),
        branches_(worker, pool, {2, 0, true, 3}, branches),
        history_(worker.txns(), *Heap::create(worker.txns())) {}

  enum class Step : uint8_t { kAccount, kSelect, kTeller, kBranch, kHistory, kCommit, kCount };
  static constexpr const char* kSteps[] = {"UPDATE account", "SELECT account", "UPDATE teller",
                                           "UPDATE branch",  "INSERT history", "COMMIT"};
  void transaction() {
    transaction([](Step) {});
  }
  // `done`: called after each step.
  template <class Done>
  void transaction(const Done& done) {
    const uint32_t account = uint32_t(random_() % accounts_count_),
                   teller = uint32_t(random_() % (branches_count_ * 10)),
                   branch = uint32_t(random_() % branches_count_);
    const auto delta = int32_t(random_() % 10001) - 5000;
    accounts_.add(account, delta, 0, worker_.snapshot(0, coherence::Intent::kWrite));
    done(Step::kAccount);
    accounts_.find(account, worker_.snapshot(1));
    done(Step::kSelect);
    tellers_.add(teller, delta, 1, worker_.snapshot(1));
    done(Step::kTeller);
    branches_.add(branch, delta, 2, worker_.snapshot(2));
    done(Step::kBranch);
    struct [[gnu::packed]] {
      uint8_t nulls = 31;
      uint32_t teller, branch, account;
      int32_t delta;
      uint64_t time;
    } row{.teller = teller,
          .branch = branch,
          .account = account,
          .delta = delta,
          .time = 817'000'000'000'000 + 1'000'007 * done_++};
    EXPECT_TRUE(heap_insert({reinterpret_cast<const std::byte*>(&row), sizeof row, 6, true}));
    done(Step::kHistory);
    worker_.commit();
    done(Step::kCommit);
  }
  uint64_t accounts_moved() const { return accounts_.moved(); }

 private:
  bool heap_insert(const RowImage& row) { return history_.insert(row, 3).ok(); }

  Worker& worker_;
  uint32_t accounts_count_, branches_count_;
  KeyedTable accounts_, tellers_, branches_;
  Heap history_;
  std::mt19937 random_{1};
  uint64_t done_ = 0;
};

}  // namespace engine_test
