#include "coherence/transport/tcp/member/member_server.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <utility>

#include "coherence/base/os.hpp"
#include "coherence/base/text.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/tcp/member/patience.hpp"
#include "coherence/transport/tcp/member/tools_look.hpp"

namespace coherence::tcp {

static constexpr uint64_t kNever = ~uint64_t{0};
// How soon a tool hears that the pool is saved.
static constexpr int kLookAtSaveMs = 20;

// How long nothing is in the log of a wait for a memory node, and how often it is said then.
static constexpr uint64_t kSayAfterNs = 2'000'000'000, kSayAgainNs = 10'000'000'000;
static constexpr uint64_t kSayYoungAgainNs = 60'000'000'000;

static_assert(net::frame_bytes(kTableBytesMax) <= kOtherBytesMax);

MemberServer::MemberServer(PoolKeeper& keeper, const Spec& spec, Log& log)
    : keeper_(keeper),
      spec_(spec),
      log_(log),
      nodes_max_(uint8_t(keeper.first_header().nodes_max)),
      decisions_(keeper.table(), nodes_max_),
      further_(keeper, log),
      epoch_(spec.start) {
  for (uint8_t n = 0; n < nodes_max_; n++) {
    const NodeInfo was = changes_.info(NodeId{n});
    if (!was.serves()) continue;
    cut_off_at_ = monotonic_ns() + spec.patience_ns;
    say("node %u (incarnation %llu) was in the pool when memory node 0 ended: its link is over, so it is cut off", n,
        static_cast<unsigned long long>(was.incarnation));
  }
  if (keeper_.is_unplaced()) place_at_ = monotonic_ns();
  settled_ = further_.count();  // nodes of before are cut off
  changed();
}

MemberServer::~MemberServer() {
  if (closing_ && closing_->thread.joinable()) closing_->thread.join();
}

void MemberServer::say(const char* format, ...) {
  Problem line;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line.text, sizeof line.text, format, arguments);
  va_end(arguments);
  log_.line(line.text);
}

// --- which nodes may be here, and what a link may have carried out

bool MemberServer::is_reserved(NodeId node, uint64_t incarnation) const noexcept {
  return reserved_ && reserved_->node == node && reserved_->incarnation == incarnation;
}

bool MemberServer::may_be_here(NodeId node, uint64_t incarnation) const noexcept {
  if (node.value >= nodes_max_) return false;
  const NodeInfo info = changes_.info(node);
  return (info.serves() && info.incarnation == incarnation && !dies(node)) || is_reserved(node, incarnation);
}

// tcp.live-incarnations-only, tcp.tools-look
Status MemberServer::may_run(const net::Link& link, const Batch& batch, Problem* problem) noexcept {
  const net::Who& who = link.peer();
  if (who.role == net::Role::kNode) {
    if (may_be_here(NodeId{who.id}, who.start)) return {};
    return problem->set(Errc::kFenced, "a batch of an incarnation that is not in the pool (any more)");
  }
  if (&link == changer_ && !changes_.some_serve() && !closing_) return {};
  if (writes(batch)) return problem->set(Errc::kCorrupt, "a batch that writes, though nodes are in the pool");
  return {};
}

void MemberServer::begun(net::Link& link) {
  const net::Who& who = link.peer();
  if (Problem why; who.role == net::Role::kMemoryNode && !further_.begun(link, table_, &why)) {
    say("ends the link to %s: %s", who.name().text, why.text);
    return link.end(why.text);
  }
  if (who.role != net::Role::kNode) return;
  const NodeId id{who.id};
  if (id.value >= nodes_max_ || !is_reserved(id, who.start) || node_[id.value].link != nullptr) {
    Problem why;
    why.write("incarnation %llu of node %u is not in the pool, or was cut off",
              static_cast<unsigned long long>(who.start), unsigned{who.id});
    say("ends the link to %s: %s", who.name().text, why.text);
    return link.end(why.text);
  }
  NodeLink& node = node_[id.value];
  node = {};
  node.link = &link;
  node.send(table_);
}

