// What tools call at memory node 0.
#include <algorithm>
#include <cstring>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/tcp/member/member_server.hpp"
#include "coherence/transport/tcp/member/tool_link.hpp"

namespace coherence::tcp {

static constexpr uint64_t kPlaceAgainNs = 2'000'000'000;  // a memory node may come meanwhile

// tcp.answer-behind-table.  A tool waits for each answer, so there is room for it.
void MemberServer::answer(net::Link& link, const CallFrame& call, Status status, uint64_t value,
                          const Problem& problem) {
  AnswerFrame answer;
  answer.tag = call.tag;
  answer.call = call.call;
  answer.error = status.error();
  answer.value = status ? value : 0;
  if (!status) put_text(problem.text, answer.problem);
  std::span<const std::byte> pieces[2] = {bytes_of(answer), {}};
  if (status && call.call == Call::kHeader) pieces[1] = bytes_of(header_);
  if (!TableLink::send_to(link, table_) || !link.send(kAnswerFrame, pieces)) link.end("it does not take its answers");
}

// Not while the number of the save changes, in another thread.
bool MemberServer::may_load() const {
  return (!closing_ || closing_->step != Step::kWrite) && keeper_.is_copy_current();
}

Status MemberServer::take_call(net::Link& link, const CallFrame& call, Problem* problem) {
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(), [&](auto& one) { return one.tool == &link; });
  if (waits || (&link == changer_ && (publishing_ || closing_ || waits_ || later_)))
    return problem->set(Errc::kCorrupt, "a call before the answer to the last one");
  if (call.call == Call::kHeader) {
    header_.clean = header_.clean != 0 && may_load();
    answer(link, call, {}, 0, {});
    return {};
  }
  if (call.call == Call::kBeginChange) return begin_change(link, call, problem);
  if (&link != changer_) return problem->set(Errc::kCorrupt, "a change that it has not begun");
  return carry_out(link, call, problem);
}

// tcp.change-of-one-tool
Status MemberServer::begin_change(net::Link& link, const CallFrame& call, Problem* problem) {
  if (&link == changer_) return problem->set(Errc::kCorrupt, "a change inside a change");
  Problem busy;
  if (changer_ == nullptr && !closing_) {
    changer_ = &link;
    answer_when_seen(call, 0);
  } else if (call.tries != 0) {
    const net::Who::Name who =
        changer_ != nullptr ? changer_->peer().name() : net::Who::Name{"nobody, while the pool is saved,"};
    const Errc error = busy.set(Errc::kBusy, "%s changes the pool's members just now", who.text);
    answer(link, call, error, 0, busy);
  } else {
    waiting_.push_back({&link, call.tag});
  }
  return {};
}

// tcp.all-admit-alike
void MemberServer::answer_when_seen(const CallFrame& call, uint64_t value) {
  if (further_.count() == 1) return answer(*changer_, call, {}, value, {});
  waits_ = Waits{call, epoch_ + 1, value};
  changed();
}

void MemberServer::go_on_waiting() {
  if (later_ && !dies(NodeId{later_->node})) {
    const CallFrame call = *later_;
    later_.reset();
    Problem words;
    uint64_t value = 0;
    bool waits = false;
    const Status done = reserve(call, &waits, &value, &words);
    if (!waits) answer(*changer_, call, done, value, words);
  }
  if (!waits_ || !further_.have_seen(waits_->epoch)) return;
  const Waits ended = *waits_;
  waits_.reset();
  answer(*changer_, ended.call, {}, ended.value, {});
}

// The tool tries again, and can say meanwhile what it waits for.
void MemberServer::give_up_waiting(uint32_t missing) {
  const CallFrame call = waits_->call;
  waits_.reset();
  Problem words;
  const Errc error = words.set(Errc::kUnreached, "memory node %u of the pool is not here", missing);
  answer(*changer_, call, error, 0, words);
  if (call.call == Call::kBeginChange) end_change("a memory node is not here");
}

