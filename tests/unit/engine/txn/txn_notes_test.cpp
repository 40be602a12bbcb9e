// What a node's log has of transactions tells of every id whether it committed, and which ids there are.
#include "extension/engine/txn/txn_notes.hpp"

#include <random>
#include <set>
#include <vector>

#include "bufmgr/log/log_sink.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/txn/leftovers_fixture.hpp"

namespace engine_test {
namespace {

using engine::TxnNote;

class TxnNotes : public ::testing::Test {
 protected:
  static constexpr int kNodes = 3;
  TxnNotes() : engine_({.cluster = {.nodes = kNodes, .keep_records = true}}) {}

  std::vector<TxnNote> notes(int node) {
    std::vector<TxnNote> all;
    for (const auto& bytes : engine_.cluster().log(node).notes()) {
      auto note = engine::read_note(bytes);
      EXPECT_TRUE(note.ok());
      if (note) all.push_back(note.take());
    }
    return all;
  }
  uint64_t reserved(int node) {
    uint64_t highest = 0;
    for (const TxnNote& note : notes(node)) highest = std::max(highest, note.reserved);
    return highest;
  }
  // Of a node, by the notes of transactions that the host has committed.
  std::set<uint64_t> committed(int node) {
    std::set<uint64_t> ids;
    for (const TxnNote& note : notes(node)) {
      if (note.kind == TxnNote::kCommits && host_.contains(note.host_xid))
        ids.insert(note.sequences.begin(), note.sequences.end());
    }
    return ids;
  }
  void begin(Worker& worker) {
    worker->set_host_xid(++xid_);
    write(worker);
  }
  void write(Worker& worker) {
    const auto id = worker->id_for_write();
    ASSERT_TRUE(id.ok());
    EXPECT_GE(reserved(id->node().value), id->sequence());  // txn.ids-noted-before-use
    used_.push_back(*id);
  }
  // As the host does it: its own record is there before anybody is told.
  void commit(Worker& worker) {
    ASSERT_TRUE(worker->prepare().ok());
    host_.insert(xid_);
    worker.commit();
  }
  void expect_notes_right() {
    Worker looks(engine_, 0);
    for (int node = 0; node < kNodes; ++node) {
      const auto noted = committed(node);
      for (const TxnId id : used_) {
        if (id.node().value != node) continue;
        const auto status = looks->status(id);
        ASSERT_TRUE(status.ok());
        EXPECT_EQ(noted.contains(id.sequence()), status->committed()) << "node " << node << ", " << id.sequence();
      }
      for (const uint64_t sequence : noted) EXPECT_LE(sequence, reserved(node));
    }
  }