// tcp.death-is-a-closed-link
void MemberServer::over(net::Link& link) {
  const net::Who& who = link.peer();
  if (who.role == net::Role::kMemoryNode) return further_.over(link);
  if (who.role != net::Role::kNode) {
    std::erase_if(waiting_, [&](const Waiting& one) { return one.tool == &link; });
    if (&link == changer_) {
      say("%s has left in the middle of a change of members", who.name().text);
      end_change("the tool that let it in has left");
    }
    return;
  }
  NodeLink& node = node_[std::min<size_t>(who.id, kNodesMax - 1)];
  if (node.link != &link) return;
  node.link = nullptr;
  const NodeInfo info = changes_.info(NodeId{who.id});
  if (info.serves() && info.incarnation == who.start) die(NodeId{who.id}, link.reason());
  if (is_reserved(NodeId{who.id}, who.start)) stop_publishing(link.reason());
}

void MemberServer::after_pass() {
  for (uint8_t n = 0; n < nodes_max_; n++) {
    node_[n].look(table_);
  }
  further_.look(table_);
  if (cut_off_at_ != 0 && monotonic_ns() >= cut_off_at_) {
    cut_off_at_ = 0;
    for (uint8_t n = 0; n < nodes_max_; n++)
      if (changes_.info(NodeId{n}).serves() && node_[n].link == nullptr)
        die(NodeId{n}, "it was cut off when memory node 0 ended");
  }
  if (judge_at_ != 0 && monotonic_ns() >= judge_at_) judge_unreached();
  settle_memory_nodes();
  go_on_dying();
  go_on_waiting();
  go_on_publishing();
  go_on_closing();
  go_on_placing();
  say_what_is_waited_for();
  say_who_holds_up_young();
}

