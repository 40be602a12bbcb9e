#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "bufmgr/mini_transaction.hpp"
#include "tests/unit/engine/ddl/ddl_node.hpp"

namespace {

using engine::DdlLog;
using engine::DdlLogEntry;
using gcl_test::Node;

std::vector<std::byte> bytes_of(size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 31 + size_t(seed));
  return bytes;
}

TEST(DdlLog, WhatOneNodeAppendsAnotherReads) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  DdlLogEntry entry;
  ASSERT_TRUE(b.log.first(&entry).ok());
  EXPECT_FALSE(entry.valid()) << "no log yet";

  const size_t sizes[] = {0, 1, 5000, 8192, 8100, 8088, 16176, 300000};
  int seed = 0;
  for (size_t size : sizes) {
    Node& coordinator = seed % 2 ? b : a;
    auto number = coordinator.log.append(bytes_of(size, seed), 100 + uint64_t(seed));
    ASSERT_TRUE(number.ok());
    EXPECT_EQ(*number, uint64_t(++seed));
  }
  for (Node* reader : {&a, &b}) {
    seed = 0;
    for (bool ok = reader->log.first(&entry).ok(); ok && entry.valid(); ok = reader->log.next(&entry).ok()) {
      EXPECT_EQ(entry.number, uint64_t(seed) + 1);
      EXPECT_EQ(entry.txn, 100 + uint64_t(seed));
      ASSERT_EQ(entry.bytes, sizes[seed]);
      std::vector<std::byte> copy(entry.bytes);
      ASSERT_TRUE(reader->log.read(entry, copy.data()).ok());
      EXPECT_EQ(copy, bytes_of(sizes[seed], seed));
      ++seed;
    }
    EXPECT_EQ(seed, int(std::size(sizes)));
  }
}