// It is over, or its tool has gone; what was reserved, and is not in the pool, is given up.
void MemberServer::end_change(const char* why) {
  changer_ = nullptr;
  if (publishing_ && publishing_->epoch != 0) take_out_again(publishing_->call);
  publishing_.reset();
  waits_.reset();
  later_.reset();
  if (reserved_) {
    NodeLink& node = node_[reserved_->node.value];
    if (node.link != nullptr) cut_off(*node.link, why);
    node.link = nullptr;
    reserved_.reset();
    changed();  // nobody admits it any more
  }
  next_change();
}

void MemberServer::next_change() {
  if (changer_ != nullptr || closing_ || waiting_.empty()) return;  // tcp.saved-beside-service
  const Waiting next = waiting_.front();
  waiting_.pop_front();
  changer_ = next.tool;
  answer_when_seen({.tag = next.tag, .call = Call::kBeginChange}, 0);
}

Status MemberServer::carry_out(net::Link& link, const CallFrame& call, Problem* problem) {
  Problem words;
  Status done;
  uint64_t value = 0;
  bool waits = false;
  switch (call.call) {
    case Call::kEndChange:
      answer(link, call, {}, 0, {});
      end_change("its join was not completed");
      return {};
    case Call::kAllDead:
      if (!changes_.fenced() && changes_.table().repairs_deaths() && !changes_.some_serve())
        value = changes_.dead().bits;
      break;
    case Call::kForget:
      GCL_TRY(forget(NodeSet{call.nodes}, problem));
      break;
    case Call::kReserve:
      done = reserve(call, &waits, &value, &words);
      if (waits) return {};
      break;
    case Call::kPublish:
      if (!is_reserved(NodeId{call.node}, call.incarnation))
        return problem->set(Errc::kCorrupt, "a node that it has not reserved");
      publishing_ = Publishing{call};
      go_on_publishing();
      return {};
    case Call::kWithdraw:
      done = withdraw(call, &value, &words);
      break;
    case Call::kClose:
      if (!changes_.empty()) return problem->set(Errc::kCorrupt, "that a pool is to be closed in which nodes are");
      close(call);
      return {};
    case Call::kHeader:
    case Call::kBeginChange:
      return problem->set(Errc::kCorrupt, "a call out of its place");
  }
  answer(link, call, done, value, words);
  return {};
}

// tcp.saved-beside-service
void MemberServer::close(const CallFrame& call) {
  closing_ = std::make_unique<Closing>();
  closing_->call = call;
  closing_->epoch = epoch_;
  if (further_.count() == 1 || !keeper_.has_copy()) write_copy();
}

void MemberServer::write_copy() {
  Closing& closing = *closing_;
  closing.step = Step::kWrite;
  closing.thread = std::thread([this, &closing] {
    closing.status = keeper_.write_copy(&closing.words);
    closing.written.store(true, std::memory_order_release);  // pairs with go_on_closing()
  });
}

// What they have is whole in memory, unless a page is owned still (pool.failed-save-harmless).
Status MemberServer::not_written(Errc why) {
  if (why != Errc::kCorrupt) keeper_.first_header().state.store(PoolState::kClean);
  return why;
}

