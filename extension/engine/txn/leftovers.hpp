// Leftovers: what a node that did not leave in order has left in the words of transactions, and the end of that. Rules:
// rules.md, "What a dead node left".  Words alone are read and changed, no page.  Any process that reaches the pool may
// do it, a node or not, several at once, and again.
//
//   Leftovers left(memory, words, dead);
//   auto ended = left.end([&] { return is_still_dead(dead, incarnation); });
//   if (ended) waker.wake(ended->watchers);
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"
#include "extension/engine/txn/host.hpp"
#include "extension/engine/txn/host_xid_word.hpp"
#include "extension/engine/txn/txn_id.hpp"
#include "extension/engine/txn/txn_status.hpp"
#include "extension/engine/txn/txn_words.hpp"

namespace engine {

// A PREPARED transaction that its own server alone can decide (txn.in-doubt-until-back).
struct InDoubt {
  TxnId id;
  uint64_t host_xid;  // in that server
};

class Leftovers {
 public:
  Leftovers(coherence::Memory& memory, const TxnWords& words, NodeId node)
      : memory_(memory), words_(words), node_(node) {}

  struct Ended {
    uint32_t aborted = 0, committed = 0;  // by this call
    std::vector<InDoubt> in_doubt{};
    coherence::NodeSet watchers{};  // nodes that may wait for something that has ended: to be woken
  };
  // `still_dead`: whether the incarnation that is meant is dead, and no other has joined.  It is asked once, behind
  // what is read first (txn.dead-by-exact-value); if not, nothing is done.  `host`, of the node's own server, decides
  // what is in doubt; without it that stays.  kCorrupt: a word is none; or what `host` says.
  coherence::Result<Ended> end(const std::function<bool()>& still_dead, HostCommits* host = nullptr);
  // Somebody else than the node's server decides one that is in doubt.  How it is decided: not as `commit` says if that
  // has happened before.  kNotFound: it is not in doubt.  REQUIRES: the node does not join meanwhile.
  struct Decided {
    bool committed = false;
    coherence::NodeSet watchers{};  // as in Ended
  };
  // `record`: the decision that is about to be taken; an error ends the call, and nothing is decided.
  using Record = std::function<coherence::Status(bool committed)>;
  coherence::Result<Decided> decide(TxnId id, bool commit, const Record& record = {});
  // The node's own server hears what was decided.  REQUIRES: no session of the node prepares anything yet.
  coherence::Status tell(HostCommits& host);
  // What end() makes, without asking a host, of ids that the node's log may say otherwise of: of PREPARED ones, and of
  // ACTIVE ones, whose host may have committed (txn.prepared-if-mixed).  It stays the same while the node is dead,
  // until end().  And of the last id that was reserved and not committed (restart.deaths-tell-ids).
  struct Verdict {
    uint64_t sequence;
    bool committed;
  };
  coherence::Result<std::vector<Verdict>> verdicts();
  // Of a node that may be away for long.  A transaction of a node that works is none, though it may be among them.
  coherence::Result<std::vector<InDoubt>> in_doubt();

 private:
  // What its sessions' words, and its bound, were.
  struct Words {
    uint64_t reserved = 0, bound = 0;
    std::vector<uint64_t> locks{}, speculations{};
  };
  struct Running {
    TxnId id;
    StatusWord word;
  };
  coherence::Status read_words(Words* to);
  coherence::Status read(coherence::PoolAddress at, uint64_t count, std::vector<uint64_t>* to);
  coherence::Result<std::vector<Running>> running(uint64_t reserved);
  coherence::Result<std::vector<Running>> running();
  coherence::Result<uint64_t> last_without_commit();
  coherence::Result<HostXidWord> number_of(const Running& prepared);
  coherence::Status end(const Running& which, HostCommits* host, Ended* ended);
  coherence::Status decide(const Running& which, HostCommits* host, Ended* ended);
  coherence::Result<HostXidWord> decide_once(coherence::SessionId session, HostXidWord word, bool commit);
  coherence::Status carry_out(const Running& which, bool commit, Ended* ended);
  coherence::Result<coherence::NodeSet> watchers();
  coherence::Status abort(const Running& which, Ended* ended);
  coherence::Status commit(TxnId id, StatusWord committing, Ended* ended);
  coherence::Status clear(const Words& words);

  coherence::Memory& memory_;
  const TxnWords& words_;
  NodeId node_;
};

}  // namespace engine
