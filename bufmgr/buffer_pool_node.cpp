// BufferPool's life: create, join, attach, leave.
#include <new>

#include "bufmgr/base/wakeup.hpp"
#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/node_shared.hpp"
#include "bufmgr/page_provider.hpp"
#include "coherence/open_transport.hpp"
#include "coherence/transport/shm/local_pool.hpp"

namespace bufmgr {

using coherence::Errc;

namespace {

constexpr uint32_t kProviderRetryMs = 2;

ArenaPlan plan_of(const NodeOptions& options, uint64_t ring_bytes) {
  return ArenaPlan::make(options.frames, options.sessions_max, RedoRing::data_bytes_of(ring_bytes),
                         options.extra_bytes);
}

template <class T>
T* place(const coherence::Node& node, uint64_t offset) {
  return reinterpret_cast<T*>(node.private_memory() + offset);
}

}  // namespace

Status BufferPool::create_pool(const coherence::PoolFiles& files, const PoolSizes& sizes, Problem* problem) {
  coherence::PoolSpec spec;
  spec.compatibility = files.compatibility;
  if (Status laid_out = lay_out(sizes, &spec); !laid_out) {
    return problem->set(laid_out.error(), "a pool of %llu bytes in %u memory nodes has no room for %u nodes",
                        static_cast<unsigned long long>(sizes.pool_bytes), sizes.memory_nodes, sizes.nodes_max);
  }
  auto pool = coherence::LocalPool::create(files, spec, problem);
  return pool ? Status() : Status(pool.error());
}

Result<coherence::AddedMemoryNode> BufferPool::add_memory_node(const coherence::PoolFiles& files, uint64_t bytes,
                                                               Problem* problem) {
  const auto pages = further_pages_bytes(bytes);
  if (!pages)
    return problem->set(pages.error(), "a memory node of %llu bytes has no room for pages",
                        static_cast<unsigned long long>(bytes));
  return coherence::LocalPool::add_memory_node(files, *pages, problem);
}

Result<std::unique_ptr<BufferPool>> BufferPool::create_node(const NodeOptions& options, Problem* problem) {
  auto transport = coherence::open_transport(options.transport, problem);
  if (!transport) return transport.error();
  auto pool = (*transport)->open_pool(options.files, problem);
  if (!pool) return pool.error();
  const ArenaPlan plan = plan_of(options, ring_of(**pool, options.node).bytes);
  auto node = coherence::Node::join(
      **pool, options.node,
      {.frames = options.frames, .sessions_max = options.sessions_max, .private_bytes = plan.bytes}, problem,
      **transport, options.alone);
  if (!node) return node.error();
  std::unique_ptr<BufferPool> made(new BufferPool(transport.take(), pool.take(), node.take(), options, plan));
  coherence::Counters counters{};
  const auto memory = made->node_->open_memory(counters);
  if (Status opened = made->ring_.open(*memory, made->node_->incarnation()); !opened) {
    const coherence::Node& here = *made->node_;
    const bool unanswered = opened.error() == Errc::kFenced && (!here.fenced() || here.is_cut_off());
    made->node_->give_up();
    if (unanswered) return problem->set(Errc::kUnreached, "the redo ring of node %d is not reached", here.id().value);
    return problem->set(opened.error(), "the redo ring of node %d is damaged", int(options.node.value));
  }
  return made;
}

BufferPool::BufferPool(std::unique_ptr<coherence::Transport> transport, std::unique_ptr<coherence::Pool> pool,
                       std::unique_ptr<coherence::Node> node, const NodeOptions& options, const ArenaPlan& plan)
    : transport_(std::move(transport)),
      pool_(std::move(pool)),
      node_(std::move(node)),
      shared_(place<NodeShared>(*node_, 0)),
      counts_(place<BufferCounts>(*node_, plan.counts)),
      table_(place<std::byte>(*node_, plan.table), options.frames, node_->fence_word()),
      free_(place<std::byte>(*node_, plan.free)),
      marks_(place<std::byte>(*node_, plan.marks), options.frames),
      dirty_(place<std::byte>(*node_, plan.dirty), RedoRing::data_bytes_of(ring_of(options.node).bytes)),
      ring_(&shared_->ring, place<std::byte>(*node_, plan.redo), ring_of(options.node).at, ring_of(options.node).bytes),
      call_(&shared_->provider_called, &shared_->provider_sleeps),
      gate_(node_.get(), &shared_->gate, place<LogGate::Announcement>(*node_, plan.announcements), &ring_, call_),
      extra_(place<std::byte>(*node_, plan.extra)),
      extra_bytes_(options.extra_bytes),
      nodes_max_(pool_->nodes_max()),
      replacement_(options.replacement) {
  for (uint32_t frame = options.frames; frame-- > 0;) free_.push(frame);
  node_->set_upcalls(this, &gate_);
}

BufferPool::~BufferPool() = default;

std::unique_ptr<Session> BufferPool::attach(SessionId id, Interrupts& interrupts, LogSink& log) {
  VERIFY(id.value < node_->sessions_max());
  gate_.set_sink(&log);
  gate_.enlist(id);
  std::unique_ptr<Replacement> replacement;
  if (replacement_ == ReplacementKind::kSecondChance) {
    replacement = std::make_unique<SecondChance>(marks_);
  } else {
    replacement = std::make_unique<EpochSampling>(marks_, (uint64_t{node().value} << 32 | id.value) * 2654435761u + 1);
  }
  return std::unique_ptr<Session>(
      new Session(*this, *node_, id, interrupts, log, counts_[id.value], std::move(replacement)));
}

Status BufferPool::leave(Session& session, bool* last, Problem* problem, coherence::DeathRecorder* recorder) {
  VERIFY(session.guards_held() == 0);
  PageProvider provider(*this, session);
  while (!provider.empty_ring(ring_.head(), PageProvider::Meanwhile::kAttend)) {
    if (fenced()) return problem->set(Errc::kFenced, "the pool is fenced: %s", node_->fence_reason());
    // A page is latched by a peer's request or beyond the flushed log: let both make progress.
    if (Status served = serve(session, 1); !served) return problem->set(served.error(), "serving peers failed");
  }
  return node_->leave(session.coherence(), last, problem, recorder);
}

RegionSpan BufferPool::region(Region region) const {
  const auto extent = pool_->region(int(region));
  return {extent.at, extent.bytes};
}

RegionSpan BufferPool::ring_of(const coherence::Pool& pool, NodeId node) {
  const auto all = pool.region(int(Region::kRings));
  const uint64_t each = all.bytes / pool.nodes_max();
  return {all.at + each * node.value, each};
}

const BufferCounts& BufferPool::counts(SessionId id) const {
  VERIFY(id.value < node_->sessions_max());
  return counts_[id.value];
}

bool BufferPool::run_provider_once(Session& session) { return PageProvider(*this, session).run_once(); }

void BufferPool::wait_for_provider_work(uint32_t ms) noexcept {
  const uint32_t seen = shared_->provider_called.load(std::memory_order_acquire);
  shared_->provider_sleeps.store(1);
  if (gate_.push_wanted()) return shared_->provider_sleeps.store(0, std::memory_order_relaxed);
  // What the last round could not do, for want of a flush or an idle page, is tried again soon.
  const bool idle = free_.count() > PageProvider::low_mark(frames()) && ring_.used() < PageProvider::ring_mark(ring_);
  wait_for_wakeup(shared_->provider_called, seen, idle ? ms : kProviderRetryMs);
  shared_->provider_sleeps.store(0, std::memory_order_relaxed);
}

}  // namespace bufmgr
