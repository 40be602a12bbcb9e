// A cut through the logs of all primaries: positions up to which they have the same history.
//
// gclctl.cut-is-causal: What is in the log of one before its position depends on nothing that is behind another's.  The
//     commits of all primaries are held at once for that, for a moment (hold.commits-are-whole, hold.pages-stay): each
//     says its position when it holds them, and none lets go before all have said theirs.  A hold that was over before
//     it was released makes the cut void, and it is taken again, a few times.
// gclctl.cut-has-journal: The journal is read while commits are held.  An entry is there before what it says has an
//     effect (pool.journal-before-effect), so whatever is in the logs before the cut, its entries are there; and none
//     of those that are can be missed by a log, because a primary that joins or dies breaks its hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/connection.hpp"

namespace gclctl {

struct Cut {
  std::chrono::system_clock::time_point time;  // while commits were held
  double held_ms = 0;                          // from the first that held them to the last that let go, at most
  std::map<int, uint64_t> position;            // by primary
  uint64_t journal_bytes = 0;                  // of the journal that count
};

// As UTC, as PostgreSQL writes it, to the microsecond.
std::string text_of_time(std::chrono::system_clock::time_point time);

// A position in a log, as PostgreSQL writes it: 0/1A2B3C.
std::string text_of_position(uint64_t position);
uint64_t position_in(const std::string& text);

// A connection to each primary, in a database with the extension; made before anything is copied.  As long as the same
// ones answer, no primary has started anew.
class AllPrimaries {
 public:
  // Fails if one of them does not run, or none has the extension.
  explicit AllPrimaries(const Cluster&);
  Connection& operator[](int k) { return *connection_.at(k); }
  // Fails, with the reason, if there is none after a few attempts.
  Cut take_cut();

 private:
  bool try_cut(Cut*, std::string* problem);

  const fs::path journal_;
  std::map<int, std::unique_ptr<Connection>> connection_;
};

}  // namespace gclctl
