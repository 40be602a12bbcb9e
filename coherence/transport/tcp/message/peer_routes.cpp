// Links: which there are, and when they end.
#include "coherence/transport/tcp/message/peer_routes.hpp"

#include <algorithm>

#include "coherence/base/text.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {

using State = EntryWord::State;

PeerRoutes::PeerRoutes(const NodeParts& node, PeerBoxes& boxes, net::Links& links, const PeerAddresses& addresses,
                       Log& log)
    : node_(node),
      boxes_(boxes),
      links_(links),
      addresses_(addresses),
      log_(log),
      peer_(std::make_unique<Peer[]>(boxes.nodes_max())) {
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++) {
    peer_[n].of = this;
    peer_[n].id = NodeId{uint8_t(n)};
  }
}

PeerRoutes::~PeerRoutes() {
  boxes_.close();
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++)
    if (peer_[n].link != nullptr) cut(peer_[n], "the node ends");
}

bool PeerRoutes::serves(const Peer& p) const noexcept {
  const NodeInfo info = node_.members->info(p.id);
  return info.serves() && info.incarnation == p.incarnation();
}

void PeerRoutes::look() {
  if (node_.members->view() != view_) members_changed();
}

// peers.link-of-incarnations
void PeerRoutes::members_changed() {
  view_ = node_.members->view();
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++) {
    Peer& p = peer_[n];
    if (p.link != nullptr) {
      const NodeInfo now = node_.members->info(p.id);
      const bool is_past = p.incarnation() < now.incarnation || (p.incarnation() == now.incarnation && !now.serves());
      if (is_past) cut(p, "it is not in the pool any more");
    }
    pump(p);
  }
  dial_ = true;
  ring(*node_.arena);
}

// peers.later-one-dials
void PeerRoutes::dial() {
  dial_ = false;
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++) {
    Peer& p = peer_[n];
    const NodeInfo now = node_.members->info(p.id);
    if (p.link == nullptr && now.serves() && now.incarnation < node_.incarnation && p.dialed != now.incarnation)
      dial(p, now.incarnation);
  }
}

void PeerRoutes::dial(Peer& p, uint64_t incarnation) {
  const net::Who who = net::Who::node(p.id, incarnation);
  char at[300];
  Text text;
  p.dialed = incarnation;
  if (!addresses_.address_of(p.id, incarnation, at, sizeof at)) {
    p.dialed = 0;  // the next change may tell
    return log_.line(text.add("nobody says where %s listens", who.name().text).c_str());
  }
  Problem problem;
  auto address = net::Address::parse(at, &problem);
  auto endpoints = address ? address->resolve(&problem) : address.error();
  auto link = endpoints ? links_.dial(who, *endpoints, &problem) : endpoints.error();
  if (!link) {
    p.lost = incarnation;
    return log_.line(text.add("cannot connect to %s: %s", who.name().text, problem.text).c_str());
  }
  p.link = *link;
  p.link->context = static_cast<Route*>(&p);
  pump(p);
}

Route* PeerRoutes::accept(net::Link& link) {
  const net::Who& who = link.peer();
  if (who.role != net::Role::kNode || who.id >= boxes_.nodes_max() || who.id == node_.id.value) {
    link.end("this is no node that it could be a peer of");
    return nullptr;
  }
  Peer& p = peer_[who.id];
  const NodeInfo now = node_.members->info(p.id);
  const char* why = nullptr;
  if (who.start < node_.incarnation)
    why = "the node that joins later begins the link";
  else if (who.start < now.incarnation || (who.start == now.incarnation && !now.serves()))
    why = "it is not in the pool any more";
  if (why != nullptr) {
    link.end(why);
    return nullptr;
  }
  if (p.link != nullptr) cut(p, "a newer start of it has connected");
  p.link = &link;
  return &p;
}

void PeerRoutes::Peer::over(net::Link& l) {
  if (&l == link) of->lose(*this);
}

void PeerRoutes::cut(Peer& p, const char* reason) {
  p.link->context = nullptr;
  p.link->end(reason);
  lose(p);
}

// There is no link any more: what was to go by it is needless.
void PeerRoutes::lose(Peer& p) {
  p.lost = p.incarnation();
  p.link = nullptr;
  p.waiting.clear();
  p.flush_frame = 0;
  free_all(p);
  pump(p);
}

// box.entry-of-an-incarnation
void PeerRoutes::free_all(Peer& p) {
  for (uint32_t slot = 0; slot < kPeerSlots; slot++) {
    if (p.open[slot / 64] == 0) {
      slot |= 63;
      continue;
    }
    if ((p.open[slot / 64] >> slot % 64 & 1) == 0) continue;
    std::atomic<uint64_t>& word = boxes_.entry(p.id, slot).word;
    EntryWord now{word.load(std::memory_order_acquire)};
    while (!now.is(State::kReplying) && !word.compare_exchange_weak(now.raw, 0, std::memory_order_acq_rel)) {
    }
    if (!now.is(State::kReplying)) p.open[slot / 64] &= ~(uint64_t{1} << slot % 64);
  }
}

bool PeerRoutes::reaches(NodeSet nodes) const noexcept {
  for (; !nodes.empty(); nodes = nodes.without(nodes.first())) {
    const uint8_t n = nodes.first().value;
    const net::Link* const link = n < boxes_.nodes_max() ? peer_[n].link : nullptr;
    if (link == nullptr || link->over() || link->peer_window() == 0) return false;
  }
  return true;
}

NodeSet PeerRoutes::lost() const noexcept {
  NodeSet nodes;
  for (uint32_t n = 0; n < boxes_.nodes_max(); n++) {
    const Peer& p = peer_[n];
    const NodeInfo now = node_.members->info(p.id);
    if (now.serves() && p.link == nullptr && p.lost == now.incarnation) nodes = nodes.with(p.id);
  }
  return nodes;
}

}  // namespace coherence::tcp
