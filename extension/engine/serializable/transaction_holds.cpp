#include "extension/engine/serializable/transaction_holds.hpp"

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/serializable/given_up.hpp"

namespace engine {

namespace {

// A writer is waited for that long, and that long when nobody seems to wait for a holder: it is on its way, or was not
// to wait.
constexpr uint32_t kBehindMsMax = 1000, kComesMsMax = 20;

}  // namespace

TransactionHolds::TransactionHolds(TxnSystem& txns, HoldTable& table)
    : txns_(txns), table_(table), holder_(table.holder(txns.session().id().value)) {
  txns_.session().set_holds(this);
}

TransactionHolds::~TransactionHolds() {
  end();
  txns_.session().set_holds(nullptr);
}

void TransactionHolds::begin(uint32_t most, int32_t patience_ms) {
  VERIFY(held_ == 0 && !by_.valid());
  most_ = most;
  patience_ms_ = patience_ms;
  txns_.session().set_holding(true);
}

bool TransactionHolds::given_up() const noexcept {
  return by_.valid() && holder_.word() == HolderWord::of(by_, HolderState::kGivenUp);
}

bool TransactionHolds::keep() noexcept { return !by_.valid() || holder_.keep(by_); }

void TransactionHolds::read_on() noexcept {
  VERIFY(given_up());
  txns_.session().set_holding(false);
}

bool TransactionHolds::give_up(Errc why) noexcept {
  if (!by_.valid() || !holder_.take(by_, 0)) return false;
  gave_up_ = why;
  table_.counts().given_up.fetch_add(1, std::memory_order_relaxed);
  (void)let_go_given_up(txns_, table_, txns_.session().id(), by_);  // what fails is left to HoldGiver
  return true;
}

void TransactionHolds::forget() noexcept {
  mine_.forget();
  gave_up_ = Errc::kOk;
  held_ = 0;
  by_ = {};
  holder_.end();
}

void TransactionHolds::end() noexcept {
  txns_.session().set_holding(false);
  if (keep())
    leave_all();
  else
    leave_all_entered(txns_, table_, by_);  // serializable.mark-stays
  while (by_.valid() && holder_.take_given_parts()) leave_all_entered(txns_, table_, by_);
  forget();
}

void TransactionHolds::leave_all() noexcept {
  const std::atomic<uint32_t>* fence = &txns_.pool().coherence_node().fence_word();
  mine_.for_each([&](const Mine& mine) {
    if (!mine.page.valid()) return;                        // wanted, and not got
    coherence::Line* line = txns_.pool().find(mine.page);  // frames.no-pins: as long as it is held
    VERIFY(line != nullptr || txns_.pool().fenced());
    if (line == nullptr) return;
    table_.leave(mine.page, by_, [&](bool shared, bool exclusive, TxnId next) {
      const uint64_t named = next.valid() ? by_word(next) : 0;
      if (shared) coherence::Session::uncount_hold(*line, false, by_word(by_), named, fence);
      if (exclusive) coherence::Session::uncount_hold(*line, true, by_word(by_), named, fence);
    });
    txns_.session().coherence().serve_dropped(*line);
  });
}

bool TransactionHolds::writes(PageId page) const noexcept {
  const Mine* mine = mine_.find(page.raw);
  return mine != nullptr && mine->write != 0;
}

bool TransactionHolds::held_by_others(PageId page, uint64_t* by) noexcept {
  const TxnId other = table_.other_holder(page, by_);
  if (other.valid()) *by = by_word(other);
  return other.valid();
}

// REQUIRES: mine_ has room for the page.
template <class Guard>
Result<bool> TransactionHolds::enter(Guard& guard, bool exclusive, bufmgr::Parts parts) {
  HoldTable::Other other;
  coherence::Line* line = exclusive ? txns_.pool().find(guard.id()) : nullptr;
  const auto entered =
      table_.enter(guard.id(), holder_, by_, exclusive, parts, &other, [&] { guard.hold(by_word(by_)); });
  switch (entered) {
    case HoldTable::Entered::kHeld:
      if (line != nullptr && (other.only_reads || parts == bufmgr::kWholePage)) line->note_refused_writer();
      txns_.session().note_held_by({txns_.node(), by_word(other.by)});
      return Errc::kHeld;
    case HoldTable::Entered::kUpgrade:
      return Errc::kUpgrade;
    case HoldTable::Entered::kFull:
      return Errc::kNoHolds;
    case HoldTable::Entered::kGivenUp:
      return Errc::kGivenUp;
    default:
      if (line != nullptr && line->refused_writer()) line->forget_refused_writer();
      return entered == HoldTable::Entered::kNow;
  }
}

template <class Guard>
Result<bool> TransactionHolds::enter_latched(Result<Guard> guard, bool exclusive, bufmgr::Parts parts) {
  return guard ? enter(*guard, exclusive, parts) : guard.error();
}

void TransactionHolds::note_mine(Mine* mine, PageId page, bool exclusive, bufmgr::Parts parts) {
  if (!mine->page.valid()) ++held_;
  mine->page = page;
  (exclusive ? mine->write : mine->read) |= parts;
}

// Perhaps for the page: it may be another one that somebody wants of a node that shares this one.
Result<bool> TransactionHolds::writer_waits_elsewhere(PageId page) {
  auto& pool = txns_.pool();
  const auto word = pool.memory(txns_.session()).load(pool.coherence_pool().latch_address(page));
  if (!word) return word.error();
  return txns_.holds_are_wanted(coherence::LatchWord{*word}.readers().without(txns_.node()));
}

// serializable.readers-stand-behind
Status TransactionHolds::stand_behind_writer(PageId page) {
  for (uint32_t paused = 0, in_vain = 0;; ++paused) {
    coherence::Line* line = txns_.pool().find(page);
    if (line == nullptr || !line->refused_writer()) return {};
    if (line->msi() == coherence::MsiState::kInvalid) {  // whether it has come is seen when the page is here again
      const auto here = txns_.pool().fix_shared(txns_.session(), page, Intent::kRead);
      if (!here) return here.error();
      if (!line->refused_writer()) return {};
    }
    in_vain = table_.holder_is_wanted(page) ? 0 : in_vain + 1;
    bool waits = in_vain <= kComesMsMax;
    if (!waits) {
      const auto elsewhere = writer_waits_elsewhere(page);
      if (!elsewhere) return elsewhere.error();
      waits = *elsewhere;
      in_vain = 0;
    }
    if (!waits || paused == kBehindMsMax) {
      line->forget_refused_writer();
      return {};
    }
    GCL_TRY(txns_.waiter().pause(1));
  }
}

// serializable.upgraders-of-nodes.  REQUIRES: it holds the page, and was refused it exclusively.
bool TransactionHolds::meets_upgrader_elsewhere(PageId page) {
  const coherence::Line* line = txns_.pool().find(page);
  return txns_.session().held_by().node != txns_.node() && holder_.wanted() && line != nullptr &&
         line->refused_writer();
}

Result<bool> TransactionHolds::hold(PageId page, bool exclusive, bufmgr::Parts parts, Intent intent) {
  holder_.note_request();
  if (given_up()) return Errc::kGivenUp;  // for the sake of those that wait for this one: the table would tell, too
  const Mine* before = mine_.find(page.raw);
  if (before != nullptr && before->has(exclusive, parts)) return false;
  const bool holds_it = before != nullptr && before->page.valid();
  if (held_ >= most_ && !holds_it) return Errc::kNoHolds;
  if (!by_.valid()) {
    auto id = txns_.id_to_hold();
    if (!id) return id.error();
    by_ = *id;
    holder_.begin(by_, patience_ms_);
  }
  const bool had_asked = before != nullptr;
  Mine* mine = mine_.make(page.raw);
  if (mine == nullptr) return Errc::kNoMemory;
  const bool beside = !exclusive || parts != bufmgr::kWholePage;
  if (beside && !had_asked) GCL_TRY(stand_behind_writer(page));
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  const Result<bool> entered =
      exclusive ? enter_latched(pool.fix_exclusive(session, page, bufmgr::Others::kChecked), true, parts)
                : enter_latched(pool.fix_shared(session, page, intent), false, parts);
  if (!entered) {
    const bool upgrades = exclusive && holds_it && entered.error() == Errc::kHeld;
    return upgrades && meets_upgrader_elsewhere(page) ? Errc::kUpgrade : entered.error();
  }
  note_mine(mine, page, exclusive, parts);
  return *entered;
}

// What the table has counts: it may be more than this session knows of (serializable.given-parts-noted).
Status TransactionHolds::hold_part(PageId from, bufmgr::ExclusiveGuard& part) {
  const Mine* whole = mine_.find(from.raw);
  if (whole == nullptr || !whole->page.valid()) return {};
  if (given_up()) return Errc::kGivenUp;
  if (held_ >= most_) return Errc::kNoHolds;
  Mine* mine = mine_.make(part.id().raw);
  if (mine == nullptr) return Errc::kNoMemory;
  const bool given = table_.give_parts(from, part.id(), by_, [&](TxnId by, bufmgr::Parts read, bufmgr::Parts write) {
    if (read != 0) part.hold(by_word(by), false);
    if (write != 0) part.hold(by_word(by));
    if (by != by_) return;
    note_mine(mine, part.id(), false, read);
    note_mine(mine, part.id(), true, write);
  });
  return given ? Status{} : Status{Errc::kNoHolds};
}

// Other nodes are told the low bits of a sequence.  The id is the last one that was assigned with these bits: an older
// one would have run while 2^40 others began.
Result<TxnId> TransactionHolds::id_of(coherence::Holder holder) {
  if (holder.by == 0) return TxnId{};
  uint64_t last = txns_.assigned();
  if (holder.node != txns_.node()) {
    auto reserved = txns_.pool().memory(txns_.session()).load(txns_.words().reserved(holder.node));
    if (!reserved) return reserved.error();
    last = *reserved;
  }
  uint64_t sequence = (last & ~kByMask) | holder.by;
  if (sequence > last) sequence = sequence > kByMask ? sequence - kByMask - 1 : 0;
  return sequence == 0 ? TxnId{} : TxnId::make(holder.node, sequence);
}

// A holder that has ended lets go of its pages a moment later (serializable.strict).
Status TransactionHolds::wait() {
  auto id = id_of(txns_.session().held_by());
  if (!id) return id.error();
  if (!id->valid()) return txns_.waiter().pause(1);
  auto status = txns_.status(*id);
  if (!status) return status.error();
  if (!status->running()) return txns_.waiter().pause(1);
  table_.counts().waits.fetch_add(1, std::memory_order_relaxed);
  const Status waited = txns_.waiter().wait_for(*id, WaitFor::kHolds);
  if (!waited) holder_.ends_upgrade();
  return waited;
}

}  // namespace engine
