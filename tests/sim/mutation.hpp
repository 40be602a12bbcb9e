// The protocol, broken on purpose: each mutation breaks one rule around the product's code, and a checker must see it.
// Most of them stand between the product and its own step(); the rest between a batch and its verbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace coherence {
class Batch;
struct Op;
}  // namespace coherence

namespace sim {

// Some are of the kind of a defect of SELCC's code: rules.md, "Mutations".
enum class Mutation : uint8_t {
  kNone,
  // between the driver and step():
  kForwardFirst,    // M is granted before the word says so
  kDowngradeFirst,  // S is granted before the word says so
  kInFlightLeaves,  // what was granted early is given away before the giver's batch is complete
  kFalseGrant,      // a CAS that failed on readers counts as a grant
  kClaimRefused,    // a node that cannot tell yet whether it shares tells a claim that it does not
  kJoinForgotten,   // a reader that joins is granted a share, and its bit is not added
  kTransientBits,   // a failed reader takes its bit back while it asks; the owner adds it
  kGrantLost,       // a page that is sent does not arrive, and no node hears of it
  kKeptShare,       // a share is given up in the word, and still used
  kLatchKept,       // a served line stays latched
  kPageStolen,      // a grant arrives without the latch
  kNoAging,         // a requester that was refused more often goes last
  // between a batch and its verbs:
  kDoubleAdd,           // a share is dropped after the operation that drops it
  kErrorsIgnored,       // a CAS that was never done counts as done
  kReleasedBeforeUse,   // bytes are taken from the frame when it has been given away
  kNoWriteBack,         // M to M leaves the pool as it was
  kFreedBeforeWritten,  // the word first, then the bytes
  kLostPendingReader,   // a failed reader's bit is not there
  // around it:
  kNobodyWatches,       // the death of a node is not looked for
  kLongSleeps,          // a wait does not look up every 10 ms
  kNoTurnLimit,         // gamma without an end
  kTakenTwice,          // a request that comes again is taken again
  kLogIgnored,          // a page leaves before its log
  kFormerRequestTaken,  // a request to a former incarnation is taken by the next one
  kFormerReplyActed,    // a refusal for a former incarnation counts for the next one
  kUnknownSucceeds,     // a batch whose outcome is not known counts as done
  kEventFirst,          // the event of a batch comes while it is on its way, and so the next batch of the line, too
  // of survivors:
  kRedoForgotten,         // a page of a dead node is used as the pool has it
  kOneRedo,               // of several dead nodes only one's redo is applied
  kSweptUnwritten,        // a dead node's redo is let go before the pool has its pages
  kFormerGrantLands,      // an answer to a dead incarnation lands in a slot and a frame of the next one
  kBitDroppedLate,        // a dead node's bit is dropped when the node has joined again
  kCopiesInRing,          // the ring's records have copies, as the log's
  kDeathUnrecorded,       // memory is lost behind a death that is in no journal
  kHoleOverlooked,        // a checkpoint takes what a log has behind the hole of its ring
  kRecordingWaits,        // a wait in the sweep goes on though another death is to be recorded
  kJoinUnrecorded,        // no join is in the journal
  kLogsApart,             // logs are read one behind the other, once
  kNotPutBack,            // a record that waits at the end of a checkpoint counts as applied
  kAppliedAgain,          // a record that a page has already is applied again
  kGapApplied,            // a record is applied to a page of which one before it is missing
  kGroupTorn,             // a record counts as applied when one of its pages has it
  kDeathRecordedLate,     // a death comes into the journal a while behind what survivors do about it
  kVersionFirst,          // a write-back writes the page's version before its other bytes
  kRangeLost,             // the ring's records lack one of the ranges that were changed
  kCheckpointPagesLost,   // a restart does not take up the images of the checkpoint
  kCheckpointNamedFirst,  // a checkpoint takes its place before its images are there
  kRingsDroppedEarly,     // rings leave the journal before the checkpoint that has them counts
  // of members that are far:
  kJoinUnseen,          // a join is over before all have heard of it
  kSayingFormer,        // what was said of a former incarnation counts for that which is dead
  kRepairableEarly,     // of one node it is not awaited that it is quiescent
  kForgottenEarly,      // of one node it is not awaited that it has drained
  kJoinAbandoned,       // an incarnation that is in the pool, as its process does not know, does not count as dead
  kUnknownLeaveCounts,  // a withdrawal that has no known outcome counts as done
  kCutOffGoesOn,        // a node that was cut off, and counts as dead, goes on using the memory for a while
  kWakeLost,            // a wakeup between living nodes does not arrive
  kWakeOvertakes,       // a wakeup overtakes what it tells of
  kTableLost,           // the newest table is not sent behind the one that was under way
  // of bufmgr: between the page provider and what it calls, and in place of single instructions
  kNotUnpublished,    // a frame is freed while the frame table still has it, sometimes
  kUnpublishedFirst,  // the page is out of the frame table before coherence has given it up
  kCountedAsWritten,  // the ring is emptied of a page that was not written back, sometimes
  kLatchedFreed,      // a frame is freed while a user reads it
  kNotValidated,      // a copy counts though the page was changed meanwhile
  kUncounted,         // the free list is compared without its number of changes
  kWakeupLost,        // a called page provider or waiter sleeps on
  kCount,
};
const char* mutation_name(Mutation);
Mutation mutation_of(const std::string& name);  // kCount: there is none

extern Mutation mutation;  // of the run under way
// Whether it grants by itself, other than the product.
inline bool grants_first(Mutation m) { return m == Mutation::kForwardFirst || m == Mutation::kDowngradeFirst; }
void begin_mutation(Mutation);

// Whether a node has to die, and to be repaired, to show it.
inline bool is_of_survivors(Mutation m) { return m >= Mutation::kRedoForgotten && m < Mutation::kNotUnpublished; }

// Whether that needs a bufmgr.
inline bool is_of_pool_survivors(Mutation m) {
  return m >= Mutation::kCopiesInRing && m <= Mutation::kRingsDroppedEarly;
}

// Whether members have to be far.
inline bool is_of_members(Mutation m) { return m >= Mutation::kJoinUnseen && m < Mutation::kNotUnpublished; }

// Whether a bufmgr is needed to show it.
inline bool is_of_bufmgr(Mutation m) { return m >= Mutation::kNotUnpublished; }

// kUncounted: the words it is about are known by their addresses.  A fiber that is about to compare one lingers.
void note_free_list(const void* head);
bool linger_at(const volatile void* word);  // whether it is one
// kNotValidated: a fiber lingers in the middle of a copy, so that somebody changes the page.
void linger_in_copy();
inline bool is_uncounted(const volatile void* word) { return mutation == Mutation::kUncounted && linger_at(word); }

// Which operation of a batch runs as number `i`.
int verb_order(const coherence::Batch&, int i);
// Whether the verb was dealt with here.
bool mutate_verb(const coherence::Batch&, coherence::Op&, std::byte* base);

}  // namespace sim
