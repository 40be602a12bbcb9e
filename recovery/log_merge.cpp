#include "recovery/log_merge.hpp"

#include <vector>

#include "recovery/apply.hpp"

namespace recovery {

using coherence::Errc;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

namespace {

class Log {
 public:
  explicit Log(LogSource& source) : source_(source) {}
  bool ended() const { return ended_; }
  void put_back() {
    if (taken_) source_.put_back();
  }

  // Applies records until one waits, or the log ends; says whether that was any.
  Result<bool> go_on(PageImages& images, Problem* problem) {
    bool moved = false;
    for (;;) {
      if (!taken_) {
        const auto next = source_.next();
        if (!next && next.error() != Errc::kNotFound) return problem->set(next.error(), "a log cannot be read");
        if (!next) {
          ended_ = true;
          return true;
        }
        GCL_TRY(bufmgr::check_format(*next, problem));  // log.unknown-format-refused
        record_ = *next;
        taken_ = true;
      }
      const auto applied = apply(images, problem);
      if (!applied) return applied.error();
      if (!*applied) return moved;
      taken_ = false;
      moved = true;
    }
  }

 private:
  // False: one of its pages is older still.  The others may have the change already, and nothing is done to them again
  // (recovery.replay-again).
  Result<bool> apply(PageImages& images, Problem* problem) {
    bufmgr::RecordReader reader(record_);
    bool all = true;
    while (const bufmgr::RecordPage* page = reader.next_page()) {
      if (!images.wants(page->page)) continue;
      const auto image = images.image(page->page);
      if (!image)
        return problem->set(image.error(), "there is no page %u:%llu, which a log changes",
                            unsigned(page->page.node().value), static_cast<unsigned long long>(page->page.number()));
      const auto applied = recovery::apply(reader, *page, *image, problem);
      if (!applied && applied.error() != Errc::kNotFound) return applied.error();
      all &= applied.ok();
    }
    if (reader.corrupt())
      return problem->set(Errc::kCorrupt, "the record of node %u, sequence %llu, makes no sense",
                          unsigned(reader.header().node), static_cast<unsigned long long>(reader.header().sequence));
    return all;
  }

  LogSource& source_;
  std::span<const std::byte> record_;
  bool taken_ = false, ended_ = false;
};

}  // namespace

Result<uint32_t> apply_logs_so_far(std::span<LogSource* const> sources, PageImages& images, Problem* problem) {
  std::vector<Log> logs;
  logs.reserve(sources.size());
  for (LogSource* source : sources) logs.emplace_back(*source);
  for (;;) {
    bool moved = false;
    uint32_t waiting = 0;
    for (Log& log : logs) {
      if (log.ended()) continue;
      const auto some = log.go_on(images, problem);
      if (!some) return some.error();
      moved |= *some;
      waiting += !log.ended();
    }
    if (waiting > 0 && moved) continue;
    for (Log& log : logs) log.put_back();
    return waiting;
  }
}

Status apply_logs(std::span<LogSource* const> sources, PageImages& images, Problem* problem) {
  const auto waiting = apply_logs_so_far(sources, images, problem);
  if (!waiting) return waiting.error();
  return *waiting == 0 ? Status() : Status(Errc::kNotFound);  // the problem says which
}

}  // namespace recovery
