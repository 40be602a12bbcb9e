#include "tools/gclctl/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "bufmgr/inspect/ring_view.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "coherence/region/saved_pages.hpp"
#include "coherence/region/since_save.hpp"
#include "recovery/checkpoint.hpp"
#include "tools/gclctl/checkpoint_lock.hpp"
#include "tools/gclctl/checkpoint_pages.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/restart_logs.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {

using coherence::Problem;
using recovery::Checkpoint;

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kJournalNoted = 256 << 10;  // it has rings (gclctl.point-has-rings)
constexpr size_t kPagesMax = 32768;            // in this process's memory: 256 MB

class Making {
 public:
  Making(const fs::path& pool, const fs::path& saved, const std::map<int, std::vector<LogPlace>>& places)
      : pool_(pool), saved_(saved), places_(places) {}

  Checkpointed run() {
    Problem problem;
    const auto view = coherence::PoolView::open(pool_.c_str(), &problem);
    if (!view) fail("{}", problem.text);
    if ((*view)->header().state.load() == coherence::PoolState::kClean)
      return {false, "nothing to do: no primary is in the pool, and its copy has everything"};
    const LogBounds certain = certain_logs(**view);  // recovery.certain-below-hole
    copy_ = require(coherence::SavedPages::open(saved_.c_str(), &problem), problem);
    if (copy_->pool_id() != (*view)->header().pool_id)
      fail("{} is not the copy of {}", saved_.string(), pool_.string());
    const recovery::History history = history_of(saved_);
    if (history.empty()) return {false, "nothing to do: no primary has joined since the pool was saved"};
    now_ = require(recovery::read_checkpoint(saved_.c_str(), copy_->pool_id(), copy_->saves(), &problem), problem);
    RestartLogs logs(places_, history, now_.number == 0 ? nullptr : &now_);
    logs.bounds() = certain;
    return merge(logs);
  }

 private:
  template <class T>
  static T require(coherence::Result<T> result, const Problem& problem) {
    if (!result) fail("{}", problem.text);
    return result.take();
  }

  static LogBounds certain_logs(coherence::PoolView& view) {
    LogBounds bounds;
    for (uint32_t n = 0; n < view.header().nodes_max; ++n)
      bounds.sequence[n] = bufmgr::visit_ring(view, {uint8_t(n)}, [](std::span<const std::byte>) {});
    return bounds;
  }

  Checkpointed merge(RestartLogs& logs) {
    const auto began = Clock::now();
    Problem problem;
    const auto delta = require(recovery::DeltaPages::open(saved_.c_str(), now_.pages, &problem), problem);
    CheckpointPages pages(*copy_, *delta, kPagesMax, logs.bounds());
    const auto sources = logs.sources();
    uint64_t changed = 0;
    uint32_t waiting = 0;
    const uint64_t before = now_.number;
    do {
      logs.bounds().pause = false;
      const auto applied = recovery::apply_logs_so_far(sources, pages, &problem);
      if (!applied && !logs.why().empty()) fail("{}", logs.why());
      if (!applied)
        fail("the logs cannot be applied: {}{}{}", problem.text, pages.problem().text[0] ? ": " : "",
             pages.problem().text);
      waiting = *applied;
      changed += pages.count();
      if (has_come_on(logs)) write(logs, pages, *delta);
    } while (logs.bounds().pause);
    logs.require_whole();
    const std::chrono::duration<double> took = Clock::now() - began;
    const std::string waits =
        waiting == 0 || logs.records() > 0 ? "" : fmt::format("; {} logs wait: {}", waiting, problem.text);
    if (now_.number == before) return {false, "nothing to do: the logs have nothing new"};
    return {true, fmt::format("checkpoint {}: {} records of {} MB of logs, {} pages changed, {} differ from the copy "
                              "({:.1f} s){}",
                              now_.number, logs.records(), megabytes(logs.bytes()), changed, delta->count(),
                              took.count(), waits)};
  }

  bool has_come_on(const RestartLogs& logs) const {
    Checkpoint next;
    logs.put_into(&next);
    return next.logs != now_.logs || next.rings != now_.rings;
  }

