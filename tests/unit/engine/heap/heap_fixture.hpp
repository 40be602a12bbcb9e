// One table on two nodes, and a session on each.
#pragma once

#include "tests/unit/engine/engine_fixture.hpp"

namespace engine_test {

class HeapTest : public ::testing::Test {
 protected:
  HeapTest() : engine_({.cluster = {.nodes = 2}}), a_(engine_, 0), b_(engine_, 1) {
    auto made = Heap::create(*a_.operator->());
    EXPECT_TRUE(made.ok());
    relation_ = *made;
    heap_a_ = std::make_unique<Heap>(a_.txns(), relation_);
    heap_b_ = std::make_unique<Heap>(b_.txns(), relation_);
  }
  Tid insert(const std::string& text, uint32_t command = 0) {
    auto tid = heap_a_->insert(TestRow(text).image(), command);
    EXPECT_TRUE(tid.ok());
    return tid ? *tid : Tid{};
  }
  Tid committed(const std::string& text) {
    Tid tid = insert(text);
    a_.commit();
    return tid;
  }
  // The text the snapshot sees at exactly tid, or "-".
  std::string at(Heap& heap, Tid tid, const Snapshot& snapshot) {
    auto read = heap.fetch(tid, snapshot, buffer_.bytes);
    EXPECT_TRUE(read.ok());
    return read && read->found ? buffer_.text(read->bytes) : "-";
  }
  std::string chain(Heap& heap, Tid root, const Snapshot& snapshot) {
    auto read = heap.fetch_chain(root, snapshot, buffer_.bytes);
    EXPECT_TRUE(read.ok());
    return read && read->found ? buffer_.text(read->bytes) : "-";
  }
  UpdateOutcome update(Heap& heap, Tid tid, const std::string& text, uint32_t command, bool indexed = false,
                       bool wait = true) {
    TestRow row(text);
    auto done =
        heap.update({.tid = tid, .row = row.image(), .command = command, .indexed_changed = indexed, .wait = wait});
    EXPECT_TRUE(done.ok());
    return done ? *done : UpdateOutcome{};
  }

  Engine engine_;
  Worker a_, b_;
  RelationId relation_;
  std::unique_ptr<Heap> heap_a_, heap_b_;
  RowBuffer buffer_;
};

}  // namespace engine_test
