// apply_logs(): pages out of old images and the whole logs of several nodes, in one pass over each.
//
// recovery.waits-go-back-in-time: A record waits until its pages have the version before it.  It waits only for records
//     that were appended earlier, by whichever node, since a page leaves its node after its redo; and each log is in
//     the order of time.  So of all logs' next records, the earliest waits for none: the merge goes on until the logs
//     end, and keeps no record.  If all of them wait, one is missing.
// recovery.merge-goes-on-later: Of logs that nodes write meanwhile, each is read up to some place, and the record that
//     one waits for may lie behind another's.  Then the merge ends before it.  Images and places are such that it may
//     go on from there, at any time.
// recovery.merge-in-parts: What a page becomes depends on no other page. So several threads may each read all logs, by
//     sources of their own, and apply what changes their own pages.
//
//   LogSource* logs[] = {&of_node_1, &of_node_2};
//   GCL_TRY(apply_logs(logs, images, &problem));
#pragma once

#include <cstddef>
#include <span>

#include "bufmgr/base/page.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace recovery {

// A node's log, from some position on that is not behind what the images have.
class LogSource {
 public:
  virtual ~LogSource() = default;
  // The next mini-transaction's record, until the next call.  kNotFound: that was all of them.  Other errors end the
  // merge.
  virtual coherence::Result<std::span<const std::byte>> next() = 0;
  // What next() returned last was not applied: it will be the next one again (recovery.merge-goes-on-later).
  virtual void put_back() {}
};

class PageImages {
 public:
  virtual ~PageImages() = default;
  // Pages that are not wanted are left out, as if records did not change them.
  virtual bool wants(bufmgr::PageId) { return true; }
  // The page's image, whole at some version, to be changed in place until the next call.
  virtual coherence::Result<std::byte*> image(bufmgr::PageId) = 0;
};

// Errors: kNotFound, a record is missing (recovery.gap-is-error); kCorrupt, a record makes no sense; kIncompatible, it
// is of another format; those of logs and images.  After an error some images are newer than before, each whole: it may
// be done again from the beginning.
coherence::Status apply_logs(std::span<LogSource* const> logs, PageImages&, coherence::Problem*);
// The same with what there is of the logs so far: what waits at the end is put back, and the problem says what it waits
// for.  How many logs wait.  Errors: but for kNotFound, as above.
coherence::Result<uint32_t> apply_logs_so_far(std::span<LogSource* const> logs, PageImages&, coherence::Problem*);

}  // namespace recovery
