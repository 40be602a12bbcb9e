#include "tools/gclctl/restart.hpp"

#include <chrono>
#include <map>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/pool/mapped_pool.hpp"
#include "coherence/pool/pool_lock.hpp"
#include "extension/engine/restart/restore.hpp"
#include "extension/engine/restart/restored_members.hpp"
#include "recovery/log_merge.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/lone_node.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/restart_logs.hpp"

namespace gclctl {

using bufmgr::PageId;
using coherence::NodeId;
using coherence::Pool;
using coherence::Problem;
using coherence::Result;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point moment) { return std::chrono::duration<double>(Clock::now() - moment).count(); }

// The pages as they lie in memory; nobody is in the pool.
class MappedPages final : public recovery::PageImages {
 public:
  explicit MappedPages(Pool& pool) : pool_(pool) {}
  Result<std::byte*> image(PageId page) override {
    if (const auto there = pool_.look_for(page); !there) return there.error();
    const coherence::PoolAddress at = pool_.page_address(page);
    return coherence::MappedPool::of(pool_).base(at.node()) + at.offset();
  }

 private:
  Pool& pool_;
};

class Restart {
 public:
  explicit Restart(const LostPool& lost) : lost_(lost), made_(lost.file.c_str()) {}

  void run() {
    remove_leftovers();
    history_ = history_of(lost_.saved);
    fmt::print(
        "memory has lost the pool, which was in use: it is made again, out of its copy of the last stop and {}\n",
        logs_in_words());
    fflush(stdout);
    const auto began = Clock::now();
    open_logs();  // what is missing is told before anything is done
    bool whole = false;
    Problem problem;
    if (!Pool::begin_restart(files(), &whole, &problem)) fail("{}", problem.text);
    if (!whole) {
      read_copy();
      apply_logs();
      restore_words();
      if (!Pool::end_restart(files(), newest_incarnation(), &problem)) fail("{}", problem.text);
    }
    fmt::print("the pool is whole again ({:.1f} s)\n", seconds_since(began));
  }

 private:
  coherence::PoolFiles files() const {
    return {.path = lost_.file.c_str(), .durable_path = lost_.saved.c_str(), .identity = lost_.compatibility.c_str()};
  }