  Engine engine_;
  uint32_t xid_ = 700;
  std::set<uint64_t> host_;  // its own numbers that it has committed
  std::vector<TxnId> used_;
};

TEST_F(TxnNotes, TellOfEveryIdWhetherItCommitted) {
  std::mt19937_64 random(gcl_test::seed(11));
  for (int i = 0; i < 300; ++i) {
    Worker worker(engine_, int(random() % kNodes));
    begin(worker);
    int level = 1;
    for (int steps = int(random() % 8); steps > 0; --steps) {
      switch (random() % 4) {
        case 0:
        case 1:
          ASSERT_TRUE(worker->sub_begin(++level).ok());
          write(worker);
          break;
        case 2:
          if (level > 1) worker->sub_commit(level--);
          break;
        default:
          if (level > 1) worker->sub_abort(level--);
      }
    }
    for (; level > 1; --level) worker->sub_commit(level);
    switch (random() % 4) {
      case 0:
        worker.abort();
        break;
      case 1:  // the host could not write its own record
        ASSERT_TRUE(worker->prepare().ok());
        worker.abort();
        break;
      default:
        commit(worker);
    }
  }
  expect_notes_right();
}

TEST_F(TxnNotes, ATransactionWithManySavepointsHasSeveral) {
  Worker worker(engine_, 1);
  begin(worker);
  for (int i = 0; i < 3 * int(TxnNote::kIdsMax); ++i) {
    ASSERT_TRUE(worker->sub_begin(2).ok());
    write(worker);
    i % 5 == 0 ? worker->sub_abort(2) : worker->sub_commit(2);
  }
  commit(worker);
  expect_notes_right();
  EXPECT_EQ(std::ranges::count(notes(1), TxnNote::kCommits, &TxnNote::kind), 3);
}

// txn.savepoints-durable-first
TEST(TxnNotesDurable, BeforeATransactionWithSavepointsIsInDoubtItsIdsAreOnTheDisk) {
  Engine engine({.cluster = {.nodes = 1, .lazy_log = true}});
  gcl_test::MemoryLog& log = engine.cluster().log(0);
  for (const int savepoints : {0, 1, 3 * int(TxnNote::kIdsMax)}) {
    Worker worker(engine, 0);
    const TxnId top = *worker->id_for_write();
    for (int i = 0; i < savepoints; ++i) {
      ASSERT_TRUE(worker->sub_begin(2).ok());
      ASSERT_TRUE(worker->id_for_write().ok());
      worker->sub_commit(2);
    }
    int flushes = 0;
    log.set_on_flush([&] {
      ++flushes;
      EXPECT_EQ(state_of(worker, top), TxnState::kActive);
    });
    ASSERT_TRUE(worker->prepare(700).ok());
    EXPECT_EQ(flushes, savepoints == 0 ? 0 : 1);
    EXPECT_EQ(log.flushed() == log.end(), savepoints > 0);
    worker.abort();
  }
}

TEST(TxnNote, OtherBytesAreRefused) {
  struct Log final : bufmgr::LogSink {
    coherence::Lsn append(std::span<const std::byte>) override { return {}; }
    void note(std::span<const std::byte> note) override { bytes.assign(note.begin(), note.end()); }
    coherence::Lsn flushed() override { return {}; }
    void request_flush(coherence::Lsn) override {}
    uint64_t number_beside_note() override { return beside; }
    std::vector<std::byte> bytes;
    uint64_t beside = 0;
  } log;
  const uint64_t sequences[] = {5, 6, 1000};
  engine::note_commit(log, 9, sequences);
  EXPECT_TRUE(engine::read_note(log.bytes).ok());
  for (size_t cut = 0; cut < log.bytes.size(); ++cut)
    EXPECT_EQ(engine::read_note(std::span(log.bytes).first(cut)).error(), coherence::Errc::kCorrupt) << cut;
  auto longer = log.bytes, unknown = log.bytes;
  longer.push_back({});
  EXPECT_EQ(engine::read_note(longer).error(), coherence::Errc::kCorrupt);
  unknown[0] = std::byte{99};
  EXPECT_EQ(engine::read_note(unknown).error(), coherence::Errc::kIncompatible);

  // Of one id whose host's number is beside the note, only the id is in it.
  const uint64_t one[] = {uint64_t{1} << 34};
  log.beside = 8;
  engine::note_commit(log, 9, one);
  EXPECT_EQ(engine::read_note(log.bytes, 8)->host_xid, 9u) << "another one is beside it";
  log.beside = 9;
  engine::note_commit(log, 9, one);
  EXPECT_EQ(log.bytes.size(), 6u);
  const auto read = engine::read_note(log.bytes, 9);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->kind, TxnNote::kCommits);
  EXPECT_EQ(read->host_xid, 9u);
  EXPECT_EQ(read->sequences, std::vector<uint64_t>{one[0]});
  EXPECT_EQ(engine::read_note(log.bytes).error(), coherence::Errc::kCorrupt) << "nothing is beside it";
  for (size_t cut = 0; cut < log.bytes.size(); ++cut)
    EXPECT_EQ(engine::read_note(std::span(log.bytes).first(cut), 9).error(), coherence::Errc::kCorrupt) << cut;
  engine::note_commit(log, 9, sequences);
  EXPECT_EQ(engine::read_note(log.bytes, 9)->sequences.size(), 3u) << "of several all are said";
}

}  // namespace
}  // namespace engine_test