TEST(DdlLog, TwoNodesThatAppendAtOnceLoseNothing) {
  gcl_test::Cluster cluster({.nodes = 2});
  constexpr int kEach = 40;
  auto work = [&](int n) {
    Node node(cluster, n);
    for (int i = 0; i < kEach; ++i) {
      EXPECT_TRUE(node.log.append(bytes_of(size_t(i) * 97, n), uint64_t(n) << 32 | uint64_t(i)).ok());
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  Node node(cluster, 0);
  DdlLogEntry entry;
  uint64_t next[2] = {0, 0}, count = 0;
  for (bool ok = node.log.first(&entry).ok(); ok && entry.valid(); ok = node.log.next(&entry).ok()) {
    EXPECT_EQ(entry.number, ++count);
    EXPECT_EQ(entry.txn & 0xffffffff, next[entry.txn >> 32]++) << "each node's in its order";
  }
  EXPECT_EQ(count, 2u * kEach);
  EXPECT_EQ(node.channel.log_entries(), 2u * kEach);
}

// All known nodes have applied the log up to here.
coherence::Status remove_upto(Node& node, uint64_t number) {
  for (uint8_t n = 0; n < 2; ++n) node.channel.set_applied(coherence::NodeId{n}, engine::DdlApplied::upto(number));
  return node.log.remove_applied();
}

// Numbers of the entries that are left, in order.
std::vector<uint64_t> numbers_in(DdlLog& log) {
  std::vector<uint64_t> numbers;
  DdlLogEntry entry;
  for (bool ok = log.first(&entry).ok(); ok && entry.valid(); ok = log.next(&entry).ok())
    numbers.push_back(entry.number);
  return numbers;
}

engine::DdlLogExtent extent_of(DdlLog& log) {
  engine::DdlLogExtent extent;
  EXPECT_TRUE(log.extent(&extent).ok());
  return extent;
}

TEST(DdlLog, WhatIsRemovedGivesItsPagesBackAndTheNumbersGoOn) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  ASSERT_TRUE(remove_upto(a, 9).ok()) << "no log yet";
  ASSERT_TRUE(a.log.append({}, 1).ok());
  ASSERT_TRUE(remove_upto(a, 1).ok());
  const uint64_t free_before = *a.pool.free_pages(*a.session);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a.log.append(bytes_of(size_t(i) * 9000, i), 1).ok());
  EXPECT_EQ(numbers_in(b.log), (std::vector<uint64_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(extent_of(b.log).pages, 1u + 2 + 3 + 4 + 5);
  ASSERT_TRUE(remove_upto(b, 4).ok());
  EXPECT_EQ(numbers_in(a.log), (std::vector<uint64_t>{5, 6}));
  EXPECT_EQ(extent_of(a.log).removed, 4u);
  EXPECT_EQ(extent_of(a.log).pages, 4u + 5);
  DdlLogEntry entry;
  ASSERT_TRUE(a.log.first(&entry).ok());
  std::vector<std::byte> copy(entry.bytes);
  ASSERT_TRUE(a.log.read(entry, copy.data()).ok());
  EXPECT_EQ(copy, bytes_of(27000, 3));

  ASSERT_TRUE(remove_upto(b, 100).ok());
  EXPECT_TRUE(numbers_in(a.log).empty());
  EXPECT_EQ(extent_of(a.log).pages, 0u);
  EXPECT_EQ(*a.pool.free_pages(*a.session), free_before);
  EXPECT_EQ(*b.log.append(bytes_of(10, 7), 1), 7u);
  EXPECT_EQ(numbers_in(a.log), std::vector<uint64_t>{7});
}

TEST(DdlLog, AReaderOfWhatIsRemovedMeanwhileGoesOnBehindIt) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(a.log.append(bytes_of(20000, i), 1).ok());
  DdlLogEntry entry;
  ASSERT_TRUE(b.log.first(&entry).ok());
  ASSERT_TRUE(b.log.next(&entry).ok());
  ASSERT_EQ(entry.number, 2u);
  ASSERT_TRUE(remove_upto(a, 4).ok());
  for (int i = 0; i < 30; ++i) {  // the new owner of the pages writes to them
    auto page = a.pool.allocate(*a.session, 1, bufmgr::PageUse::kHousekeeping);
    ASSERT_TRUE(page.ok());
    bufmgr::MiniTransaction change(a.pool, *a.session);
    ASSERT_TRUE(change.reserve(2 * coherence::kPageSize).ok());
    auto guard = a.pool.fix_exclusive(*a.session, *page);
    ASSERT_TRUE(guard.ok());
    change.join(*guard);
    change.format(*guard, bufmgr::PageType::kHeap, 1);
    change.write(*guard, bufmgr::kPageBody, bytes_of(8000, i).data(), 8000);
    change.commit();
  }
  std::vector<std::byte> copy(entry.bytes);
  EXPECT_EQ(b.log.read(entry, copy.data()).error(), coherence::Errc::kNotFound);
  ASSERT_TRUE(b.log.next(&entry).ok());
  EXPECT_EQ(entry.number, 5u);
  ASSERT_TRUE(b.log.read(entry, copy.data()).ok());
  EXPECT_EQ(copy, bytes_of(20000, 4));
}

TEST(DdlLog, WhatOneKnownNodeLacksStays) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(a.log.append(bytes_of(10, i), 1).ok());
  ASSERT_TRUE(a.log.remove_applied().ok());
  EXPECT_EQ(numbers_in(b.log).size(), 4u) << "nobody is known";
  a.channel.set_applied(a.pool.node(), engine::DdlApplied::upto(4));
  b.channel.set_applied(b.pool.node(), engine::DdlApplied::upto(2));
  ASSERT_TRUE(a.log.remove_applied().ok());
  EXPECT_EQ(numbers_in(b.log), (std::vector<uint64_t>{3, 4}));
  a.channel.set_applied(b.pool.node(), engine::DdlApplied{});
  ASSERT_TRUE(b.log.remove_applied().ok());
  EXPECT_TRUE(numbers_in(b.log).empty()) << "b is forgotten";
}