void MemberServer::go_on_closing() {
  if (!closing_) return;
  Closing& closing = *closing_;
  if (const uint32_t missing = further_.missing(); closing.step == Step::kTell && missing != 0)
    return end_closing(not_written(closing.words.set(Errc::kUnreached, "memory node %u is not here", missing)));
  if (closing.step == Step::kTell && further_.have_seen(closing.epoch)) {
    closing.step = Step::kOthersWrite;
    further_.begin_order(Order::kWrite, keeper_.first_header().saves + 1);
  }
  if (closing.step == Step::kOthersWrite && further_.order_is_over(&closing.status, &closing.words)) {
    return closing.status ? write_copy() : end_closing(not_written(closing.status.error()));
  }
  if (closing.step == Step::kWrite && closing.written.load(std::memory_order_acquire)) {  // pairs with write_copy()
    closing.thread.join();
    if (closing.status) closing.status = keeper_.count_copy(&closing.words);
    if (!closing.status) return end_closing(closing.status);
    closing.step = Step::kOthersPlace;
    if (further_.count() > 1 && keeper_.has_copy())
      further_.begin_order(Order::kPlace, keeper_.first_header().saves);
    else
      end_closing(keeper_.place_copy(&closing.words));
    return;
  }
  if (closing.step == Step::kOthersPlace && further_.order_is_over(&closing.status, &closing.words))
    end_closing(closing.status ? keeper_.place_copy(&closing.words) : closing.status);
}

bool MemberServer::may_place() const noexcept { return !closing_ && changer_ == nullptr && changes_.empty(); }

// pool.placed-before-used
void MemberServer::go_on_placing() {
  if (place_at_ == 0 || monotonic_ns() < place_at_ || !may_place()) return;
  place_at_ = monotonic_ns() + kPlaceAgainNs;
  if (further_.missing() != 0 || !further_.have_seen(epoch_)) return;  // that no node is in the pool
  closing_ = std::make_unique<Closing>();
  closing_->step = Step::kOthersPlace;
  further_.begin_order(Order::kPlace, keeper_.first_header().saves);
}

void MemberServer::end_closing(Status ended) {
  const Status closed = ended.ok() ? Status() : Status(ended.error());
  const std::optional<CallFrame> call = closing_->call;
  const Problem words = closing_->words;
  closing_.reset();
  place_at_ = keeper_.is_unplaced() ? monotonic_ns() + kPlaceAgainNs : 0;
  if (closed)
    say("the pool is empty, and closed");
  else
    say("the pool is empty, and was not saved: %.400s", words.text);
  changed();
  if (changer_ != nullptr && call) answer(*changer_, *call, closed, 0, words);
  next_change();
}

Status MemberServer::forget(NodeSet nodes, Problem* problem) {
  if (changes_.some_serve() || (nodes.bits & ~changes_.dead().bits) != 0)
    return problem->set(Errc::kCorrupt, "that nodes are repaired which are not dead, or not alone");
  for (; !nodes.empty(); nodes = nodes.without(nodes.first())) {
    changes_.forget(nodes.first());
    say("node %u is repaired: it may join again", unsigned{nodes.first().value});
  }
  changed();
  return {};
}

// *waits: the answer comes later.
Status MemberServer::reserve(const CallFrame& call, bool* waits, uint64_t* incarnation, Problem* problem) {
  const NodeId id{call.node};
  if (id.value >= nodes_max_)
    return problem->set(Errc::kNotFound, "the pool has room for nodes 0 to %u, not for %d", nodes_max_ - 1, id.value);
  NodeLink& node = node_[id.value];
  if (changes_.info(id).serves() && (node.link == nullptr || !node.link->connected())) {
    if (node.link != nullptr) cut_off(*node.link, "the node has been started anew");
    node.link = nullptr;
    die(id, "it has been started anew");
  }
  if (dies(id)) {
    later_ = call;
    *waits = true;
    return {};
  }
  GCL_TRY(decisions_.may_reserve(id, spec_.pool.c_str(), problem));
  if (reserved_) return problem->set(Errc::kBusy, "node %d joins in the same change", reserved_->node.value);
  *incarnation = changes_.reserve();
  reserved_ = Reserved{id, *incarnation};
  node.reaches = 0;
  *waits = further_.count() > 1;
  if (*waits) answer_when_seen(call, *incarnation);
  return {};
}

