// The flight recorder: what it keeps, and what a process with a broken invariant says.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "cluster.hpp"
#include "coherence/inspect/flight_view.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "tests/support/line_text.hpp"
#include "tests/support/processes.hpp"

namespace coherence {
namespace {

void note(FlightRing& ring, uint32_t number) {
  FlightEvent& e = ring.next();
  e = FlightEvent{};
  e.ticks = ticks();
  e.line = number;
  ring.noted();
}

// What a child process writes to its standard error before it is killed by SIGABRT.
std::string last_shown(const std::function<void()>& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = gcl_test::child([&] {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    body();
  });
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, size_t(n));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << text;
  return text;
}

}  // namespace

class Flights : public ClusterTest {
 protected:
  FlightView::Recording recording(int node, uint32_t session) {
    Problem problem;
    FlightView::Recording seen;
    auto pool_view = PoolView::open(path.c_str(), &problem);
    EXPECT_TRUE(pool_view.ok()) << problem.text;
    auto view = FlightView::open(**pool_view, NodeId{uint8_t(node)}, &problem);
    EXPECT_TRUE(view.ok()) << problem.text;
    EXPECT_TRUE(view.ok() && (*view)->recording(session, &seen));
    return seen;
  }
};

TEST_F(Flights, ARingKeepsTheLastEventsInTheirOrder) {
  const std::string file = path + ".flight";
  FlightFile made;
  made.create(file.c_str(), NodeId{3}, 7, 4);
  FlightRing* ring = made.ring(SessionId{2});
  ASSERT_NE(ring, nullptr);
  ring->begin(11);
  for (uint32_t n = 0; n < 3 * kFlightEvents + 5; n++) note(*ring, n);
  Problem problem;
  auto view = FlightView::open(file.c_str(), &problem);
  ASSERT_TRUE(view.ok()) << problem.text;
  FlightView::Recording seen;
  EXPECT_FALSE((*view)->recording(1, &seen));  // never used
  EXPECT_FALSE((*view)->recording(4, &seen));
  ASSERT_TRUE((*view)->recording(2, &seen));
  EXPECT_EQ(seen.pid, 11);
  EXPECT_EQ(seen.written, 3 * kFlightEvents + 5);
  ASSERT_EQ(seen.events.size(), kFlightEvents - 1);  // the oldest may be being overwritten
  for (size_t i = 0; i < seen.events.size(); i++) EXPECT_EQ(seen.events[i].line, seen.first + i);
  for (size_t i = 1; i < seen.events.size(); i++) EXPECT_LE(seen.ns_of(seen.events[i - 1]), seen.ns_of(seen.events[i]));
}

// A session that begins in the slot keeps what the last one has recorded.
TEST_F(Flights, ARingTellsWhoHasRecordedWhat) {
  const std::string file = path + ".flight";
  FlightFile made;
  made.create(file.c_str(), NodeId{3}, 7, 1);
  FlightRing* ring = made.ring(SessionId{0});
  ASSERT_NE(ring, nullptr);
  ring->begin(11);
  for (uint32_t n = 0; n < 3; n++) note(*ring, n);
  ring->end();
  ring->begin(12);
  note(*ring, 3);
  Problem problem;
  FlightView::Recording seen;
  ASSERT_TRUE((*FlightView::open(file.c_str(), &problem))->recording(0, &seen));
  EXPECT_EQ(std::tuple(seen.pid, seen.began, seen.written, seen.events.size()), std::tuple(12, 3u, 4u, size_t{4}));
  EXPECT_FALSE(seen.ended);
}

// Where every account may make files, somebody may have made one of that name, and keep it open to cut it off later.
TEST_F(Flights, AFileOfThatNameIsNotTaken) {
  const std::string file = path + ".flight", other = path + ".other";
  for (const bool linked : {false, true}) {
    const std::string& theirs = linked ? other : file;
    ASSERT_TRUE(std::ofstream(theirs) << "theirs");
    ASSERT_TRUE(!linked || (unlink(file.c_str()) == 0 && symlink(other.c_str(), file.c_str()) == 0));
    const File open_still(open(theirs.c_str(), O_RDWR | O_CLOEXEC));
    FlightFile made;
    made.create(file.c_str(), NodeId{3}, 7, 4);
    EXPECT_NE(made.ring(SessionId{0}), nullptr);
    struct stat s;
    ASSERT_EQ(fstat(open_still.fd(), &s), 0);
    EXPECT_EQ(s.st_size, 6);
  }
  unlink(file.c_str()), unlink(other.c_str());
}

