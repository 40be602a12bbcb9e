#include "tools/gclctl/restart.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "extension/engine/restart/restore.hpp"
#include "extension/engine/restart/restored_members.hpp"
#include "recovery/checkpoint.hpp"
#include "recovery/log_merge.hpp"
#include "tools/gclctl/checkpoint_lock.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/lone_node.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/restart_logs.hpp"

namespace gclctl {

using bufmgr::PageId;
using coherence::LocalPool;
using coherence::NodeId;
using coherence::Pool;
using coherence::Problem;
using coherence::Result;

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kThreadsMax = 8;

double seconds_since(Clock::time_point moment) { return std::chrono::duration<double>(Clock::now() - moment).count(); }

// The pages as they lie in memory, or one of so many parts of them; nobody is in the pool.
class MappedPages final : public recovery::PageImages {
 public:
  explicit MappedPages(Pool& pool, uint64_t part = 0, uint64_t parts = 1) : pool_(pool), part_(part), parts_(parts) {}
  bool wants(PageId page) override { return page.number() % parts_ == part_; }
  Result<std::byte*> image(PageId page) override {
    if (const auto there = pool_.look_for(page); !there) return there.error();
    const coherence::PoolAddress at = pool_.page_address(page);
    return coherence::MappedPool::of(pool_).base(at.node()) + at.offset();
  }

 private:
  Pool& pool_;
  const uint64_t part_, parts_;
};

// Says now and then how far a log was read.
class TellingLog final : public recovery::LogSource {
 public:
  TellingLog(recovery::LogSource& log, const RestartLogs& all) : log_(log), all_(all) {}
  Result<std::span<const std::byte>> next() override {
    if (++records_ % 8192 == 0 && Clock::now() >= due_) {
      due_ = Clock::now() + kTellEach;
      fmt::print("{} MB of logs applied so far\n", megabytes(all_.bytes()));
      fflush(stdout);
    }
    return log_.next();
  }

 private:
  static constexpr std::chrono::seconds kTellEach{2};
  recovery::LogSource& log_;
  const RestartLogs& all_;
  uint64_t records_ = 0;
  Clock::time_point due_ = Clock::now() + kTellEach;
};

class Restart {
 public:
  Restart(const LostPool& lost, const char* why) : lost_(lost), why_(why), made_(lost.file.c_str()) {}

  void run() {
    remove_leftovers();
    history_ = history_of(lost_.saved);
    fmt::print("{}: it is made again, out of its copy of the last stop and {}\n", why_, logs_in_words());
    fflush(stdout);
    const auto began = Clock::now();
    open_logs();
    bool whole = false;
    Problem problem;
    if (!LocalPool::begin_restart(files(), &whole, &problem)) fail("{}", problem.text);
    if (!whole) {
      read_copy();
      apply_logs();
      restore_words();
      logs_->sync();  // gclctl.checkpoint-syncs-logs
      if (!LocalPool::end_restart(files(), newest_incarnation(), &problem)) fail("{}", problem.text);
    }
    fmt::print("the pool is whole again ({:.1f} s)\n", seconds_since(began));
  }

