// What bufmgr keeps in the node's arena, and where.
//
//   NodeShared | BufferCounts per session | Announcement per session | frame table | free list | marks | dirty frames
//   | redo on its way to the ring | extra
#pragma once

#include <atomic>
#include <cstdint>

#include "bufmgr/frame/dirty_frames.hpp"
#include "bufmgr/frame/frame_table.hpp"
#include "bufmgr/frame/free_list.hpp"
#include "bufmgr/frame/replacement.hpp"
#include "bufmgr/log/log_gate.hpp"
#include "bufmgr/log/redo_ring.hpp"
#include "bufmgr/session.hpp"

namespace bufmgr {

struct NodeShared {
  RedoRing::Shared ring;
  LogGate::Shared gate;
  alignas(64) std::atomic<uint32_t> provider_called;  // futex word: grows with every call for the page provider
  std::atomic<uint32_t> provider_sleeps;
  // The memory node whose turn it is: [0] to give a single page, [1] an extent.  It only spreads load.
  std::atomic<uint32_t> next_memory_node[2];
};

// Byte offsets in the node's private memory.
struct ArenaPlan {
  uint64_t counts, announcements, table, free, marks, dirty, redo, extra, bytes;

  static constexpr uint64_t up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }
  static ArenaPlan make(uint32_t frames, uint32_t sessions, uint64_t redo_bytes, uint64_t extra_bytes) {
    ArenaPlan plan;
    plan.counts = up(sizeof(NodeShared), 64);
    plan.announcements = up(plan.counts + sessions * sizeof(BufferCounts), 64);
    plan.table = up(plan.announcements + sessions * sizeof(LogGate::Announcement), 64);
    plan.free = up(plan.table + FrameTable::bytes_for(frames), 64);
    plan.marks = up(plan.free + FreeList::bytes_for(frames), 64);
    plan.dirty = up(plan.marks + FrameMarks::bytes_for(frames), 64);
    plan.redo = up(plan.dirty + DirtyFrames::bytes_for(frames), 64);
    plan.extra = up(plan.redo + redo_bytes, 4096);
    plan.bytes = up(plan.extra + extra_bytes, 4096);
    return plan;
  }
};

}  // namespace bufmgr
