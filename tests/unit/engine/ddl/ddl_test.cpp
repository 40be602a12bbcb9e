#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "extension/engine/ddl/ddl_channel.hpp"
#include "extension/engine/ddl/ddl_log.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace {

using engine::DdlChannel;
using engine::DdlHeader;
using engine::DdlHolder;
using engine::DdlKind;
using engine::DdlLog;
using engine::DdlLogEntry;
using engine::DdlMessage;
using engine::DdlReply;

struct Node {
  Node(gcl_test::Cluster& cluster, int n)
      : pool(cluster.pool(n)),
        session(cluster.session(n)),
        channel(session->memory(), pool.region(bufmgr::Region::kDdl).at, pool.region(bufmgr::Region::kDdl).bytes,
                pool.node()),
        log(pool, *session, channel),
        me(DdlHolder::make(pool.node(), 7, 1000 + uint32_t(n))) {}
  bufmgr::BufferPool& pool;
  std::unique_ptr<bufmgr::Session> session;
  DdlChannel channel;
  DdlLog log;
  DdlHolder me;
};

std::vector<std::byte> bytes_of(size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 31 + size_t(seed));
  return bytes;
}

TEST(DdlChannel, OnlyOneNodeHasTheLock) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  EXPECT_FALSE(a.channel.holder().held());
  EXPECT_TRUE(a.channel.try_lock(a.me, 42));
  EXPECT_FALSE(b.channel.try_lock(b.me, 43));
  uint64_t since = 0;
  EXPECT_EQ(b.channel.holder(&since), a.me);
  EXPECT_EQ(since, 42u);
  EXPECT_EQ(b.channel.holder().node().value, 0);
  EXPECT_EQ(b.channel.holder().pid(), 1000u);
  b.channel.unlock(b.me);  // not the holder: no effect
  EXPECT_TRUE(a.channel.holder().held());
  a.channel.unlock(a.me);
  EXPECT_TRUE(b.channel.try_lock(b.me, 44));
}

TEST(DdlChannel, AMessageIsReadAndAnsweredByEveryMember) {
  gcl_test::Cluster cluster({.nodes = 3});
  Node a(cluster, 0), b(cluster, 1), c(cluster, 2);
  a.channel.join(1);
  b.channel.join(2);
  const auto members = a.channel.members();
  EXPECT_EQ(members.nodes, coherence::NodeSet::of(b.pool.node())) << "without the author, and without who did not join";

  const std::string body = "create table t(a int) using gcl";
  DdlHeader header{};
  header.kind = DdlKind::kStatement;
  header.bytes = header.total = uint32_t(body.size());
  std::strcpy(header.database, "postgres");
  const uint64_t number = a.channel.post(header, body.data());
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 2, number), DdlReply::kPending);

  DdlMessage message;
  message.sequence = b.channel.sequence();
  EXPECT_EQ(message.sequence, number);
  ASSERT_TRUE(b.channel.read(message.sequence, &message.header));
  EXPECT_STREQ(message.header.database, "postgres");
  std::string copy(message.header.bytes, 0);
  ASSERT_TRUE(b.channel.read_body(message, copy.data()));
  EXPECT_EQ(copy, body);

  b.channel.acknowledge(number, false, "42P07\nrelation \"t\" already exists");
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 2, number), DdlReply::kFailed);
  char text[engine::kDdlReplyBytes];
  EXPECT_EQ(std::string(text, a.channel.reply_text(b.pool.node(), text)), "42P07\nrelation \"t\" already exists");
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 2, number + 1), DdlReply::kPending);
}

TEST(DdlChannel, WhoLeftOrCameBackIsNotWaitedFor) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  b.channel.join(5);
  const uint64_t number = a.channel.post(DdlHeader{}, nullptr);
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 5, number), DdlReply::kPending);
  b.channel.leave();
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 5, number), DdlReply::kGone);
  b.channel.join(6);
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 5, number), DdlReply::kDone) << "a joiner has dealt with all before it";
  EXPECT_EQ(a.channel.reply_of(b.pool.node(), 5, number + 1), DdlReply::kGone);
}

TEST(DdlChannel, AReaderNoticesThatAnotherMessageTookThePlace) {
  gcl_test::Cluster cluster({.nodes = 2});
  Node a(cluster, 0), b(cluster, 1);
  const uint64_t first = a.channel.post(DdlHeader{}, nullptr);
  a.channel.post(DdlHeader{}, nullptr);
  DdlHeader header;
  EXPECT_FALSE(b.channel.read(first, &header));
  EXPECT_TRUE(b.channel.read(first + 1, &header));
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
    Node& author = seed % 2 ? b : a;
    auto number = author.log.append(bytes_of(size, seed), 100 + uint64_t(seed));
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

TEST(DdlLog, TwoNodesTakingTurnsUnderTheLockLoseNothing) {
  gcl_test::Cluster cluster({.nodes = 2});
  constexpr int kEach = 40;
  auto work = [&](int n) {
    Node node(cluster, n);
    for (int i = 0; i < kEach; ++i) {
      while (!node.channel.try_lock(node.me, 0)) std::this_thread::yield();
      EXPECT_TRUE(node.log.append(bytes_of(size_t(i) * 97, n), uint64_t(n) << 32 | uint64_t(i)).ok());
      node.channel.unlock(node.me);
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
}

}  // namespace