int MemberServer::wait_ms() const noexcept {
  if (closing_) return kLookAtSaveMs;
  uint64_t at = kNever;
  for (const uint64_t due : {cut_off_at_, judge_at_, say_at_, say_young_at_, may_place() ? place_at_ : 0})
    if (due != 0) at = std::min(at, due);
  const uint64_t now = monotonic_ns();
  if (at == kNever) return -1;
  return at <= now ? 0 : int(std::min<uint64_t>((at - now + 999'999) / 1'000'000, 1'000'000));
}

// --- frames

Status MemberServer::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload, Problem* problem) {
  const net::Who& who = link.peer();
  if (type == kCallFrame && who.role == net::Role::kTool) {
    CallFrame call;
    GCL_TRY(decode_call(payload, &call, problem));
    return take_call(link, call, problem);
  }
  if (type == kSayingsFrame && who.role == net::Role::kNode) {
    SayingsRecord sayings;
    GCL_TRY(decode_sayings(payload, &sayings, problem));
    for (const auto& kind : sayings.said)
      for (uint32_t n = nodes_max_; n < uint32_t(kNodesMax); n++)
        if (kind[n] != 0) return problem->set(Errc::kCorrupt, "sayings of node %u, which the pool does not have", n);
    take_sayings(NodeId{who.id}, sayings);
    return {};
  }
  if (type == kLeaseFrame && who.role == net::Role::kNode && payload.empty()) return {};
  if (type == kMemoryNodeFrame && who.role == net::Role::kMemoryNode) {
    MemoryNodeFrame has;
    bool counted = false;
    GCL_TRY(decode_memory_node(payload, &has, problem));
    if (closing_ && who.id == further_.count())  // the copy would lack it
      return problem->set(Errc::kBusy, "that the pool has one more, while it is saved");
    GCL_TRY(further_.says(link, has, has_paths(), &counted, problem));
    changed();
    return {};
  }
  if (type == kDoneFrame && who.role == net::Role::kMemoryNode) {
    DoneFrame done;
    GCL_TRY(decode_done(payload, &done, problem));
    return further_.done(link, done, problem);
  }
  return problem->set(Errc::kCorrupt, "a frame of type %u", unsigned{type});
}

// --- what nodes say

void MemberServer::take_sayings(NodeId sayer, const SayingsRecord& sayings) {
  NodeLink& node = node_[sayer.value];
  if (node.link == nullptr) return;
  node.reaches = uint32_t(sayings.reaches);  // of one that joins, too
  table_.node[sayer.value].reaches = node.reaches;
  const uint64_t incarnation = node.link->peer().start;
  const MemberDecisions::ComeTo come_to = decisions_.take(sayer, incarnation, sayings);
  if (!come_to.counts) return;
  if (come_to.leaves)
    say("node %u (incarnation %llu) leaves", unsigned{sayer.value}, static_cast<unsigned long long>(incarnation));
  if (come_to.fences) say("node %u fences the pool", unsigned{sayer.value});
  memcpy(node.unreached, sayings.said[uint8_t(Said::kUnreached)], sizeof node.unreached);
  if (judge_at_ == 0 && !unreached_by(sayer).empty()) judge_at_ = monotonic_ns() + spec_.patience_ns;
  say_repaired(come_to.repaired);
  if (come_to.changed) changed();
}

void MemberServer::say_repaired(NodeSet nodes) {
  for (; !nodes.empty(); nodes = nodes.without(nodes.first()))
    say("node %u is repaired: it may join again", unsigned{nodes.first().value});
}

// --- nodes that reach memory, and not each other

// One that is to be dead has no link any more, and is judged already.
bool MemberServer::complains(NodeId of, NodeId about) const noexcept {
  const NodeInfo info = changes_.info(about);
  return changes_.info(of).serves() && info.serves() && !dies(of) && !dies(about) && node_[of.value].link != nullptr &&
         node_[of.value].unreached[about.value] == info.incarnation;
}

// Whichever of the two says so.
NodeSet MemberServer::unreached_by(NodeId node) const noexcept {
  NodeSet set;
  for (uint8_t n = 0; n < nodes_max_; n++)
    if (complains(node, NodeId{n}) || complains(NodeId{n}, node)) set = set.with(NodeId{n});
  return set;
}

// tcp.unreached-one-dies
void MemberServer::judge_unreached() {
  judge_at_ = 0;
  for (;;) {
    NodeId goes;
    int most = 0;
    for (uint8_t n = 0; n < nodes_max_; n++)
      if (const int count = unreached_by(NodeId{n}).count(); count > 0 && count >= most) goes = NodeId{n}, most = count;
    if (most == 0) return;
    Problem why;
    why.write("%d of the pool's nodes and it do not reach each other", most);
    net::Link* const link = std::exchange(node_[goes.value].link, nullptr);
    if (link != nullptr) cut_off(*link, why.text);
    die(goes, why.text);
  }
}

// --- deaths

// tcp.dead-when-all-refuse
void MemberServer::die(NodeId node, const char* why) {
  if (!changes_.info(node).serves() || dies(node)) return;
  dying_[node.value].why.write("%s", why);
  if (further_.count() == 1) return bury(node);
  dying_[node.value].epoch = epoch_ + 1;
  changed();
}

void MemberServer::go_on_dying() {
  for (uint8_t n = 0; n < nodes_max_; n++)
    if (dies(NodeId{n}) && further_.have_seen(dying_[n].epoch)) bury(NodeId{n});
}

void MemberServer::bury(NodeId node) {
  const NodeInfo info = changes_.info(node);
  const Problem reason_of_death = dying_[node.value].why;
  const char* const why = reason_of_death.text;
  dying_[node.value] = {};
  NodeSet repaired;
  if (!decisions_.bury(node, &repaired)) return;
  const auto incarnation = static_cast<unsigned long long>(info.incarnation);
  say("node %u (incarnation %llu) is dead: %.300s", unsigned{node.value}, incarnation, why);
  say_repaired(repaired);
  changed();
}

// The operator should know which one holds it up (tcp.all-admit-alike).
void MemberServer::say_what_is_waited_for() {
  NodeId dead;
  for (uint8_t n = 0; n < nodes_max_; n++)
    if (dies(NodeId{n})) dead = NodeId{n};
  const uint64_t now = monotonic_ns();
  if (!dead.valid() && !waits_) {
    say_at_ = 0;
  } else if (say_at_ == 0) {
    say_at_ = now + kSayAfterNs;
  } else if (now >= say_at_) {
    say_at_ = now + kSayAgainNs;
    const uint32_t missing = further_.missing();
    Problem what;
    if (dead.valid())
      what.write("to be certain that node %u is dead", unsigned{dead.value});
    else
      what.write("to let a tool change members");
    say("waits %s for %s %u, which %s", what.text, missing != 0 ? "memory node" : "all memory nodes, up to number",
        missing != 0 ? missing : further_.count() - 1, missing != 0 ? "is not here" : "have not answered");
    if (waits_ && missing != 0) give_up_waiting(missing);
  }
}

// --- the table

static HeaderRecord header_of(const PoolHeader& header) {
  HeaderRecord record = {};
  record.format_version = header.format_version;
  record.block_size = header.block_size;
  record.nodes_max = header.nodes_max;
  record.memory_nodes = header.memory_nodes.load();
  record.pool_id = header.pool_id;
  record.saves = header.saves;
  record.clean = header.state.load() == PoolState::kClean;
  for (int i = 0; i < kRegionsMax; i++) record.region[i] = {header.region[i].offset, header.region[i].bytes};
  put_text(header.compatibility, record.compatibility);
  return record;
}

void MemberServer::fill_table() {
  const PoolHeader& header = keeper_.first_header();
  TableHead& head = table_.head;
  decisions_.fill(epoch_, &table_);
  head.saves = header.saves;
  head.memory_nodes = further_.count();
  head.young = head.memory_nodes - settled_;
  head.changer = changer_ != nullptr ? changer_->peer().start : 0;
  head.protocol = header.protocol.load();
  head.patience_ms = std::clamp(header.patience_ms.load(std::memory_order_relaxed), kPatienceMinMs, kPatienceMaxMs);
  for (uint8_t n = 0; n < nodes_max_; n++) {
    const NodeInfo info = changes_.info(NodeId{n});
    table_.node[n].admitted = info.serves() && !dies(NodeId{n}) ? info.incarnation : 0;
    table_.node[n].reaches = node_[n].link != nullptr ? node_[n].reaches : 0;
    put_text(info.serves() ? node_[n].listens_at : "", table_.node[n].listens_at);
  }
  if (reserved_) table_.node[reserved_->node.value].admitted = reserved_->incarnation;
  for (uint32_t k = 1; k < further_.count(); k++) table_.memory_node[k] = further_.places(k);
  const PagePlaces places = header.places();
  table_.memory_node[0].words_at = places.words_at.offset();
  table_.memory_node[0].pages_at = places.pages_at.offset();
  table_.memory_node[0].pages = places.pages;
  header_ = header_of(header);
}

// By those that serve, and one that joins.
uint32_t MemberServer::reached_by_all() const noexcept {
  uint32_t reached = further_.count();
  for (uint8_t n = 0; n < nodes_max_; n++)
    if (changes_.info(NodeId{n}).serves() || (reserved_ && reserved_->node == NodeId{n}))
      reached = std::min(reached, node_[n].reaches);
  return reached;
}

// tcp.pages-where-all-reach
void MemberServer::settle_memory_nodes() {
  const uint32_t reached = reached_by_all();
  if (reached <= settled_) return;
  for (; settled_ < reached; settled_++) say("all nodes reach memory node %u: it is used from now on", settled_);
  changed();
}

// The operator should know which one has to be given a way.
void MemberServer::say_who_holds_up_young() {
  const uint64_t now = monotonic_ns();
  if (settled_ == further_.count()) {
    say_young_at_ = 0;
  } else if (say_young_at_ == 0) {
    say_young_at_ = now + kSayAfterNs;
  } else if (now >= say_young_at_) {
    say_young_at_ = now + kSayYoungAgainNs;
    Text nodes;
    for (uint8_t n = 0; n < nodes_max_; n++)
      if (changes_.info(NodeId{n}).serves() && node_[n].reaches <= settled_)
        nodes.add("%snode %u", nodes.empty() ? "" : ", ", unsigned{n});
    if (!nodes.empty())
      say("memory node %u at %s is not used yet: %.200s %s not reach it", settled_, further_.places(settled_).address,
          nodes.c_str(), strchr(nodes.c_str(), ',') == nullptr ? "does" : "do");
  }
}

// Those that serve.
bool MemberServer::nodes_have_seen(uint64_t epoch) const noexcept {
  for (uint8_t n = 0; n < nodes_max_; n++)
    if (changes_.info(NodeId{n}).serves() && node_[n].seen < epoch) return false;
  return true;
}

// tcp.table-mirrored
void MemberServer::changed() {
  epoch_++;
  fill_table();
  for (uint32_t n = 0; n < nodes_max_; n++) node_[n].send(table_);
  further_.send(table_);
}

}  // namespace coherence::tcp