 private:
  coherence::PoolFiles files() const {
    return {
        .path = lost_.file.c_str(), .durable_path = lost_.saved.c_str(), .compatibility = lost_.compatibility.c_str()};
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

  // What is missing is told before anything is done.
  void open_logs() {
    Problem problem;
    const auto copy = outline_pool(lost_.saved.c_str(), &problem);
    if (!copy) fail("{}", problem.text);
    auto there = recovery::read_checkpoint(lost_.saved.c_str(), copy->pool_id, copy->saves, &problem);
    if (!there) fail("{}", problem.text);
    checkpoint_ = there.take();
    logs_ = make_logs();
  }

  std::unique_ptr<RestartLogs> make_logs() const {
    return std::make_unique<RestartLogs>(lost_.logs, history_, checkpoint_.number == 0 ? nullptr : &checkpoint_);
  }

  void read_copy() {
    LoneNode node(made_.text, lost_.compatibility);
    auto copy = engine::read_copy(node.txns());
    if (!copy) fail("the words of the pool's copy cannot be read: {}", coherence::errc_name(copy.error()));
    copy_ = copy.take();
    node.leave();
  }

  // On top of the copy; from there on the logs go on.
  void take_up_checkpoint(MappedPages& pages) {
    if (checkpoint_.number == 0) return;
    Problem problem;
    const auto delta = recovery::DeltaPages::open(lost_.saved.c_str(), checkpoint_.pages, &problem);
    if (!delta) fail("{}", problem.text);
    for (const recovery::Checkpoint::Page& one : checkpoint_.pages) {
      const auto image = pages.image(one.page);
      if (!image)
        fail("the checkpoint has page {} of memory node {}, which is not in the pool", one.page.number(),
             one.page.node().value);
      if (const auto read = (*delta)->read(one.page, *image, &problem); !read) fail("{}", problem.text);
    }
    fmt::print("checkpoint {} taken up: {} pages\n", checkpoint_.number, checkpoint_.pages.size());
  }

  void apply_logs() {
    Problem problem;
    auto pool = LocalPool::open({.path = made_.text, .compatibility = lost_.compatibility.c_str()}, &problem);
    if (!pool) fail("{}", problem.text);
    MappedPages pages(**pool);
    const auto began = Clock::now();
    take_up_checkpoint(pages);
    apply_parts(**pool);
    logs_->require_whole();
    fmt::print("{} records of {} MB of logs applied ({:.1f} s)\n", logs_->records(), megabytes(logs_->bytes()),
               seconds_since(began));
    fflush(stdout);
    go_on_behind_logs(**pool);
  }

  // Each thread reads all logs (recovery.merge-in-parts), and what they say of transactions is taken from one.
  void apply_parts(Pool& pool) {
    const uint64_t parts = std::clamp(std::thread::hardware_concurrency(), 1u, kThreadsMax);
    std::vector<std::unique_ptr<RestartLogs>> others;
    std::vector<std::future<void>> working;
    for (uint64_t part = 1; part < parts; ++part) others.push_back(make_logs());
    for (uint64_t part = 1; part < parts; ++part)
      working.push_back(std::async(std::launch::async, [&pool, &logs = *others[part - 1], part, parts] {
        apply_part(pool, logs, part, parts, logs.sources());
      }));
    std::vector<std::unique_ptr<TellingLog>> telling;
    std::vector<recovery::LogSource*> sources;
    for (recovery::LogSource* log : logs_->sources()) {
      telling.push_back(std::make_unique<TellingLog>(*log, *logs_));
      sources.push_back(telling.back().get());
    }
    apply_part(pool, *logs_, 0, parts, sources);
    for (auto& one : working) one.get();
  }

  static void apply_part(Pool& pool, const RestartLogs& logs, uint64_t part, uint64_t parts,
                         const std::vector<recovery::LogSource*>& sources) {
    MappedPages pages(pool, part, parts);
    Problem problem;
    if (recovery::apply_logs(sources, pages, &problem)) return;
    if (!logs.why().empty()) fail("{}", logs.why());
    fail("the logs do not make the pool: {}", problem.text);
  }

  // No record of the next incarnations has a sequence that one has had (log.sequence-is-position).
  void go_on_behind_logs(Pool& pool) {
    for (int k = 0; k < coherence::kNodesMax; ++k) {
      if (!history_.node[k].joined()) continue;
      const uint64_t end = logs_->sequence_end(k);
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
    for (const auto& [k, one] : logs_->evidence())
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
      if (logs_->evidence().count(id.node().value) != 0 || id.node().value >= node.pool().nodes_max()) continue;
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
  const char* const why_;
  const LocalPool::RestartPath made_;
  recovery::History history_;
  recovery::Checkpoint checkpoint_;
  std::unique_ptr<RestartLogs> logs_;
  engine::StatusesOfCopy copy_;
};

}  // namespace

namespace {

// The name of a fenced pool's file while another pool is made in its place (gclctl.fenced-made-again).
fs::path aside(const fs::path& pool) { return pool.string() + ".fenced"; }

LocalPool::Condition condition_of(const LostPool& lost, Problem* problem) {
  return LocalPool::inspect(
      {.path = lost.file.c_str(), .durable_path = lost.saved.c_str(), .compatibility = lost.compatibility.c_str()},
      problem);
}

// REQUIRES: the pool's lock; the pool's file is not there.
bool restart_absent(const LostPool& lost, const char* why) {
  Problem problem;
  const LocalPool::Condition is = condition_of(lost, &problem);
  if (is == LocalPool::Condition::kClean) return false;
  if (is != LocalPool::Condition::kUnclean) fail("{}", problem.text);
  const RequiredCheckpointLock unchanged(lost.saved);
  Restart(lost, why).run();
  return true;
}

// The arenas of nodes whose pool is gone: the new pool's table does not know them.  REQUIRES: no process is in a pool
// of that name.
void remove_arenas(const fs::path& pool) {
  const std::string prefix = pool.filename().string() + ".node";
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(pool.parent_path()))
    if (entry.path().filename().string().starts_with(prefix)) left.push_back(entry.path());
  std::error_code ignored;
  for (const fs::path& file : left) fs::remove(file, ignored);
}

bool is_fenced(const fs::path& pool) {
  Problem ignored;
  const auto view = coherence::PoolView::open(pool.c_str(), &ignored);
  return view && (*view)->table().fence.load() != 0;
}

// Before anything is done: a second pool is made beside the first one.
void require_room(const LostPool& lost) {
  const uint64_t needed = extent_of_pool(lost.file, lost.saved).bytes;
  const uint64_t there = fs::space(lost.file.parent_path()).available;
  if (there >= needed) return;
  fail(
      "the fenced pool is made again beside what it has in memory: that needs {} MB in {}, where {} MB are free. Make "
      "room; or remove {}*, of which nothing is needed, and start again",
      megabytes(needed), lost.file.parent_path().string(), megabytes(there), lost.file.string());
}

// REQUIRES: the pool's lock; it is fenced, and there.
bool restart_fenced(const LostPool& lost) {
  require_room(lost);
  fs::rename(lost.file, aside(lost.file));
  std::error_code ignored;
  try {
    const bool made = restart_absent(lost, "what the fenced pool has in memory is given up");
    fs::remove(aside(lost.file), ignored);
    remove_arenas(lost.file);
    return made;
  } catch (...) {
    if (!fs::exists(lost.file, ignored)) fs::rename(aside(lost.file), lost.file, ignored);
    throw;
  }
}

// So that a server that is started by hand waits, and finds the pool.
std::unique_ptr<coherence::PoolLock> lock_pool(const fs::path& pool) {
  auto lock = std::make_unique<coherence::PoolLock>(pool.c_str());
  if (!lock->held()) fail("cannot lock {}.lock: {}", pool.string(), strerror(errno));
  return lock;
}

}  // namespace

bool restart_pool(const LostPool& lost) {
  Problem ignored;
  // It takes the lock of a pool that is in memory, and raises the fence of one whose nodes have died without repair.
  if (fs::exists(lost.file)) (void)condition_of(lost, &ignored);
  const auto lock = lock_pool(lost.file);
  if (!fs::exists(lost.file) && fs::exists(aside(lost.file)))  // a command that was killed has left it so
    fs::rename(aside(lost.file), lost.file);
  if (!fs::exists(lost.file)) return restart_absent(lost, "memory has lost the pool, which was in use");
  return is_fenced(lost.file) && restart_fenced(lost);
}

void remove_given_up(const fs::path& pool) {
  if (!fs::exists(aside(pool))) return;
  const auto lock = lock_pool(pool);
  if (!fs::exists(pool)) return;
  Problem ignored;
  if (const auto view = coherence::PoolView::open(pool.c_str(), &ignored);
      view && (*view)->header().state.load() == coherence::PoolState::kClean)
    remove_arenas(pool);
  fs::remove(aside(pool));
}

}  // namespace gclctl
