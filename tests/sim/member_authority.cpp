#include "member_authority.hpp"

#include <algorithm>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"
#include "seams.hpp"

namespace sim {

using namespace coherence;  // NOLINT: the simulator speaks of nothing else
using tcp::Call, tcp::CallFrame, tcp::Said, tcp::SayingsRecord, tcp::Table;

namespace {

// kSayingFormer: what was said of any incarnation counts for that which is dead.
void say_of_all(const TableChanges& changes, uint32_t nodes_max, SayingsRecord& record) {
  for (auto& of : record.said)
    for (uint32_t n = 0; n < nodes_max; n++)
      if (of[n] != 0) of[n] = changes.info(NodeId{uint8_t(n)}).incarnation;
}

// kRepairableEarly, kForgottenEarly: with each node that says so another one counts as having said so.
void say_for_another(TableChanges& changes, uint32_t nodes_max, NodeId sayer, const SayingsRecord& record) {
  NodeId other = sayer;
  for (uint32_t n = 0; n < nodes_max && other == sayer; n++)
    if (changes.info(NodeId{uint8_t(n)}).serves()) other = NodeId{uint8_t(n)};
  for (uint32_t n = 0; n < nodes_max; n++) {
    const NodeId dead{uint8_t(n)};
    const NodeInfo info = changes.info(dead);
    const auto says = [&](Said what) { return info.dead() && record.said[uint8_t(what)][n] == info.incarnation; };
    if (mutation == Mutation::kRepairableEarly && says(Said::kQuiescent)) changes.says_quiescent(other, dead);
    if (mutation == Mutation::kForgottenEarly && says(Said::kDrained) && info.state == MemberState::kSwept)
      changes.says_drained(other, dead);
  }
}

const char* name_of(Call call) {
  static constexpr const char* kNames[] = {"header",  "begin change", "end change", "all dead", "forget",
                                           "reserve", "publish",      "withdraw",   "close"};
  static_assert(sizeof kNames / sizeof kNames[0] == size_t(tcp::kLastCall) + 1);
  return kNames[int(call)];
}

}  // namespace

MemberAuthority::MemberAuthority(MappedPool& pool, Ways& ways, std::function<void(NodeId)> comes)
    : pool_(pool), ways_(ways), comes_(std::move(comes)), decisions_(pool.table(), pool.nodes_max()) {
  changed();
}

std::shared_ptr<MemberAuthority::Tool> MemberAuthority::dial(int node) {
  tools_.push_back(std::make_shared<Tool>(Tool{node}));
  return tools_.back();
}

// --- what tools call

void MemberAuthority::answer(const Caller& caller, Status status, uint64_t value, const Problem& problem) {
  ways_.carry_to(Scheduler::kNobody, [to = caller.answer, error = status.error(), value, problem, table = newest_] {
    *to = {true, error, value, problem, table};
  });
}

void MemberAuthority::call(const std::shared_ptr<Tool>& tool, const CallFrame& call,
                           const std::shared_ptr<Answer>& to) {
  if (tool->over) return;
  const Scheduler::Calm calm(*scheduler());
  if (tracing) trace("a process of node %d calls: %s", tool->node, name_of(call.call));
  const Caller caller{tool, to};
  if (call.call == Call::kBeginChange) return begin_change(caller, call.tries != 0);
  if (tool != changer_) {  // what it had begun ended with its former link
    Problem problem;
    return answer(caller, problem.set(Errc::kCorrupt, "a change that it has not begun"), 0, problem);
  }
  if (call.call == Call::kPublish) {
    VERIFY(reserved_ && reserved_->node.value == call.node && reserved_->incarnation == call.incarnation);
    publishing_ = Publishing{call, caller};
    return go_on_publishing();
  }
  Problem problem;
  uint64_t value = 0;
  const Status done = carry_out(call, &value, &problem);
  answer(caller, done, value, problem);
  if (call.call == Call::kEndChange) end_change();
}

Status MemberAuthority::carry_out(const CallFrame& call, uint64_t* value, Problem* problem) {
  const NodeId id{call.node};
  switch (call.call) {
    case Call::kAllDead:
      if (!changes().fenced() && changes().table().repairs_deaths() && !changes().some_serve())
        *value = changes().dead().bits;
      return {};
    case Call::kForget:
      for (NodeSet left{call.nodes}; !left.empty(); left = left.without(left.first())) changes().forget(left.first());
      changed();
      return {};
    case Call::kReserve:
      return reserve(id, value, problem);
    case Call::kWithdraw:
      GCL_TRY(decisions_.may_withdraw(id, call.incarnation, problem));
      (void)decisions_.withdraw(id);
      changed();
      *value = changes().empty();
      return {};
    case Call::kClose:
      return pool_.close(problem);
    default:
      return {};
  }
}

void MemberAuthority::begin_change(const Caller& caller, bool tries) {
  if (changer_ == nullptr) {
    changer_ = caller.tool;
    return answer(caller, {}, 0, {});
  }
  if (!tries) return waiting_.push_back(caller);
  Problem busy;
  const Errc error = busy.set(Errc::kBusy, "another process changes the pool's members just now");
  answer(caller, error, 0, busy);
}

// What was reserved, and is not in the pool, is given up.
void MemberAuthority::end_change() {
  changer_.reset();
  publishing_.reset();
  if (reserved_) link_[reserved_->node.value] = {};
  reserved_.reset();
  if (waiting_.empty()) return;
  const Caller next = waiting_.front();
  waiting_.pop_front();
  changer_ = next.tool;
  answer(next, {}, 0, {});
}

void MemberAuthority::over(const std::shared_ptr<Tool>& tool) {
  const Scheduler::Calm calm(*scheduler());
  over_now(tool);
}

void MemberAuthority::over_now(const std::shared_ptr<Tool>& tool) {
  tool->over = true;
  std::erase(tools_, tool);
  std::erase_if(waiting_, [&](const Caller& one) { return one.tool == tool; });
  if (tool == changer_) end_change();
}

Status MemberAuthority::reserve(NodeId id, uint64_t* incarnation, Problem* problem) {
  GCL_TRY(decisions_.may_reserve(id, pool_.path(), problem));
  link_[id.value] = {};  // a former incarnation's: a link of a newer start ends it (net/link.hpp)
  *incarnation = changes().reserve();
  reserved_ = Reserved{id, *incarnation};
  return {};
}

// --- a node that comes

Status MemberAuthority::let_in(const CallFrame& call, Problem* problem) {
  if (changes().empty()) GCL_TRY(pool_.mark_in_use(problem));
  pool_.header().state.store(PoolState::kInUse);
  pool_.header().protocol.store(call.protocol);
  reserved_.reset();
  publishing_->epoch = epoch_ + 1;  // outside fibers all have it before changed() returns
  const NodeId id{call.node};
  changes().publish(id, call.incarnation,
                    {.pid = kFirstPid + int32_t{call.node}, .now_ns = monotonic_ns(), .by_links = true});
  comes_(id);
  changed();
  return {};
}

// tcp.join-seen-by-all
void MemberAuthority::go_on_publishing() {
  if (!publishing_) return;
  const CallFrame call = publishing_->call;
  if (publishing_->epoch == 0) {
    if (link_[call.node].end == nullptr) return;
    Problem problem;
    if (const Status in = let_in(call, &problem); !in) return stop_publishing(problem.text);
    if (!publishing_) return;
  }
  const NodeInfo info = changes().info(NodeId{call.node});
  if (!info.serves() || info.incarnation != call.incarnation) return stop_publishing("it has died while it joined");
  for (uint32_t n = 0; n < pool_.nodes_max() && mutation != Mutation::kJoinUnseen; n++)
    if (changes().info(NodeId{uint8_t(n)}).serves() && link_[n].seen < publishing_->epoch)
      return void(publishing_->waited = true);
  counts_.joins_waited += publishing_->waited;
  const Caller caller = publishing_->caller;
  publishing_.reset();
  answer(caller, {}, 0, {});
}

void MemberAuthority::stop_publishing(const char* why) {
  if (!publishing_) return;
  const Caller caller = publishing_->caller;
  publishing_.reset();
  Problem problem;
  const Errc error = problem.set(Errc::kSystem, "a node does not join: %.300s", why);
  answer(caller, error, 0, problem);
}

void MemberAuthority::link_begins(const std::shared_ptr<NodeEnd>& end) {
  const Scheduler::Calm calm(*scheduler());
  Link& link = link_[end->id().value];
  if (end->is_over()) return;  // which may have arrived first
  if (!reserved_ || reserved_->node != end->id() || reserved_->incarnation != end->incarnation()) return;
  link = {};
  link.end = end;
  send(link);
  go_on_publishing();
}

// --- a node that is in the pool

void MemberAuthority::link_over(const NodeEnd* end) {
  const Scheduler::Calm calm(*scheduler());
  if (link_[end->id().value].end.get() == end) link_over_now(end->id());
}

// tcp.death-is-a-closed-link
void MemberAuthority::link_over_now(NodeId node) {
  Link& link = link_[node.value];
  if (link.end == nullptr) return;
  const uint64_t incarnation = link.end->incarnation();
  link = {};
  bury(node, incarnation);
  if (reserved_ && reserved_->node == node && reserved_->incarnation == incarnation)
    stop_publishing("its link is over");
  go_on_publishing();
}

void MemberAuthority::bury(NodeId node, uint64_t incarnation) {
  const NodeInfo info = changes().info(node);
  NodeSet repaired;
  if (info.serves() && info.incarnation == incarnation && decisions_.bury(node, &repaired)) changed();
}

void MemberAuthority::died(NodeId node) {
  const Scheduler::Calm calm(*scheduler());
  for (const auto& tool : std::vector(tools_))
    if (tool->node == node.value) over_now(tool);
  link_over_now(node);
}

void MemberAuthority::says(NodeId sayer, uint64_t incarnation, const SayingsRecord& record) {
  const Scheduler::Calm calm(*scheduler());
  if (!changes().info(sayer).serves() || changes().info(sayer).incarnation != incarnation) counts_.former_sayings++;
  SayingsRecord says = record;
  if (mutation == Mutation::kSayingFormer) say_of_all(changes(), pool_.nodes_max(), says);
  if (mutation == Mutation::kRepairableEarly || mutation == Mutation::kForgottenEarly)
    say_for_another(changes(), pool_.nodes_max(), sayer, says);
  if (decisions_.take(sayer, incarnation, says).changed) changed();
}

// --- the table

void MemberAuthority::changed() {
  epoch_++;
  auto table = std::make_shared<Table>();
  decisions_.fill(epoch_, table.get());
  table->head.memory_nodes = pool_.memory_nodes();
  table->head.protocol = pool_.header().protocol.load();
  newest_ = std::move(table);
  if (tracing && scheduler() != nullptr) say_who_is_there();
  for (Link& link : link_) send(link);
}

void MemberAuthority::say_who_is_there() const {
  static constexpr char kStates[] = "-lLds";  // absent, live, leaving, dead, swept
  char states[kNodesMax + 1] = {};
  for (uint32_t n = 0; n < pool_.nodes_max(); n++) states[n] = kStates[newest_->node[n].state];
  trace("table %llu: %s, repairable %llx", static_cast<unsigned long long>(epoch_), states,
        static_cast<unsigned long long>(newest_->head.repairable));
}

// tcp.one-table-under-way
void MemberAuthority::send(Link& link) {
  if (link.end == nullptr) return;
  counts_.skipped += link.behind && link.under_way;
  link.behind = link.under_way;
  if (link.under_way) return;
  link.under_way = true;
  ways_.carry_to(link.end->id().value, [this, end = link.end, table = newest_] {
    end->table_comes(*table);
    ways_.carry_to(Scheduler::kNobody, [this, end, epoch = table->head.epoch] { acknowledged(end.get(), epoch); });
  });
}

void MemberAuthority::acknowledged(const NodeEnd* end, uint64_t epoch) {
  const Scheduler::Calm calm(*scheduler());
  Link& link = link_[end->id().value];
  if (link.end.get() != end) return;
  link.under_way = false;
  link.seen = epoch;
  if (tracing) trace("node %d has table %llu", end->id().value, static_cast<unsigned long long>(epoch));
  if (link.behind && mutation != Mutation::kTableLost) send(link);
  go_on_publishing();
}

}  // namespace sim
