// ComboCommands: the commands that made and ended versions, where a running transaction needs both, or the row has no
// room for one (heap.commands-noted-first).  Of one session; forgotten at the end of its transaction.
//
// By page, and within a page by runs of line pointers with the same pair of commands: a command that changes a million
// rows costs a run per page, and a page never has more runs than line pointers.  A run also covers lines between its
// own of which nothing was noted: they are never asked for (heap.note-of-this-version), and when one is noted, the run
// is split there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "extension/engine/memory/growing_array.hpp"
#include "extension/engine/memory/growing_map.hpp"

namespace engine {

struct Commands {
  uint32_t made = 0, ended = 0;
  bool operator==(const Commands&) const = default;
};

// Where a version lies: a heap page, and a line pointer of it.
struct RowPlace {
  coherence::PageId page;
  uint16_t line;
};

class ComboCommands {
 public:
  // What was noted of the place before is forgotten.  kNoMemory: nothing has changed.
  coherence::Status note(RowPlace at, Commands commands) noexcept;
  // REQUIRES: noted.
  Commands at(RowPlace place) const noexcept;
  void forget() noexcept { pages_.forget(); }
  size_t runs() const noexcept;

 private:
  struct Run {
    Commands commands;
    uint16_t first, last;
  };
  static_assert(sizeof(Run) == 12);
  using Runs = GrowingArray<Run>;  // of a page: in the order of their lines, none of which is in two
  coherence::Status put(RowPlace at, Commands commands) noexcept;
  static uint32_t run_for(const Runs& runs, uint16_t line) noexcept;
  static bool extend(Runs& runs, uint32_t next, uint16_t line, Commands commands) noexcept;
  static uint32_t split(Runs& runs, uint32_t at, uint16_t line) noexcept;
  GrowingMap<Runs> pages_;  // by raw page id

  // Kept for when notes have taken all there is: given back then, so that the session has something to go on with
  // behind a savepoint.  What was noted before it stays until the transaction ends.
  static constexpr size_t kReserve = 64 << 10;
  std::unique_ptr<std::byte[]> reserve_;
};

}  // namespace engine
