#include "extension/engine/txn/leftovers.hpp"

#include <algorithm>

namespace engine {

using coherence::Batch;
using coherence::Errc;
using coherence::PoolAddress;
using coherence::Result;
using coherence::SessionId;
using coherence::Status;

namespace {

constexpr uint64_t kWordsAtOnce = 1024;

// The sequence that a running word tells, of those up to `reserved`; 0: it is above (of a later incarnation).
uint64_t sequence_of(StatusWord word, uint64_t reserved) {
  constexpr uint64_t kTold = (uint64_t{1} << 44) - 1;  // StatusWord::running()
  const uint64_t below = (reserved - (word.payload() >> 16)) & kTold;
  return below <= kTold / 2 && below < reserved ? reserved - below : 0;
}

}  // namespace

Status Leftovers::read(PoolAddress at, uint64_t count, std::vector<uint64_t>* to) {
  to->resize(count);
  for (uint64_t from = 0; from < count; from += kWordsAtOnce) {
    Batch batch(at.node());
    batch.read(at + from * 8, to->data() + from, uint32_t(std::min(kWordsAtOnce, count - from) * 8));
    GCL_TRY(memory_.run(batch));
  }
  return {};
}

Status Leftovers::read_words(Words* to) {
  Batch batch(words_.clock().node());
  const int reserved = batch.load(words_.reserved(node_));
  const int bound = batch.load(words_.bound(node_));
  GCL_TRY(memory_.run(batch));
  to->reserved = batch.op(reserved).old;
  to->bound = batch.op(bound).old;
  GCL_TRY(read(words_.session_lock(node_, {0}), words_.sessions(), &to->locks));
  return read(words_.speculation(node_, {0}), words_.sessions(), &to->speculations);
}

// Wherever in the ring they are: those that are pinned, too (txn.running-word-tells-id).
Result<std::vector<Leftovers::Running>> Leftovers::running(uint64_t reserved) {
  std::vector<Running> found;
  if (reserved == 0) return found;  // no such node has ever been
  std::vector<uint64_t> log;
  GCL_TRY(read(words_.status(TxnId::make(node_, 0)), words_.slots(), &log));
  for (uint64_t place = 0; place < log.size(); ++place) {
    const StatusWord word{log[place]};
    const uint64_t sequence = word.running() ? sequence_of(word, reserved) : 0;
    if (sequence == 0) continue;
    if (sequence % words_.slots() != place || word.session().value >= words_.sessions()) return Errc::kCorrupt;
    found.push_back({TxnId::make(node_, sequence), word});
  }
  return found;
}

Result<Leftovers::Ended> Leftovers::end(const std::function<bool()>& still_dead, HostCommits* host) {
  Ended ended;
  Words words;
  GCL_TRY(read_words(&words));
  if (!still_dead()) return ended;
  const auto ran = running(words.reserved);
  if (!ran) return ran.error();
  for (const Running& which : *ran) GCL_TRY(end(which, host, &ended));
  GCL_TRY(clear(words));
  const auto nodes = watchers();
  if (!nodes) return nodes.error();
  ended.watchers = *nodes;
  return ended;
}

// REQUIRES: behind the final words (txn.watch-then-status).
Result<coherence::NodeSet> Leftovers::watchers() {
  std::vector<uint64_t> watched;
  GCL_TRY(read(words_.watch(node_, {0}), words_.sessions(), &watched));
  coherence::NodeSet all;
  for (const uint64_t nodes : watched) all.bits |= nodes;
  return all;
}

Status Leftovers::end(const Running& which, HostCommits* host, Ended* ended) {
  switch (which.word.state()) {
    case TxnState::kActive:
      return abort(which, ended);
    case TxnState::kCommitting:
      return commit(which.id, which.word, ended);
    default:
      return decide(which, host, ended);
  }
}

// Its session wrote the host's number before it was PREPARED (txn.kind-before-prepared).
Status Leftovers::decide(const Running& which, HostCommits* host, Ended* ended) {
  const auto xid = memory_.load(words_.host_xid(node_, which.word.session()));
  if (!xid) return xid.error();
  HostXidWord word{*xid};
  if (word.number() == 0) return abort(which, ended);
  if (!word.decided() && host == nullptr) {
    ended->in_doubt.push_back({which.id, word.number()});
    return {};
  }
  if (!word.decided()) {
    const auto committed = host->committed(word.number());
    if (!committed) return committed.error();
    GCL_TRY(host->about_to_decide(which.id, *committed));
    const auto decided = decide_once(which.word.session(), word, *committed);
    if (!decided) return decided.error();
    word = *decided;
  } else if (host != nullptr) {
    GCL_TRY(host->about_to_decide(which.id, word.committed()));
  }
  return carry_out(which, word.committed(), ended);
}

// txn.doubt-decided-once.  kNotFound: the word is another transaction's by now.
Result<HostXidWord> Leftovers::decide_once(SessionId session, HostXidWord word, bool commit) {
  const HostXidWord decided = word.as_decided(commit);
  const auto old = memory_.cas(words_.host_xid(node_, session), word.raw, decided.raw);
  if (!old) return old.error();
  if (*old == word.raw) return decided;
  const HostXidWord there{*old};
  if (!there.decided() || there.number() != word.number()) return Errc::kNotFound;
  return there;
}

Result<Leftovers::Decided> Leftovers::decide(TxnId id, bool commit, const Record& record) {
  const auto reserved = memory_.load(words_.reserved(node_));
  if (!reserved) return reserved.error();
  if (id.node() != node_ || id.sequence() == 0 || id.sequence() > *reserved) return Errc::kNotFound;
  const auto status = memory_.load(words_.status(id));
  if (!status) return status.error();
  const Running which{id, {*status}};
  const SessionId session = which.word.session();
  if (which.word != StatusWord::prepared(session, id) || session.value >= words_.sessions()) return Errc::kNotFound;
  const auto xid = memory_.load(words_.host_xid(node_, session));
  if (!xid) return xid.error();
  HostXidWord word{*xid};
  if (word.number() == 0) return Errc::kNotFound;
  if (!word.decided()) {
    if (record) GCL_TRY(record(commit));
    const auto decided = decide_once(session, word, commit);
    if (!decided) return decided.error();
    word = *decided;
  }
  Ended ended;
  GCL_TRY(carry_out(which, word.committed(), &ended));
  const auto nodes = watchers();
  if (!nodes) return nodes.error();
  return Decided{word.committed(), *nodes};
}

Status Leftovers::tell(HostCommits& host) {
  std::vector<uint64_t> xids;
  GCL_TRY(read(words_.host_xid(node_, {0}), words_.sessions(), &xids));
  for (uint32_t i = 0; i < words_.sessions(); ++i) {
    const HostXidWord word{xids[i]};
    if (!word.decided() || !host.was_decided(word.number(), word.committed())) continue;
    const auto old = memory_.cas(words_.host_xid(node_, {uint16_t(i)}), word.raw, 0);
    if (!old) return old.error();
  }
  return {};
}

Status Leftovers::carry_out(const Running& which, bool commit, Ended* ended) {
  if (!commit) return abort(which, ended);
  // As its owner would have, for snapshots that are being taken (txn.committing-before-clock).
  const auto committing = StatusWord::committing(which.word.session(), which.id);
  const auto old = memory_.cas(words_.status(which.id), which.word.raw, committing.raw);
  if (!old) return old.error();
  return this->commit(which.id, committing, ended);
}

Status Leftovers::abort(const Running& which, Ended* ended) {
  const auto old = memory_.cas(words_.status(which.id), which.word.raw, StatusWord::aborted().raw);
  if (!old) return old.error();
  ended->aborted += *old == which.word.raw;
  return {};
}

// As any reader does (txn.reader-finishes-commit).
Status Leftovers::commit(TxnId id, StatusWord committing, Ended* ended) {
  const auto clock = memory_.faa(words_.clock(), 1);
  if (!clock) return clock.error();
  const auto old = memory_.cas(words_.status(id), committing.raw, StatusWord::committed({*clock + 1}).raw);
  if (!old) return old.error();
  ended->committed += *old == committing.raw;
  return {};
}

// Behind the statuses: txn.speculation-names-row.
Status Leftovers::clear(const Words& words) {
  const auto change = [&](PoolAddress at, uint64_t from, uint64_t to) -> Status {
    if (from == to) return {};
    const auto old = memory_.cas(at, from, to);
    return old ? Status() : Status(old.error());
  };
  for (uint32_t i = 0; i < words_.sessions(); ++i) {
    const SessionId session{uint16_t(i)};
    const SpeculationWord speculation{words.speculations[i]};
    GCL_TRY(change(words_.speculation(node_, session), speculation.raw, speculation.over().raw));
    GCL_TRY(change(words_.session_lock(node_, session), words.locks[i], 0));
  }
  return change(words_.bound(node_), words.bound, 0);
}

Result<std::vector<Leftovers::Running>> Leftovers::running() {
  const auto reserved = memory_.load(words_.reserved(node_));
  if (!reserved) return reserved.error();
  return running(*reserved);
}

Result<HostXidWord> Leftovers::number_of(const Running& prepared) {
  const auto xid = memory_.load(words_.host_xid(node_, prepared.word.session()));
  if (!xid) return xid.error();
  return HostXidWord{*xid};
}

// The greatest id of the node that was not committed, and runs no more or never ran; 0: there is none.  The ids behind
// it are told by their commits.
Result<uint64_t> Leftovers::last_without_commit() {
  Words words;
  GCL_TRY(read_words(&words));
  std::vector<uint64_t> log;
  if (words.reserved != 0) GCL_TRY(read(words_.status(TxnId::make(node_, 0)), words_.slots(), &log));
  for (uint64_t back = 0; back < std::min<uint64_t>(log.size(), words.reserved); ++back) {
    const uint64_t sequence = words.reserved - back;
    const TxnState state = StatusWord{log[sequence % log.size()]}.state();
    if (state == TxnState::kUnused || state == TxnState::kAborted || state == TxnState::kSkipped) return sequence;
  }
  return 0;
}

Result<std::vector<Leftovers::Verdict>> Leftovers::verdicts() {
  const auto all = running();
  if (!all) return all.error();
  std::vector<Verdict> found;
  for (const Running& which : *all) {
    if (which.word.state() == TxnState::kActive) found.push_back({which.id.sequence(), false});
    if (which.word.state() != TxnState::kPrepared) continue;
    const auto word = number_of(which);
    if (!word) return word.error();
    if (word->number() == 0 || word->decided()) found.push_back({which.id.sequence(), word->committed()});
  }
  const auto last = last_without_commit();
  if (!last) return last.error();
  if (*last != 0) found.push_back({*last, false});
  return found;
}

Result<std::vector<InDoubt>> Leftovers::in_doubt() {
  const auto all = running();
  if (!all) return all.error();
  std::vector<InDoubt> found;
  for (const Running& which : *all) {
    if (which.word.state() != TxnState::kPrepared) continue;
    const auto word = number_of(which);
    if (!word) return word.error();
    if (word->number() != 0) found.push_back({which.id, word->number()});
  }
  return found;
}

}  // namespace engine