// A node that becomes known reads the root afterwards, a remover reads behind its latch which nodes are known
// (ddl_log.known-node-first).
TEST(DdlLog, ANodeThatBecomesKnownAndARemoverDoNotMissEachOther) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  for (uint64_t round = 1; round <= 300; ++round) {
    ASSERT_TRUE(a.log.append(bytes_of(10, 1), 1).ok());
    a.channel.set_applied(a.pool.node(), engine::DdlApplied::upto(round));
    std::atomic<int> ready{0};
    bool kept = false;
    std::thread comer([&] {
      ++ready;
      while (ready < 2) {
      }
      b.channel.set_applied(b.pool.node(), engine::DdlApplied::upto(round - 1));
      kept = extent_of(b.log).removed < round;
    });
    ++ready;
    while (ready < 2) {
    }
    ASSERT_TRUE(a.log.remove_applied().ok());
    comer.join();
    if (kept) {
      EXPECT_EQ(extent_of(a.log).removed, round - 1);
    }
    b.channel.set_applied(b.pool.node(), engine::DdlApplied{});
    ASSERT_TRUE(a.log.remove_applied().ok());
  }
}

TEST(DdlLog, NothingOfARecordIsLeftOnFreePages) {
  gcl_test::Cluster cluster({.nodes = 1});
  Node a(cluster, 0);
  ASSERT_TRUE(a.log.append(bytes_of(10000, 1), 1).ok());
  DdlLogEntry entry;
  ASSERT_TRUE(a.log.first(&entry).ok());
  alignas(8) std::byte page[coherence::kPageSize];
  ASSERT_TRUE(a.pool.copy_page(*a.session, entry.page, page).ok());
  const std::vector<std::byte> before(page + bufmgr::kPageBody, page + coherence::kPageSize);
  ASSERT_TRUE(remove_upto(a, 1).ok());
  ASSERT_TRUE(a.pool.copy_page(*a.session, entry.page, page).ok());
  const std::vector<std::byte> after(page + bufmgr::kPageBody, page + coherence::kPageSize);
  EXPECT_NE(after, before);
  EXPECT_EQ(after, std::vector<std::byte>(after.size()));
}

TEST(DdlLog, AReaderAtItsEndGoesOnWithWhatCame) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  ASSERT_TRUE(a.log.append(bytes_of(10, 1), 1).ok());
  DdlLogEntry last, entry;
  ASSERT_TRUE(b.log.first(&last).ok());
  ASSERT_TRUE(b.log.next(&(entry = last)).ok());
  EXPECT_FALSE(entry.valid());
  ASSERT_TRUE(a.log.append(bytes_of(10, 2), 1).ok());
  ASSERT_TRUE(b.log.next(&(entry = last)).ok());
  EXPECT_EQ(entry.number, 2u);
  ASSERT_TRUE(remove_upto(a, 1).ok());
  ASSERT_TRUE(b.log.next(&(entry = last)).ok());
  EXPECT_EQ(entry.number, 2u);
  ASSERT_TRUE(remove_upto(a, 2).ok());
  ASSERT_TRUE(b.log.next(&(entry = last)).ok());
  EXPECT_FALSE(entry.valid());
}

// ddl_log.read-then-ask-root, with a reader that is always somewhere in what is being removed.
TEST(DdlLog, ReadersAndARemoverAreInNobodysWay) {
  gcl_test::Cluster cluster({.nodes = 2});
  std::atomic<bool> done{false};
  std::thread coordinator([&] {
    Node node(cluster, 1);
    for (int i = 0; i < 400; ++i) {
      const uint64_t txn = uint64_t(i) + 1;
      EXPECT_EQ(*node.log.append(bytes_of(size_t(txn * 37 % 20000), int(txn)), txn), txn);
      if (i % 3 == 2) {
        EXPECT_TRUE(remove_upto(node, txn - 2).ok());
      }
    }
    done = true;
  });
  Node reader(cluster, 0);
  int read = 0;
  while (!done) {
    DdlLogEntry entry;
    uint64_t before = 0;
    for (bool ok = reader.log.first(&entry).ok(); ok && entry.valid(); ok = reader.log.next(&entry).ok()) {
      EXPECT_GT(entry.number, before);
      before = entry.number;
      EXPECT_EQ(entry.txn, entry.number);
      std::vector<std::byte> copy(entry.bytes);
      auto outcome = reader.log.read(entry, copy.data());
      if (!outcome) {
        EXPECT_EQ(outcome.error(), coherence::Errc::kNotFound);
        continue;
      }
      ++read;
      EXPECT_EQ(copy, bytes_of(size_t(entry.number * 37 % 20000), int(entry.number)));
    }
  }
  coordinator.join();
  EXPECT_GT(read, 0);
}

}  // namespace