TEST_F(Flights, AFileOfALaterVersionIsRefusedByItsNumber) {
  const std::string file = path + ".flight";
  FlightFile made;
  made.create(file.c_str(), NodeId{0}, 1, 4);
  const File writes(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(pwrite(writes.fd(), "GFLIGHT2", 8, offsetof(FlightHeader, magic)), 8);
  Problem problem;
  EXPECT_EQ(FlightView::open(file.c_str(), &problem).error(), Errc::kIncompatible);
  EXPECT_EQ(problem.text, file + " has version 2, and version 1 is read here: use gclctl of that version");
  ASSERT_EQ(pwrite(writes.fd(), "GFLOGHT2", 8, offsetof(FlightHeader, magic)), 8);
  EXPECT_EQ(FlightView::open(file.c_str(), &problem).error(), Errc::kCorrupt);
}

TEST_F(Flights, OnlySlotsThatWereUsedTakeMemory) {
  const std::string file = path + ".flight";
  FlightFile made;
  made.create(file.c_str(), NodeId{0}, 1, 1000);
  struct stat s;
  const auto taken = [&] { return stat(file.c_str(), &s) == 0 ? uint64_t(s.st_blocks) * 512 : 0; };
  EXPECT_LE(taken(), kFlightHeaderBytes);
  ASSERT_NE(made.ring(SessionId{999}), nullptr);
  EXPECT_LE(taken(), kFlightHeaderBytes + sizeof(FlightRing));
  EXPECT_GE(taken(), sizeof(FlightRing));
}

TEST_F(Flights, WithoutAFileNothingIsRecordedAndNothingElseIsDifferent) {
  FlightFile none;
  none.create("/no/such/directory/flight", NodeId{0}, 1, 4);
  EXPECT_EQ(none.ring(SessionId{0}), nullptr);
}

TEST_F(Flights, AMissIsRecordedAndAHitIsNot) {
  add_node(16, false), add_node(16, false);
  TestNode& node = *nodes[0];
  Session a(*node.node, SessionId{0}, nullptr), worker(*nodes[1]->node, SessionId{15}, nullptr);
  Line& line = node.line(a, page(5, 1));
  ASSERT_TRUE(a.lock_exclusive(line, page(5, 1)).ok());
  a.unlock_exclusive(line);
  const FlightView::Recording after_miss = recording(0, 0);
  ASSERT_EQ(after_miss.events.size(), 2u);
  EXPECT_EQ(after_miss.pid, getpid());
  EXPECT_EQ(shown(after_miss.events[0]).substr(0, 70),
            "page 1:5  line 15  of session 0  I -- fetch exclusive --> I write; pos");
  EXPECT_EQ(shown(after_miss.events[1]),
            "page 1:5  line 15  of session 0  I write -- batch done, the word was 0000000000000000: free --> M; "
            "finished, latch the caller's");
  for (int i = 0; i < 100; i++) {
    ASSERT_TRUE(a.lock_shared(line, page(5, 1)).ok());
    a.unlock_shared(line);
  }
  EXPECT_EQ(recording(0, 0).written, 2u);
}

TEST_F(Flights, BothSidesOfAHandOverAreRecorded) {
  add_node(), add_node();
  Session a(*nodes[0]->node, SessionId{0}, nullptr), b(*nodes[1]->node, SessionId{2}, nullptr);
  const PageId p = page(3);
  ASSERT_TRUE(a.lock_exclusive(nodes[0]->line(a, p), p).ok());
  a.unlock_exclusive(nodes[0]->line(a, p));
  ASSERT_TRUE(b.lock_exclusive(nodes[1]->line(b, p), p).ok());
  b.unlock_exclusive(nodes[1]->line(b, p));
  std::string told;
  for (const auto& e : recording(1, 2).events) told += shown(e) + "\n";
  EXPECT_NE(told.find("the word was 0400000000000000: owned by node 0 --> I WaitX; asks node 0: PeerWr"),
            std::string::npos)
      << told;
  EXPECT_NE(told.find("I WaitX -- reply GrantM from node 0 --> M"), std::string::npos) << told;
  told.clear();
  for (const auto& e : recording(0, kWorkerSession).events) told += shown(e) + "\n";
  for (const auto& e : recording(0, 0).events) told += shown(e) + "\n";
  EXPECT_NE(told.find("M -- request PeerWr from node 1 (session 2, slot 0, priority 0), latched --> M handover; posts "
                      "[WRITE dirty; "
                      "FAA X_j-X] for node 1"),
            std::string::npos)
      << told;
}

TEST_F(Flights, TheFileGoesWhenTheNodeLeavesAndStaysWhenItDies) {
  add_node(16, false);
  const auto exists = [&](int node, uint64_t incarnation) {
    char file[600];
    flight_path(path.c_str(), NodeId{uint8_t(node)}, incarnation, file, sizeof file);
    return access(file, F_OK) == 0;
  };
  const uint64_t incarnation = nodes[0]->node->incarnation();
  EXPECT_TRUE(exists(0, incarnation));
  EXPECT_TRUE(gcl_test::ended_well(gcl_test::child([&] {
    Problem problem;
    auto node = Node::join(*pool, NodeId{1}, {.frames = 16, .sessions_max = 16}, &problem, shm_transport());
    CHILD_VERIFY(node.ok());
    Session s(**node, SessionId{0}, nullptr);
  })));
  EXPECT_TRUE(exists(1, incarnation + 1));
  EXPECT_EQ(recording(1, 0).written, 0u);                    // of a node that is dead, read from outside
  EXPECT_FALSE(MappedPool::of(*pool).table().fence.load());  // and nobody has taken note
}

TEST_F(Flights, WhatIsLeftInOrderIsRemoved) {
  add_node(16, false);
  char file[600];
  flight_path(path.c_str(), NodeId{0}, nodes[0]->node->incarnation(), file, sizeof file);
  Problem problem;
  bool last = false;
  {
    Session s(*nodes[0]->node, SessionId{0}, nullptr);
    ASSERT_TRUE(nodes[0]->node->leave(s, &last, &problem).ok()) << problem.text;
  }
  EXPECT_EQ(access(file, F_OK), -1);
}

TEST_F(Flights, AFailedVerifyTellsTheLineAndTheLastEvents) {
  add_node(16, false);
  const std::string text = last_shown([&] {
    Session s(*nodes[0]->node, SessionId{4}, nullptr);
    Line& line = nodes[0]->line(s, page(9));
    if (!s.lock_shared(line, page(9)).ok()) _exit(1);
    s.hold(line, true);  // a share cannot be held exclusively
  });
  for (const char* said : {
           "session.cpp:",
           "VERIFY(state.msi == MsiState::kModified",
           "node 0, session 4, process ",
           ": the line of the last event, 15\n",
           "latch    0000000000000001: shared by {0}\n",
           "page     0:9\n",
           "S, version 2, 1 shared holders\n",
           "spinlock taken",
           "state    S, operation none",
           ": the last 2 of 2 protocol events\n",
           "us ago  page 0:9  line 15  of session 4  I -- fetch shared --> I read; posts [FAA +b; READ]\n",
           "--> S; finished, latch shared\n",
       })
    EXPECT_NE(text.find(said), std::string::npos) << "\"" << said << "\" is not in:\n" << text;
}

TEST_F(Flights, OneThatFailsBeforeItHasDoneAnythingSaysSo) {
  add_node(16, false);
  const std::string text = last_shown([&] {
    Session s(*nodes[0]->node, SessionId{4}, nullptr);
    VERIFY(!"this");
  });
  EXPECT_NE(text.find("VERIFY(!\"this\") failed\nnode 0, session 4, process "), std::string::npos) << text;
  EXPECT_NE(text.find(": no protocol event yet\n"), std::string::npos) << text;
}

// A report that is broken itself costs nothing of what was said before it.
TEST_F(Flights, AReportThatFailsEndsTheProcessAllTheSame) {
  struct Broken final : FailureReport {
    void tell(Out& out) const noexcept override {
      Text text;
      out.line(text.add("so far"));
      VERIFY(!"again");
    }
  };
  const std::string text = last_shown([] {
    Broken broken;
    VERIFY(!"this");
  });
  EXPECT_NE(text.find("VERIFY(!\"this\") failed\nso far\n"), std::string::npos) << text;
  EXPECT_NE(text.find("VERIFY(!\"again\") failed\n"), std::string::npos) << text;
}

}  // namespace coherence
