#include "extension/engine/sequence/sequence.hpp"

#include <algorithm>
#include <cstring>

#include "bufmgr/mini_transaction.hpp"

namespace engine {

using bufmgr::kPageBody;
using bufmgr::MiniTransaction;
using bufmgr::PageHeader;
using bufmgr::PageType;
using coherence::Errc;
using coherence::PageId;
using coherence::Result;
using coherence::Status;

struct Sequence::Word {
  uint64_t generation;
  int64_t last;
  uint64_t called;
};

namespace {

constexpr uint32_t kLogBytes = 64;  // of a changed word

uint64_t step_of(const SequenceRules& rules) {
  return rules.increment > 0 ? uint64_t(rules.increment) : uint64_t{0} - uint64_t(rules.increment);
}

// How many steps there are from `from` to the end.
uint64_t steps_left(const SequenceRules& rules, int64_t from) {
  if (rules.increment > 0) return from > rules.max ? 0 : (uint64_t(rules.max) - uint64_t(from)) / step_of(rules);
  return from < rules.min ? 0 : (uint64_t(from) - uint64_t(rules.min)) / step_of(rules);
}

// What follows the word, as much as may be leased at once; count 0: nothing does.
SequenceRun next_range(const SequenceRules& rules, SequenceState state) {
  SequenceRun range{state.last, 1};
  if (state.called) {
    if (steps_left(rules, state.last) > 0)
      range.first = SequenceRun::moved(state.last, 1, rules.increment);
    else if (rules.cycle)
      range.first = rules.increment > 0 ? rules.min : rules.max;
    else
      return {};
  }
  const uint64_t more = steps_left(rules, range.first);
  const uint64_t lease = rules.cycle ? 0 : std::min(kSequenceLease, more / 64);
  range.count += std::min(more, std::max(rules.cache, lease) - 1);
  return range;
}

}  // namespace

Result<PageId> Sequence::create(bufmgr::BufferPool& pool, bufmgr::Session& session, SequenceState state) {
  auto page = pool.allocate(session, 1);
  if (!page) return page.error();
  const Status made = create_at(pool, session, *page, state);
  if (made.ok()) return *page;
  (void)pool.free(session, *page, 1);  // if it fails, too, the page leaks
  return made.error();
}

Status Sequence::create_at(bufmgr::BufferPool& pool, bufmgr::Session& session, PageId page, SequenceState state) {
  MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(coherence::kPageSize));
  auto guard = pool.fix_exclusive(session, page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.format(*guard, PageType::kSequence, 0);
  change.set(*guard, kPageBody, Word{guard->header().version + 1, state.last, state.called});
  change.commit();
  return {};
}

Status Sequence::drop(bufmgr::BufferPool& pool, bufmgr::Session& session, PageId page, bufmgr::SpaceNote* note) {
  return pool.free(session, page, 1, note);
}

Result<Sequence::Word> Sequence::read_word() {
  for (;;) {
    auto guard = pool_.fix_optimistic(session_, page_);
    if (!guard) return guard.error();
    const auto type = guard->get<PageType>(offsetof(PageHeader, type));
    const auto word = guard->get<Word>(kPageBody);
    if (!guard->validate()) continue;
    if (type != PageType::kSequence) return Errc::kCorrupt;
    return word;
  }
}

Result<Sequence::Word> Sequence::word_of(const bufmgr::ExclusiveGuard& page) {
  if (page.header().type != PageType::kSequence) return Errc::kCorrupt;
  Word word;
  std::memcpy(&word, page.bytes() + kPageBody, sizeof word);
  return word;
}

Result<SequenceRun> Sequence::take(const SequenceRules& rules) {
  const auto word = read_word();
  if (!word) return word.error();
  return leases_.take(page_, word->generation, rules.cache);
}

Result<SequenceRun> Sequence::lease(const SequenceRules& rules) {
  MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(kLogBytes));
  auto guard = pool_.fix_exclusive(session_, page_);
  if (!guard) return guard.error();
  auto word = word_of(*guard);
  if (!word) return word.error();
  const SequenceRun taken = leases_.take(page_, word->generation, rules.cache);  // sequence.lease-under-latch
  if (taken.count > 0) return taken;
  SequenceRun range = next_range(rules, {word->last, word->called != 0});
  if (range.count == 0) return range;
  const int64_t end = range.last(rules.increment);
  change.join(*guard);
  change.set(*guard, kPageBody, Word{word->generation, end, 1});
  change.commit();
  GCL_TRY(session_.push_what_was_seen());  // sequence.leased-before-used
  const SequenceRun mine = range.take(rules.cache, rules.increment);
  leases_.put({page_, word->generation, rules.increment, end, range});
  return mine;
}

Status Sequence::set(SequenceState state) {
  MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(kLogBytes));
  auto guard = pool_.fix_exclusive(session_, page_);
  if (!guard) return guard.error();
  if (auto word = word_of(*guard); !word) return word.error();
  change.join(*guard);
  change.set(*guard, kPageBody, Word{guard->header().version + 1, state.last, state.called});
  change.commit();
  return session_.push_what_was_seen();  // sequence.leased-before-used
}

Result<SequenceState> Sequence::read() {
  const auto word = read_word();
  if (!word) return word.error();
  Lease lease;
  if (word->called == 0 || !leases_.find(page_, word->generation, &lease) || lease.end != word->last)
    return SequenceState{word->last, word->called != 0};
  return SequenceState{SequenceRun::moved(lease.left.first, uint64_t(-1), lease.step), true};
}

}  // namespace engine
