#include "bufmgr/global_memory.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bufmgr {

namespace {

constexpr const char* kIdentity = "user=memory\n";  // no server opens such a pool, and no node here a server's
constexpr uint32_t kWorkers = 2;                    // sessions 0 and 1
constexpr uint32_t kPassMs = 50;

using coherence::Errc;

std::string pool_in(const char* directory) { return std::string(directory) + "/pool"; }

coherence::PoolFiles files_at(const std::string& path) {
  return {.path = path.c_str(), .durable_path = nullptr, .compatibility = kIdentity};
}

}  // namespace

// A second join of the same node in one process would look like a node whose first process has died.
class GlobalMemory::OncePerProcess {
 public:
  OncePerProcess(const char* directory, NodeId node) {
    std::error_code error;
    name_ = {std::filesystem::weakly_canonical(directory, error).string(), node.value};
    std::lock_guard hold(mutex());
    held_ = names().insert(name_).second;
  }
  ~OncePerProcess() {
    std::lock_guard hold(mutex());
    if (held_) names().erase(name_);
  }
  OncePerProcess(const OncePerProcess&) = delete;
  bool held() const { return held_; }

 private:
  using Name = std::pair<std::string, uint8_t>;
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::set<Name>& names() {
    static std::set<Name> all;
    return all;
  }
  Name name_;
  bool held_;
};

struct GlobalMemory::Parts {
  // There is no host that could interrupt a wait.
  class Never final : public Interrupts {
   public:
    bool pending() noexcept override { return false; }
  };

  // Nothing here outlives the machine: what is logged counts as durable at once.
  class NoLog final : public LogSink {
   public:
    Lsn append(std::span<const std::byte> record) override {
      return {end_.fetch_add(record.size(), std::memory_order_relaxed) + record.size()};
    }
    Lsn flushed() override { return {end_.load(std::memory_order_relaxed)}; }
    void request_flush(Lsn) override {}

   private:
    std::atomic<uint64_t> end_{0};
  };

  Parts(const char* directory, NodeId node) : once(directory, node) {}

  OncePerProcess once;
  Never never;
  NoLog log;
  std::unique_ptr<BufferPool> pool;
  std::unique_ptr<Session> serving, providing;
  std::thread server, provider;
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::vector<bool> taken;  // session ids

  std::unique_ptr<Session> attach() {
    std::lock_guard hold(mutex);
    uint32_t id = kWorkers;
    while (id < taken.size() && taken[id]) ++id;
    VERIFY(id < taken.size());
    taken[id] = true;
    return pool->attach({uint16_t(id)}, never, log);
  }
  void end(std::unique_ptr<Session> session) {
    const uint16_t id = session->id().value;
    session.reset();
    std::lock_guard hold(mutex);
    taken[id] = false;
  }
};

Status GlobalMemory::create(const char* directory, const GlobalMemoryOptions& options, Problem* problem) {
  if (mkdir(directory, 0700) != 0)
    return problem->set(errno == EEXIST ? Errc::kExists : Errc::kSystem, "cannot make %s: %s", directory,
                        strerror(errno));
  const std::string path = pool_in(directory);
  const Status made = BufferPool::create_pool(
      files_at(path),
      {.pool_bytes = options.bytes, .memory_nodes = options.memory_nodes, .nodes_max = options.nodes_max}, problem);
  if (!made) remove(directory);
  return made;
}

