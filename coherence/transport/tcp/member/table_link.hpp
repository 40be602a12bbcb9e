// TableLink: a link on which memory node 0 sends the table, and what of it has arrived.
//
// tcp.one-table-under-way: A link has one table at most that is not acknowledged; then comes the newest.
#pragma once

#include <cstdint>

#include "coherence/transport/net/link.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"

namespace coherence::tcp {

struct TableLink {
  net::Link* link = nullptr;    // null: there is none, or it is over
  uint64_t sent_number = 0;     // of the frame with the last table; 0: it is acknowledged
  uint64_t sent = 0, seen = 0;  // epochs
  bool behind = false;          // there is a newer table than was sent

  // After each change of the table.
  void send(const Table& table) {
    if (link == nullptr || link->over()) return;
    behind = sent_number != 0 && !link->acknowledged(sent_number);
    if (behind) return;
    behind = !send_to(*link, table);
    if (behind) return;
    sent_number = link->last_queued();
    sent = table.head.epoch;
  }
  // Whenever something may have been acknowledged.
  void look(const Table& table) {
    if (link == nullptr || link->over()) return;
    if (sent_number != 0 && link->acknowledged(sent_number)) {
      seen = sent;
      sent_number = 0;
    }
    if (behind && sent_number == 0) send(table);
  }
  static bool send_to(net::Link& link, const Table& table) {
    std::span<const std::byte> pieces[3];
    encode_table(table, pieces);
    return link.send(kTableFrame, pieces).ok();
  }
};

}  // namespace coherence::tcp