Status MemberServer::withdraw(const CallFrame& call, uint64_t* empty, Problem* problem) {
  const NodeId id{call.node};
  const auto incarnation = static_cast<unsigned long long>(call.incarnation);
  GCL_TRY(decisions_.may_withdraw(id, call.incarnation, problem));
  if (dies(id))
    return problem->set(Errc::kFenced, "incarnation %llu of node %d is not in the pool any more", incarnation,
                        id.value);
  if (node_[id.value].link != nullptr) close_path(*node_[id.value].link);
  say_repaired(decisions_.withdraw(id));
  say("node %d (incarnation %llu) has left", id.value, incarnation);
  changed();
  *empty = changes_.empty();
  return {};
}

// --- a node that comes

Status MemberServer::let_in(const CallFrame& call, Problem* problem) {
  PoolHeader& header = keeper_.first_header();
  if (!changes_.empty() && header.protocol.load() != call.protocol)
    return problem->set(Errc::kIncompatible, "the nodes in pool %s have protocol version %u, this server has %u",
                        spec_.pool.c_str(), header.protocol.load(), call.protocol);
  if (changes_.empty()) GCL_TRY(keeper_.mark_in_use(problem));
  header.state.store(PoolState::kInUse);
  header.protocol.store(call.protocol);
  const NodeId id{call.node};
  memcpy(node_[id.value].listens_at, call.listens_at, sizeof call.listens_at);
  reserved_.reset();
  changes_.publish(id, call.incarnation, {.pid = call.pid, .now_ns = monotonic_ns(), .by_links = true});
  say("node %u (incarnation %llu) is in the pool", unsigned{call.node},
      static_cast<unsigned long long>(call.incarnation));
  changed();
  return {};
}

// Before the node is in the pool.
void MemberServer::stop_publishing(const char* why) {
  if (!publishing_) return;
  const CallFrame call = publishing_->call;
  publishing_.reset();
  Problem words;
  const Errc error = words.set(Errc::kSystem, "the link of node %u is over: %.300s", unsigned{call.node}, why);
  answer(*changer_, call, error, 0, words);
}

// Its tool waits no longer to hear that it is in the pool: it has done nothing there, and nobody needs to repair it.  A
// lone one leaves a pool that nobody would close.
void MemberServer::take_out_again(const CallFrame& call) {
  const NodeId id{call.node};
  bool alone = true;
  for (uint8_t n = 0; n < nodes_max_; n++) alone &= n == call.node || !changes_.info(NodeId{n}).serves();
  Problem ignored;
  if (alone || dies(id) || !decisions_.may_withdraw(id, call.incarnation, &ignored)) return;
  NodeLink& node = node_[id.value];
  if (net::Link* const link = std::exchange(node.link, nullptr)) cut_off(*link, "its tool waits no longer");
  say_repaired(decisions_.withdraw(id));
  say("node %u (incarnation %llu) is not in the pool any more: some node has not heard in time that it was", id.value,
      static_cast<unsigned long long>(call.incarnation));
  changed();
}

// tcp.join-seen-by-all
void MemberServer::go_on_publishing() {
  if (!publishing_) return;
  const CallFrame call = publishing_->call;
  const auto end = [&](Status status, const Problem& words) {
    publishing_.reset();
    answer(*changer_, call, status, 0, words);
  };
  const NodeLink& comes = node_[call.node];
  Problem words;
  if (publishing_->epoch == 0) {
    if (comes.link == nullptr || !comes.link->connected()) return;
    const Status in = let_in(call, &words);
    if (!in) return end(in, words);
    publishing_->epoch = epoch_;
  }
  const NodeInfo info = changes_.info(NodeId{call.node});
  if (!info.serves() || info.incarnation != call.incarnation || dies(NodeId{call.node})) {
    const Errc error = words.set(Errc::kSystem, "node %u has died while it joined", unsigned{call.node});
    return end(error, words);
  }
  if (nodes_have_seen(publishing_->epoch)) end({}, {});
}

}  // namespace coherence::tcp