void GlobalMemory::remove(const char* directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

Result<std::unique_ptr<GlobalMemory>> GlobalMemory::join(const char* directory, const GlobalNodeOptions& options,
                                                         Problem* problem) {
  auto parts = std::make_unique<Parts>(directory, options.node);
  if (!parts->once.held())
    return problem->set(Errc::kBusy, "this process is node %d of the pool in %s already", options.node.value,
                        directory);
  if (std::error_code error; !std::filesystem::is_directory(directory, error))
    return problem->set(Errc::kNotFound, "there is no pool in %s", directory);
  const std::string path = pool_in(directory);
  parts->taken.resize(options.threads_max + kWorkers);
  auto pool = BufferPool::create_node({.files = files_at(path),
                                       .node = options.node,
                                       .frames = options.frames,
                                       .sessions_max = options.threads_max + kWorkers},
                                      problem);
  if (!pool) return pool.error();
  parts->pool = pool.take();
  parts->serving = parts->pool->attach({0}, parts->never, parts->log);
  parts->providing = parts->pool->attach({1}, parts->never, parts->log);
  Parts* p = parts.get();
  p->server = std::thread([p] {
    while (!p->stop.load() && p->pool->serve(*p->serving, kPassMs)) {
    }
  });
  p->provider = std::thread([p] {
    while (!p->stop.load())
      if (!p->pool->run_provider_once(*p->providing)) p->pool->wait_for_provider_work(kPassMs);
  });
  return std::unique_ptr<GlobalMemory>(new GlobalMemory(std::move(parts)));
}

GlobalMemory::GlobalMemory(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GlobalMemory::~GlobalMemory() {
  Parts& p = *parts_;
  p.stop.store(true);
  p.pool->coherence_node().ring();
  p.server.join();
  p.provider.join();
  p.providing.reset();
  bool last = false;
  Problem problem;
  if (!p.pool->fenced()) (void)p.pool->leave(*p.serving, &last, &problem);  // fails only if it was fenced meanwhile
  p.serving.reset();
}

BufferPool& GlobalMemory::pool() { return *parts_->pool; }

GlobalThread::GlobalThread(GlobalMemory& memory)
    : memory_(memory), pool_(*memory.parts_->pool), session_(memory.parts_->attach()) {}

GlobalThread::~GlobalThread() { memory_.parts_->end(std::move(session_)); }

Result<PageId> GlobalThread::allocate() {
  VERIFY(session_->guards_held() == 0);  // bufmgr.one-lock-per-thread
  return pool_.allocate(*session_, 1);
}

Status GlobalThread::free(PageId line) {
  VERIFY(session_->guards_held() == 0);  // bufmgr.one-lock-per-thread
  return pool_.free(*session_, line, 1);
}

Status GlobalThread::copy(PageId line, uint32_t offset, void* to, uint32_t bytes) {
  VERIFY(offset <= kLineBytes && bytes <= kLineBytes - offset && session_->guards_held() == 0);
  for (;;) {
    auto guard = pool_.fix_optimistic(*session_, line);
    if (!guard) return guard.error();
    guard->copy(kPageBody + offset, to, bytes);
    if (guard->validate()) return {};
  }
}

coherence::PoolAddress GlobalThread::address_of(uint32_t word) const {
  VERIFY(word < kUserWords);
  return pool_.region(Region::kUserWords).at + uint64_t{word} * 8;
}

Result<uint64_t> GlobalThread::load(uint32_t word) { return session_->memory().load(address_of(word)); }

Result<uint64_t> GlobalThread::fetch_add(uint32_t word, uint64_t addend) {
  return session_->memory().faa(address_of(word), addend);
}

Result<uint64_t> GlobalThread::compare_and_swap(uint32_t word, uint64_t expected, uint64_t desired) {
  return session_->memory().cas(address_of(word), expected, desired);
}

SLock::SLock(GlobalThread& thread, PageId line) {
  VERIFY(thread.session_->guards_held() == 0);  // bufmgr.one-lock-per-thread
  guard_ = thread.pool_.fix_shared(*thread.session_, line);
}

// log.reserve-before-latch
XLock::XLock(GlobalThread& thread, PageId line) : change_(thread.pool_, *thread.session_) {
  VERIFY(thread.session_->guards_held() == 0);  // bufmgr.one-lock-per-thread
  if (const Status room = change_.reserve(kLineBytes); !room)
    guard_ = room.error();
  else
    guard_ = thread.pool_.fix_exclusive(*thread.session_, line);
  if (guard_) change_.join(*guard_);
}

XLock::~XLock() {
  if (changed_) change_.commit();  // bufmgr.commit-under-guards: the guard ends behind it
}

void XLock::write(uint32_t offset, const void* from, uint32_t bytes) {
  VERIFY(offset <= kLineBytes && bytes <= kLineBytes - offset);
  change_.write(*guard_, kPageBody + offset, from, bytes);
  changed_ = true;
}

}  // namespace bufmgr
