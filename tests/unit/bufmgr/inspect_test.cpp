// Pages, redo and guards in words, and a ring seen from outside.
#include <signal.h>

#include "bufmgr/inspect/page_text.hpp"
#include "bufmgr/inspect/ring_view.hpp"
#include "bufmgr/log/record_writer.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/line_text.hpp"
#include "tests/support/processes.hpp"

namespace bufmgr {
namespace {

using coherence::shown;
using gcl_test::Cluster;

void change(BufferPool& pool, Session& session, PageId page, uint32_t value) {
  MiniTransaction mini(pool, session);
  ASSERT_TRUE(mini.reserve(64).ok());
  auto guard = pool.fix_exclusive(session, page);
  ASSERT_TRUE(guard.ok());
  mini.join(*guard);
  mini.write(*guard, 256, &value, sizeof value);
  mini.commit();
}

TEST(PageTexts, AHeaderSaysWhatThePageIs) {
  PageHeader header{};
  EXPECT_EQ(shown(header), "unused (type 0), version 0");
  header.type = PageType::kBlinkLeaf;
  header.version = 12;
  header.relation = 77;
  header.lower = 48, header.upper = 8000, header.special = 8176;
  EXPECT_EQ(shown(header),
            "blink leaf (type 8), version 12, relation header page 77, lower 48, upper 8000, special 8176");
  header.type = PageType(99);
  EXPECT_EQ(shown(header).substr(0, 11), "? (type 99)");
}

TEST(RingViews, TheRecordsOfARingAreSeenFromOutside) {
  Cluster cluster({.nodes = 1, .keep_records = true, .workers = false});
  auto session = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const PageId page = *pool.allocate(*session, 1);
  for (uint32_t i = 0; i < 3; ++i) change(pool, *session, page, i);
  ASSERT_TRUE(session->push_redo().ok());
  coherence::Problem problem;
  auto view = coherence::PoolView::open(pool.coherence_pool().path(), &problem);
  ASSERT_TRUE(view.ok()) << problem.text;
  std::vector<std::string> seen;
  const uint64_t end = visit_ring(**view, {0}, [&](std::span<const std::byte> record) {
    coherence::Text text;
    add_record(text, record);
    seen.push_back(text.c_str());
  });
  EXPECT_EQ(end, pool.ring().head());
  ASSERT_EQ(seen.size(), cluster.log(0).records().size());
  coherence::Text last;
  coherence::add(last, page);
  EXPECT_NE(seen.back().find(std::string("\n  page ") + last.c_str() + " becomes version "), std::string::npos);
  EXPECT_NE(seen.back().find(": [256, 260)"), std::string::npos) << seen.back();
  auto arena = coherence::ArenaView::open(**view, {0}, &problem);
  ASSERT_TRUE(arena.ok()) << problem.text;
  const auto ring = RingView::of(**view, {0}, arena->get());
  ASSERT_TRUE(ring && ring->shared);
  EXPECT_EQ(ring->shared->head, pool.ring().head());
  EXPECT_EQ(ring->shared->tail, pool.ring().tail());
  EXPECT_EQ(ring->data_bytes, pool.ring().data_bytes());
  EXPECT_FALSE(RingView::of(**view, {1}, nullptr));  // no node has joined
}

TEST(RecordTexts, EveryKindOfStepIsTold) {
  std::byte bytes[512] = {};
  RecordWriter writer(bytes, {1});
  writer.page(PageId::at({2}, 9), 70, 4);
  writer.copy(2000, 100, 1000);
  writer.zero(500, 50);
  writer.bytes(550, bytes + 256, 40);  // packed
  writer.bytes(40, bytes + 256, 2);
  const auto framed = writer.finish();
  seal_record(framed, 12);
  const auto record = framed.subspan(sizeof(RecordFrame));
  coherence::Text text;
  add_record(text, record);
  EXPECT_EQ(std::string(text.c_str()),
            "node 1, sequence 12, " + std::to_string(record.size()) +
                " bytes\n  page 2:9 becomes version 70: [2000, 2100) from 1000 [500, 550) zero [550, 590) [40, 42)");
}

TEST(RecordTexts, WhatIsNoRecordIsSaidNotToBe) {
  std::byte bytes[128] = {};
  coherence::Text text;
  add_record(text, bytes);
  EXPECT_STREQ(text.c_str(), "128 bytes of format 0; formats 3 to 5 are read here");
  coherence::Text few;
  add_record(few, std::span(bytes).first(1));
  EXPECT_STREQ(few.c_str(), "1 bytes are too few for a record");
  const RecordHeader header{.format = RecordHeader::kFormat, .node = 2, .sequence = 5};
  memcpy(bytes, &header, sizeof header);
  memset(bytes + sizeof header, 0xff, 20);
  coherence::Text broken;
  add_record(broken, bytes);
  EXPECT_STREQ(broken.c_str(), "node 2, sequence 5, 128 bytes\n  and what makes no sense");
}

// The pages that a process has latched when one of its invariants breaks.
TEST(FailureReports, WhatIsLatchedIsTold) {
  Cluster cluster({.nodes = 1, .workers = false});
  auto session = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const PageId page = *pool.allocate(*session, 1);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = gcl_test::child([&] {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    auto guard = pool.fix_exclusive(*session, page);
    VERIFY(!guard.ok());
  });
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, size_t(n));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  session->coherence().unlock_exclusive(*pool.find(page));  // as the child cannot
  coherence::Text name;
  coherence::add(name, page);
  for (const std::string& said :
       {std::string("VERIFY(!guard.ok()) failed"), std::string("guard 0 of session "), std::string(": exclusive\n"),
        std::string("owned by node 0"), std::string("page     ") + name.c_str(), std::string("protocol events\n")})
    EXPECT_NE(text.find(said), std::string::npos) << "\"" << said << "\" is not in:\n" << text;
}

}  // namespace
}  // namespace bufmgr