  // Of a process that died while it made the pool.
  void remove_leftovers() {
    const std::string prefix = fs::path(made_.text).filename();
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(lost_.file.parent_path()))
      if (entry.path().filename().string().starts_with(prefix)) left.push_back(entry.path());
    for (const fs::path& file : left) fs::remove(file);
  }

  std::string logs_in_words() const {
    std::string text;
    for (int k = 0; k < coherence::kNodesMax; ++k)
      if (history_.node[k].joined()) text += fmt::format("{}{}", text.empty() ? "" : ", ", k);
    return text.empty() ? "nothing else: no primary has joined since" : "the logs of primaries " + text;
  }

  void open_logs() {
    for (int k = 0; k < coherence::kNodesMax; ++k) {
      const recovery::NodeHistory& node = history_.node[k];
      if (!node.joined()) continue;
      open_log(k, node);
      for (const recovery::Death& death : node.deaths()) {
        rings_.push_back(std::make_unique<RingLog>(death));
        for (const recovery::Verdict& verdict : death.verdicts)
          decide(evidence_[k], verdict.sequence, verdict.committed);
      }
    }
    for (const recovery::Decision& decision : history_.decisions) {
      const engine::TxnId id{decision.txn};
      if (const auto log = evidence_.find(id.node().value); log != evidence_.end())
        decide(log->second, id.sequence(), decision.committed);
    }
  }

  void open_log(int k, const recovery::NodeHistory& node) {
    const auto places = lost_.logs.find(k);
    if (places == lost_.logs.end())
      fail("primary {} has written since the pool was last saved: its log is needed, and it is not known where it is",
           k);
    for (const LogPlace& place : places->second) {
      if (!node.joined(place.after, place.upto)) continue;
      if (!fs::exists(place.data))
        fail("primary {} has written since the pool was last saved, and there is no {}: its log is needed", k,
             place.data.string());
      logs_[k].push_back(std::make_unique<PrimaryLog>(k, place, node, evidence_[k]));
    }
  }

  static void decide(engine::CommitEvidence& evidence, uint64_t sequence, bool committed) {
    committed ? evidence.commit(sequence) : evidence.roll_back(sequence);
  }

  void read_copy() {
    LoneNode node(made_.text, lost_.compatibility);
    auto copy = engine::read_copy(node.txns());
    if (!copy) fail("the words of the pool's copy cannot be read: {}", coherence::errc_name(copy.error()));
    copy_ = copy.take();
    node.leave();
  }

  void apply_logs() {
    Problem problem;
    auto pool = Pool::open({.path = made_.text, .identity = lost_.compatibility.c_str()}, &problem);
    if (!pool) fail("{}", problem.text);
    MappedPages pages(**pool);
    std::vector<recovery::LogSource*> sources;
    for (const auto& ring : rings_) sources.push_back(ring.get());
    for (const auto& [k, logs] : logs_)
      for (const auto& log : logs) sources.push_back(log.get());
    const auto began = Clock::now();
    if (!recovery::apply_logs(sources, pages, &problem)) {
      for (const auto& [k, logs] : logs_)
        for (const auto& log : logs)
          if (!log->why().empty()) fail("{}", log->why());
      fail("the logs do not make the pool: {}", problem.text);
    }
    uint64_t bytes = 0, records = 0;
    for (const auto& [k, logs] : logs_)
      for (const auto& log : logs) bytes += log->bytes(), records += log->records();
    fmt::print("{} records of {} MB of logs applied ({:.1f} s)\n", records, megabytes(bytes), seconds_since(began));
    fflush(stdout);
    go_on_behind_logs(**pool);
  }

  // No record of the next incarnations has a sequence that one has had (log.sequence-is-position).
  void go_on_behind_logs(Pool& pool) {
    for (const auto& [k, logs] : logs_) {
      uint64_t end = 0;
      for (const auto& log : logs) end = std::max(end, log->sequence_end());
      for (const recovery::Death& death : history_.node[k].deaths()) end = std::max(end, death.hole);
      const bufmgr::RegionSpan ring = bufmgr::BufferPool::ring_of(pool, NodeId{uint8_t(k)});
      std::byte* const base = coherence::MappedPool::of(pool).base(ring.at.node());
      auto* header = reinterpret_cast<bufmgr::RingHeader*>(base + ring.at.offset());
      if (header->magic == 0)
        *header = {bufmgr::RingHeader::kMagic, (ring.bytes - bufmgr::kRingHeaderBytes) / 8 * 8, 0, 0};
      header->tail = std::max(header->tail, (end + 7) / 8 * 8);
    }
  }

  void restore_words() {
    LoneNode node(made_.text, lost_.compatibility);
    std::vector<const engine::CommitEvidence*> evidence(node.pool().nodes_max(), nullptr);
    for (const auto& [k, one] : evidence_)
      if (size_t(k) < evidence.size()) evidence[size_t(k)] = &one;
    const auto restored = engine::restore(node.pool(), node.session(), node.txns().words(), copy_, evidence);
    if (!restored) fail("the words of the pool cannot be made: {}", coherence::errc_name(restored.error()));
    decide_for_absent(node);
    const auto members = ddl_members(node.pool().nodes_max());
    if (const auto done = engine::restore_members(node.pool(), node.session(), members); !done)
      fail("the words of DDL cannot be made: {}", coherence::errc_name(done.error()));
    node.leave();
  }

  // What was decided on primaries that have not joined since the save: they are in doubt in the copy.
  void decide_for_absent(LoneNode& node) {
    for (const recovery::Decision& decision : history_.decisions) {
      const engine::TxnId id{decision.txn};
      if (evidence_.count(id.node().value) != 0 || id.node().value >= node.pool().nodes_max()) continue;
      const auto decided =
          engine::Leftovers(node.session().memory(), node.txns().words(), id.node()).decide(id, decision.committed);
      if (!decided && decided.error() != coherence::Errc::kNotFound)
        fail("transaction {} of primary {} cannot be decided: {}", id.sequence(), int(id.node().value),
             coherence::errc_name(decided.error()));
    }
  }

  std::vector<engine::DdlMember> ddl_members(uint32_t nodes_max) const {
    std::vector<engine::DdlMember> members;
    for (uint32_t n = 0; n < nodes_max; ++n)
      if (const auto life = history_.life[n]) members.push_back({NodeId{uint8_t(n)}, *life});
    return members;
  }

  uint64_t newest_incarnation() const {
    uint64_t newest = 0;
    for (const recovery::NodeHistory& node : history_.node) newest = std::max(newest, node.newest_incarnation());
    return newest;
  }

  const LostPool& lost_;
  const Pool::RestartPath made_;
  recovery::History history_;
  std::map<int, engine::CommitEvidence> evidence_;                // by primary
  std::map<int, std::vector<std::unique_ptr<PrimaryLog>>> logs_;  // likewise
  std::vector<std::unique_ptr<RingLog>> rings_;
  engine::StatusesOfCopy copy_;
};

}  // namespace

// Under the pool's lock file, so that a server that is started by hand waits, and finds the pool.
bool restart_pool(const LostPool& lost) {
  const coherence::PoolLock lock(lost.file.c_str());
  if (!lock.held()) fail("cannot lock {}.lock: {}", lost.file.string(), strerror(errno));
  if (fs::exists(lost.file)) return false;
  Problem problem;
  const auto is = Pool::inspect(
      {.path = lost.file.c_str(), .durable_path = lost.saved.c_str(), .identity = lost.compatibility.c_str()},
      &problem);
  if (is == Pool::Condition::kClean) return false;
  if (is != Pool::Condition::kUnclean) fail("{}", problem.text);
  Restart(lost).run();
  return true;
}

}  // namespace gclctl
