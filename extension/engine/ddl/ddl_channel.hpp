// DdlChannel: how one primary's DDL transaction reaches all others: a lock, a mailbox, and acknowledgements.
//
// D1. Only the holder of the lock posts messages.  A message is posted when every participant has dealt with the one
//     before it; a kAbort, which has no body, may be posted at any time.
// D2. A node takes part (is a member) from join(), which runs under the lock, to leave(), when none of its sessions is
//     left that could use what the others change.  Who left is not waited for: it catches up from the log.
// D3. The lock may be given up before the last message was dealt with: its next holder waits for that.
// D4. Nothing here waits: callers poll, and sleep as their host wants it.
//
//   author:  if (channel.try_lock(me)) { parts = channel.members(); n = channel.post(...); until all settled(n) ... }
//   others:  if (channel.sequence() != last) { channel.read(...); ...; channel.acknowledge(n, ok, text); }
#pragma once

#include <cstdint>
#include <string_view>

#include "coherence/base/ids.hpp"
#include "coherence/transport/memory.hpp"
#include "extension/engine/ddl/ddl_words.hpp"

namespace engine {

struct DdlMembers {
  coherence::NodeSet nodes;
  uint64_t incarnation[coherence::kNodesMax];
};

enum class DdlReply : uint8_t { kPending, kDone, kFailed, kGone };

struct DdlMessage {
  uint64_t sequence = 0;
  DdlHeader header{};
};

class DdlChannel {
 public:
  // `bytes` of pool memory at `at`, zeroed when the pool was made.
  DdlChannel(coherence::Memory& memory, coherence::PoolAddress at, uint64_t bytes, coherence::NodeId self);

  // --- the lock -----------------------------------------------------------------------------------------------------
  bool try_lock(DdlHolder me, uint64_t now);
  void unlock(DdlHolder me);  // no-op if `me` does not hold it
  DdlHolder holder(uint64_t* since = nullptr);

  // --- members ------------------------------------------------------------------------------------------------------
  // ENSURES: every message so far counts as dealt with by this node.
  void join(uint64_t incarnation);
  void leave();
  DdlMembers members();                         // without this node
  uint64_t membership(coherence::NodeId node);  // 0: it takes no part
  // Which data directory the node had last: kept while it is away.
  uint64_t life();
  void set_life(uint64_t life);

  // --- the author ---------------------------------------------------------------------------------------------------
  uint32_t window_bytes() const { return window_bytes_; }
  // REQUIRES: this session holds the lock; D1.  Returns the message's number.
  uint64_t post(const DdlHeader& header, const void* body);
  DdlReply reply_of(coherence::NodeId node, uint64_t incarnation, uint64_t sequence);
  // The text of the node's newest reply; at most kDdlReplyBytes.
  uint32_t reply_text(coherence::NodeId node, char* to);
  void cancel(uint64_t sequence);

  // --- the others ---------------------------------------------------------------------------------------------------
  uint64_t sequence();
  uint64_t cancelled();
  // False: a newer message took its place meanwhile; look again.
  bool read(uint64_t sequence, DdlHeader* header);
  bool read_body(const DdlMessage& message, void* to);
  uint64_t acknowledged();  // newest message this node has dealt with
  void acknowledge(uint64_t sequence, bool ok, std::string_view text);

  // --- where the log begins -----------------------------------------------------------------------------------------
  coherence::PageId log_root();
  // False: somebody else was first.
  bool set_log_root(coherence::PageId root);
  // How many entries it has, for views: found without waiting for a page.
  uint64_t log_entries();
  void set_log_entries(uint64_t count);

 private:
  coherence::PoolAddress word(uint32_t offset) const { return at_ + offset; }
  coherence::PoolAddress cell(coherence::NodeId node, uint32_t field) const {
    return at_ + (kDdlCells + node.value * kDdlCellBytes + field);
  }
  void run(coherence::Batch& batch);
  uint64_t load(coherence::PoolAddress at);
  void store(coherence::PoolAddress at, uint64_t value);

  coherence::Memory& memory_;
  coherence::PoolAddress at_;
  uint32_t window_bytes_;
  coherence::NodeId self_;
};

}  // namespace engine