  // checkpoint.replaced-as-whole, gclctl.checkpoint-syncs-logs
  void write(const RestartLogs& logs, CheckpointPages& pages, recovery::DeltaPages& delta) {
    Problem problem;
    if (const auto written = pages.write_out(&problem); !written) fail("{}", problem.text);
    now_.pages = require(delta.finish(&problem), problem);
    now_.pool_id = copy_->pool_id(), now_.saves = copy_->saves();
    ++now_.number;
    now_.time_us = uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
    logs.put_into(&now_);
    logs.sync();
    if (const auto written = recovery::write_checkpoint(saved_.c_str(), now_, &problem); !written)
      fail("{}", problem.text);
    drop_rings(logs.history());
  }

  // So that the journal does not grow by a ring for each death; but restore points that go on from a backup, which has
  // an older checkpoint, need them (gclctl.point-has-rings).
  void drop_rings(const recovery::History& history) const {
    if (fs::exists(coherence::BesideCopy(saved_.c_str(), coherence::BesideCopy::kBackedUp).text)) return;
    const auto in_checkpoint = [&](const recovery::Death& death) { return now_.has_ring(death); };
    const auto is_kept = [&](const recovery::Death& death) { return !death.framed.empty() && in_checkpoint(death); };
    if (std::ranges::none_of(history.node, [&](const recovery::NodeHistory& node) {
          return std::ranges::any_of(node.deaths(), is_kept);
        }))
      return;
    Problem problem;
    const auto dropped = recovery::drop_rings(saved_.c_str(), now_.pool_id, now_.saves, in_checkpoint, &problem);
    if (!dropped && dropped.error() != coherence::Errc::kBusy) fail("{}", problem.text);
  }

  const fs::path &pool_, &saved_;
  const std::map<int, std::vector<LogPlace>>& places_;
  std::unique_ptr<coherence::SavedPages> copy_;
  Checkpoint now_;
};

}  // namespace

Checkpointed make_checkpoint(const fs::path& pool, const fs::path& saved,
                             const std::map<int, std::vector<LogPlace>>& places) {
  return Making(pool, saved, places).run();
}

int make_checkpoint_now(const fs::path& pool, const fs::path& saved,
                        const std::map<int, std::vector<LogPlace>>& places) {
  const CheckpointLock lock(saved, std::chrono::milliseconds(0));
  const Checkpointed made =
      lock.held() ? make_checkpoint(pool, saved, places) : Checkpointed{false, "another process makes a checkpoint"};
  fmt::print("{}\n", made.text);
  return made.done ? 0 : kNoCheckpointMade;
}

std::string checkpoint_in_words(const fs::path& saved) {
  using coherence::BesideCopy;
  std::error_code error;
  const auto bytes_of = [&](BesideCopy::Kind kind) {
    const uint64_t bytes = fs::file_size(BesideCopy(saved.c_str(), kind).text, error);
    return error ? 0 : bytes;
  };
  const uint64_t journal = bytes_of(BesideCopy::kJournal), delta = bytes_of(BesideCopy::kDelta);
  if (journal + delta == 0) return "";
  const auto made = fs::last_write_time(BesideCopy(saved.c_str(), BesideCopy::kCheckpoint).text, error);
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - made);
  const bool keeps_rings = journal > kJournalNoted && fs::exists(BesideCopy(saved.c_str(), BesideCopy::kBackedUp).text);
  return fmt::format("{}; {} MB beside the copy, {} MB of journal{}",
                     error ? "no checkpoint yet" : fmt::format("last checkpoint {} s ago", age.count()),
                     megabytes(delta), megabytes(journal),
                     keeps_rings ? ", which grows with each death until gclctl restore-point" : "");
}

int checkpoint(const std::string& dir) {
  const Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] {
    std::map<int, std::vector<LogPlace>> places;
    for (const int k : c.numbers()) places[k] = logs_of(c, k);
    return make_checkpoint_now(c.pool(), c.saved_pool(), places);
  });
}

}  // namespace gclctl
