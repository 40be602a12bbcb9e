// Cluster: the product's nodes over one pool, in one process.  Instead of bufmgr and PostgreSQL each has a page
// directory, a log, a worker and users.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bufmgr/session.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/member/node.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/session.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "far_transport.hpp"
#include "options.hpp"
#include "oracle.hpp"
#include "seams.hpp"
#include "wakeup_probe.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else

inline constexpr uint32_t kServeMs = 20;  // a pass of a message worker
// The worker looks for the dead every 250 ms, between two rounds of serving.
inline constexpr uint64_t kFenceNsMax = 250 * kMs + 20 * kMs + 30 * kMs;
// Of a batch that was posted.
inline constexpr uint64_t kVerbsNsMax = 10 * kMs;
// A wait is a loop of sleeps of at most 10 ms that looks at the fence (coherence.bounded-sleeps).
inline constexpr uint64_t kSliceNsMax = 10 * kMs + 20 * kMs;

// Where a page says its value: in the header's line, and in others.
inline constexpr uint32_t kWordAt[] = {0, 2048, 4104, 8184};
inline constexpr int kWords = 4;

inline ArenaSpec arena_spec(const Options& o) {
  return {.frames = uint32_t(o.frames), .sessions_max = uint32_t(o.threads) + 1 + o.survives, .private_bytes = 4096};
}

class Directory final : public FrameDirectory {
 public:
  explicit Directory(int pages) : lines(size_t(pages)), coming(size_t(pages)) {}
  Line* find(PageId page) noexcept override { return lines[size_t(index_of(page))]; }
  static PageId page(int index) { return PageId::at(MemoryNodeId{uint8_t(index % 2)}, uint64_t(index / 2)); }
  static int index_of(PageId page) { return int(page.number()) * 2 + page.node().value; }

  std::vector<Line*> lines;
  std::vector<bool> coming;  // a user is about to publish a line
};

class Horizon final : public LogHorizon {
 public:
  Lsn flushed() noexcept override { return {lazy && mutation != Mutation::kLogIgnored ? flushed_lsn : ~uint64_t{0}}; }
  void request_flush(Lsn lsn) noexcept override { wanted = lsn.value > wanted ? lsn.value : wanted; }
  bool lazy = false;
  uint64_t written = 0, wanted = 0, flushed_lsn = 0;
};

// What interrupts a process's waits.
class Chance final : public bufmgr::Interrupts {
 public:
  explicit Chance(uint32_t one_in) : one_in_(one_in) {}
  bool pending() noexcept override { return scheduler()->random().one_in(one_in_); }

 private:
  uint32_t one_in_;
};

// What the redo of each node has of each page, in words.
class Redo final : public PageRepair {
 public:
  explicit Redo(const Options& o)
      : newest_(size_t(o.nodes), std::vector<uint64_t>(size_t(o.pages))), crashes_in_repair_(o.crashes_in_repair) {}
  void append(NodeId node, int page, uint64_t value) { newest_[node.value][size_t(page)] = value; }
  Result<bool> repair(PageId, std::byte* page, NodeSet dead, Memory&, Problem*) noexcept override;
  uint64_t newest(NodeId node, int page) const { return newest_[node.value][size_t(page)]; }

 private:
  std::vector<std::vector<uint64_t>> newest_;
  int crashes_in_repair_;
};

// One node, over its lives.
struct Member {
  Member(int number, const Options& o) : id{uint8_t(number)}, directory(o.pages), frames(uint32_t(o.frames)) {}
  // The page's line, published; null: no frame is free now.
  Line* line(Session&, int page);
  bool evict(Session&, int page);
  void evict_all(Session&);  // that can be, in groups
  void unpublish(Session&, Line&, PageId);

