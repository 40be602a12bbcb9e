// OwnCommands: the commands that made and ended versions, where a running transaction needs both, or the row has no
// room for one (heap K1..K4).  Of one session; forgotten at the end of its transaction.
//
// By page, and within a page by pair of commands: a command that changes a million rows costs a note per page, and a
// page never has more notes than line pointers.
#pragma once

#include <bitset>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "coherence/base/ids.hpp"

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

class OwnCommands {
 public:
  static constexpr uint16_t kLineEnd = 320;  // a page has fewer
  // What was noted of the place before is forgotten.
  void note(RowPlace at, Commands commands);
  // REQUIRES: noted.
  Commands at(RowPlace place) const;
  void forget() noexcept;
  size_t notes() const;

 private:
  struct Note {
    Commands commands;
    std::bitset<kLineEnd> lines;
  };
  std::unordered_map<uint64_t, std::vector<Note>> pages_;  // by raw page id
};

}  // namespace engine
