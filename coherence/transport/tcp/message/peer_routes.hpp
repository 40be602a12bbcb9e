// PeerRoutes: a node's links to its peers: sends what its processes have left in the PeerBoxes, and does here what
// peers say.
//
// peers.later-one-dials: Of two nodes the one with the higher incarnation, which joins later, begins the link, before
// it is in the node table.  So it has reached every node that serves, or does not join.
// peers.link-of-incarnations: A link is of two incarnations.  It ends as soon as the node table says that one of them
// does not serve any more, before another frame of it is looked at.  What was left for it, and what it has asked, goes
// with it; nothing of it reaches a later incarnation (coherence.messages-for-incarnation).
// peers.home-does-it: What a peer says is done here by the worker of the node that it is said to: it alone changes
// reply words, frames, marks of grants in flight and wakeup events of its node for peers.
// peers.sent-in-order: What processes have left for one peer goes in the order in which it was taken from the boxes
// (box.grants-in-order).  What has no room in the link's window, or no link yet, waits in the worker's memory, until it
// has, or the peer is gone.
//
// One thread.  Its process has the node's arena and the PeerBoxes where the sessions have them.
//
//   PeerRoutes peers(node.parts(), boxes, worker->links(), addresses, log);
//   worker->add(peers);
//   worker->set_acceptor(&peers);
//   ...listen; peers.members_changed() after each change of the node table...
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/transport/net/links.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/base/route.hpp"
#include "coherence/transport/tcp/message/message_frame.hpp"
#include "coherence/transport/tcp/message/peer_addresses.hpp"
#include "coherence/transport/tcp/message/peer_boxes.hpp"

namespace coherence::tcp {

class PeerRoutes final : public Acceptor, public WorkSource {
 public:
  // All outlive it.
  PeerRoutes(const NodeParts&, PeerBoxes&, net::Links&, const PeerAddresses&, Log&);
  // Ends all links.  What is left afterwards is sent by nobody.
  ~PeerRoutes();
  PeerRoutes(const PeerRoutes&) = delete;

  // The node table is another one.  (Without this it is seen by take(), and when a peer says something.)
  void members_changed();
  // Whether there is a link to each of them: it was connected once, and is not over.
  bool reaches(NodeSet) const noexcept;
  // Nodes that serve, and the link to which is over: nothing that they say arrives any more.
  NodeSet lost() const noexcept;

  Route* accept(net::Link&) override;
  void take() override;
  bool any() noexcept override { return boxes_.any_left() || (!flushing_ && boxes_.flush_asked() != flush_seen_); }

 private:
  // Something that goes to a peer.
  struct Item {
    enum class Kind : uint8_t { kAsk, kReply, kGrant, kWakeup } kind;
    uint8_t incarnation;     // of a grant
    uint32_t what;           // slot, line or event
    uint64_t otherwise = 0;  // of a wakeup: WakeupMessage
  };
  enum class Sent : uint8_t {
    kSent,
    kNeedless,  // nobody waits for it any more
    kNotYet,    // there is no room, or no link yet
  };

  struct Peer final : Route {
    PeerRoutes* of = nullptr;
    NodeId id;
    net::Link* link = nullptr;            // null: not there yet, or over
    uint64_t dialed = 0;                  // the incarnation to which a link was begun last
    uint64_t lost = 0;                    // the incarnation whose link was over last
    std::deque<Item> items;               // in order
    uint64_t put = 0, gone = 0;           // items since the beginning: that came, that are sent or needless
    uint64_t open[kPeerSlots / 64] = {};  // entries that are not free
    std::vector<AskMessage> waiting;      // for entries that a former incarnation's reply still has
    uint64_t flush_put = 0,
             flush_frame = 0;  // what a flush waits for: so many items gone; then, that frame acknowledged
    bool flush_sent = true;    // they are gone

    uint64_t incarnation() const noexcept { return link->peer().start; }  // REQUIRES: link
    void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override;
    void begun(net::Link&) override { of->pump(*this); }
    void reconnected(net::Link&) override { of->pump(*this); }
    void room(net::Link&) override { of->pump(*this); }
    void over(net::Link&) override;
  };

  bool serves(const Peer&) const noexcept;  // the incarnation at the end of its link; REQUIRES: link
  void look();
  void dial();
  void dial(Peer&, uint64_t incarnation);
  void cut(Peer&, const char* reason);
  void lose(Peer&);
  void free_all(Peer&);
  // peer_sending.cpp
  void take_from(Peer&);
  static void put(Peer&, Item);
  static void put_wakeup(Peer&, Item);
  void pump(Peer&);
  Sent send(Peer&, const Item&);
  Sent send_ask(Peer&, uint16_t slot);
  Sent send_reply(Peer&, uint32_t slot);
  Sent send_wakeup(Peer&, const Item&);
  static Sent send(Peer&, uint16_t type, std::span<const net::Link::Piece>);
  void begin_flush();
  void go_on_with_flush();
  static bool is_flushed(Peer&);
  // peer_receiving.cpp
  Status receive(Peer&, uint16_t type, std::span<const std::byte> payload, Problem*);
  Status asked(Peer&, const AskMessage&, Problem*);
  Status replied(Peer&, const ReplyMessage&, Problem*);
  Status grant_complete(Peer&, const GrantCompleteMessage&, Problem*);
  void wake(const WakeupMessage&);
  void install(Peer&, const AskMessage&);
  void free(Peer&, uint32_t slot);

  const NodeParts& node_;
  PeerBoxes& boxes_;
  net::Links& links_;
  const PeerAddresses& addresses_;
  Log& log_;
  uint64_t view_ = ~uint64_t{0};  // of the node table, when it was looked at
  bool dial_ = false;
  uint32_t flush_seen_ = 0;  // PeerBoxes::flush_asked()
  bool flushing_ = false;
  const std::unique_ptr<Peer[]> peer_;
};

}  // namespace coherence::tcp