  NodeId id;
  Directory directory;
  Horizon horizon;
  uint32_t frames;
  std::unique_ptr<Node> node;                 // of this life
  std::vector<std::unique_ptr<Node>> former;  // their memory may still be looked at
  std::vector<uint32_t> free;
  int users = 0;  // at work
  bool serving = false, left = false, last = false;
  bool leaving = false, sweeping = false, was_cut_off = false;
  bool awaited = false, coming = false;  // it is to join again when it has died; and does so now
};

class Cluster final : public Observer {
 public:
  explicit Cluster(const Options&);
  ~Cluster() override;
  Cluster(const Cluster&) = delete;

  void start();                      // spawns all fibers
  bool working() const;              // users of living nodes are at work
  bool serving() const;              // workers of living nodes are
  void close() { closing_ = true; }  // workers leave the pool

  bool crashed(int n) const { return scheduler()->crashed(n); }
  // Node n has withdrawn: its death disturbs no node.
  bool withdrawn(int n) const { return members().info(NodeId{uint8_t(n)}).state == MemberState::kAbsent; }
  // Nothing names a dead node any more, and what is to come again has.
  bool repaired() const;
  bool cut_off() const { return far_.broken_ns() != 0; }  // a node lost a connection
  bool fenced() const { return members().fenced(); }
  // Nothing is under way but waiting for work.
  bool at_rest() const;
  // Checkers 4 and 6.
  void check_rest() const;
  void check_left() const;
  // Checker 8: no node may join a pool where one died, or was cut off; and the reason is right.
  void check_refuses() const;
  // Checkers 5 and 8, of users that wait now.
  void check_waits();

  uint64_t count(Counter) const;  // over all nodes and lives
  Oracle& oracle() { return oracle_; }
  Deaths deaths() const {
    Deaths all = deaths_;
    all.answers_delayed = far_.answers_delayed();
    return all;
  }
  Members known_of_members() const {
    Members known = far_.members();
    known.woken = probe_.woken();
    for (const auto& m : members_) known.cut_off += m->was_cut_off;
    return known;
  }
  uint64_t longest_wait_ns() const { return longest_wait_ns_; }

 private:
  friend class User;
  struct Waiting {
    uint64_t since = 0;  // 0: does not
  };
  // As they are, whatever a node has heard.
  TableChanges members() const { return {MappedPool::of(*pool_).table(), pool_->nodes_max()}; }
  bool join(Member&);  // false: the pool is fenced
  Result<std::unique_ptr<Node>> try_to_join(Member&, Problem*);
  void enter(Member&, std::unique_ptr<Node>);
  int lives_of(const Member&) const;
  void begin_probe(Member&);
  void serve(Member&, int lives);
  void ended(Member&);
  void write_log(Member&);
  void start(Member&);
  void died(Member&);
  void rejoin(Member&);
  void come_again(Member&);
  void sweep(Member&);
  bool sweep(Member&, Session&, NodeId dead);
  bool in_pool(Session&, int page, NodeId dead);
  void drop_late(Session&, PageId, NodeId dead);
  void disturb();
  void send_again(const Member& asker, uint32_t slot, Member& to);
  void send_again(Member& asker, const Line& line);
  void about_to(const Op&) override;
  int page_of(const LineState&) const override;
  void confirm(const LineState&) override;
  void check_cut_off(uint64_t now) const;
  void waited(Waiting&, bool fenced);
  uint64_t allowed_ns(const Waiting&) const;
  ArenaHeader& arena(Member&) const;
  bool hogs(const Member& m) const { return options_.victim >= 0 && m.id.value != options_.victim; }
  bool lives(const Member& m) const { return !crashed(m.id.value); }

  const Options& options_;
  std::string path_;
  FarTransport far_;
  std::unique_ptr<Pool> pool_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::unique_ptr<Waiting>> waiting_;  // of each user
  WakeupProbe probe_;
  Oracle oracle_;
  Redo redo_;
  Deaths deaths_;
  bool closing_ = false;
  uint64_t fenced_ns_ = 0, longest_wait_ns_ = 0;
};

}  // namespace sim
