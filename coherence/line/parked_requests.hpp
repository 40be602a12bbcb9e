// The requests that wait at a line: in order of arrival, one per peer.  Pure, as step() is.
#pragma once

#include "coherence/line/line_state.hpp"

namespace coherence {

inline bool has_parked(const LineState& s, NodeId from) {
  for (int i = 0; i < s.parked_count; i++)
    if (s.parked[i].from == from.value) return true;
  return false;
}

inline void unpark(LineState& s, int i) {
  for (int k = i + 1; k < s.parked_count; k++) s.parked[k - 1] = s.parked[k];
  s.parked[--s.parked_count] = PeerRequest();
}

// The nodes that join by the request that is served, or one that is parked.
inline NodeSet joining(const LineState& s) {
  NodeSet nodes;
  const auto add = [&](const PeerRequest& r) {
    if (r.kind == RequestKind::kPeerJoin) nodes = nodes.with(NodeId{r.from});
  };
  add(s.serving);
  for (int i = 0; i < s.parked_count; i++) add(s.parked[i]);
  return nodes;
}

// A claim cannot be refused; there is at most one, as the word has one owner.
constexpr int urgency(const PeerRequest& r) { return r.kind == RequestKind::kPeerClaim ? 256 : r.priority; }

// A newer request replaces an older one of its node (which was answered by a crash).  Of a full line the least urgent
// has no place: that one is returned, else a request of no kind.
inline PeerRequest park(LineState& s, const PeerRequest& r) {
  for (int i = 0; i < s.parked_count; i++)
    if (s.parked[i].from == r.from) {
      s.parked[i] = r;
      return {};
    }
  PeerRequest without_place;
  if (s.parked_count == kParkedMax) {
    int lowest = 0;
    for (int i = 1; i < kParkedMax; i++)
      if (urgency(s.parked[i]) < urgency(s.parked[lowest])) lowest = i;
    if (urgency(s.parked[lowest]) >= urgency(r)) return r;
    without_place = s.parked[lowest];
    unpark(s, lowest);
  }
  s.parked[s.parked_count++] = r;
  return without_place;
}

}  // namespace coherence
