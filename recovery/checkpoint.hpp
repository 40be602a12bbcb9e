// A checkpoint of a pool that is in use: how far a start that has lost the memory would have come by now, written down.
// Beside the durable copy lie
//
//   <durable path>.checkpoint   where each log goes on, what the logs have said so far, and where each page lies in
//   <durable path>.delta        images of the pages that differ from the copy's: 8 KB each, in no order
//
// checkpoint.suspended-restart: A checkpoint is made of the copy, the journal and the logs, by what a restart does, and
//     of nothing else: it asks no node for a page, and no node waits for it.  A restart that takes it up does the rest
//     of the same work (recovery.replay-again), so what is true of one is true of the other.  And each checkpoint
//     proves that the logs before it have no gap.  (When it is there, rings of dead nodes are dropped from the journal,
//     which is locked for that moment: a join or a death that is to be noted waits for it, and nothing else does.)
// checkpoint.replaced-as-whole: A page's new image goes where no image of the checkpoint before lies.  The new
//     checkpoint takes the old one's place by its name, when its images are on the disk.  So there is one, whole, at
//     any moment, and nothing is needed of what was cut off.
// checkpoint.name-durable-first: A process that reads a checkpoint syncs its directory before it gives up anything that
//     only the one before needs: images of pages (DeltaPages::open), or logs.  The process that wrote it may have died
//     when it had its name, and before that was on the disk.
// checkpoint.counts-until-saved: It says on which save of which pool it stands; on no other it counts.
//
//   auto there = read_checkpoint(durable, pool_id, saves, &problem);
//   auto delta = DeltaPages::open(durable, there->pages, &problem);
//   ...delta->write(page, image, &problem)...; there->pages = (*delta)->finish();
//   GCL_TRY(write_checkpoint(durable, *there, &problem));
//
// One process at a time writes; any may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bufmgr/base/page.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/memory_file.hpp"

namespace recovery {

struct Death;

struct Checkpoint {
  // A node's log in one of its places: of its incarnations behind `after` (NodeHistory::joined), up to `upto` so far.
  struct Log {
    uint64_t node, after, upto;
    uint64_t position;      // of the last record that is in the checkpoint: the log is needed from there on
    uint64_t check;         // of that record: another log has another one there
    uint64_t sequence_end;  // of the node's records so far
    bool operator==(const Log&) const = default;
  };
  // What the journal has of a dead node's ring; `at`: bytes of it that are in the checkpoint.
  struct Ring {
    uint64_t node, incarnation, at;
    bool operator==(const Ring&) const = default;
  };
  // What a node's logs have said of its transactions, in the terms of the layers above.
  struct Evidence {
    uint64_t node;
    std::vector<std::byte> bytes;
  };
  struct Page {
    bufmgr::PageId page;
    uint32_t slot;      // in the delta
    uint32_t checksum;  // CRC-32C of the image
  };

  uint64_t pool_id = 0, saves = 0;  // checkpoint.counts-until-saved
  uint64_t number = 0;              // since that save; 0: there is none
  uint64_t time_us = 0;             // since 1970, when it was made
  std::vector<Log> logs;
  std::vector<Ring> rings;
  std::vector<Evidence> evidence;
  std::vector<Page> pages;

  // All of its ring.
  bool has_ring(const Death&) const;
};

// Number 0: there is none that counts.  kCorrupt, kIncompatible, kSystem.
coherence::Result<Checkpoint> read_checkpoint(const char* durable_path, uint64_t pool_id, uint64_t saves,
                                              coherence::Problem*);
// Durable when it returns.  REQUIRES: so are the images.  kNoSpace, kSystem: the one before is there.
coherence::Status write_checkpoint(const char* durable_path, const Checkpoint&, coherence::Problem*);

// The images.
class DeltaPages {
 public:
  // `pages` of the checkpoint that is there, which was read before; none, if the file is not needed yet.  kSystem,
  // kNotFound: it is gone.
  static coherence::Result<std::unique_ptr<DeltaPages>> open(const char* durable_path,
                                                             const std::vector<Checkpoint::Page>& pages,
                                                             coherence::Problem*);
  // False: it is as in the copy.  kCorrupt, with the page's name; kSystem.
  coherence::Result<bool> read(bufmgr::PageId, std::byte* to, coherence::Problem*);
  // REQUIRES: not yet written since open() or finish().  kNoSpace, kSystem.
  coherence::Status write(bufmgr::PageId, const std::byte* image, coherence::Problem*);
  // All that were written are on the disk then.  kSystem.
  coherence::Result<std::vector<Checkpoint::Page>> finish(coherence::Problem*);
  uint64_t count() const { return at_.size(); }

 private:
  struct Place {
    uint32_t slot, checksum;
  };
  DeltaPages(int fd, const char* durable_path);
  void find_free();

  char path_[560];
  coherence::File file_;
  std::unordered_map<uint64_t, Place> at_;  // by raw page ids
  std::vector<uint32_t> free_;              // slots of no image of the checkpoint before, but those from next_ on
  uint32_t next_ = 0;
};

}  // namespace recovery
