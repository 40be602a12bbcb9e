// EntryQueue: entries of the Port in the order in which they came, chained in the entries.  One thread.
#pragma once

#include "coherence/transport/tcp/memory/port.hpp"

namespace coherence::tcp {

class EntryQueue {
 public:
  PortEntry* first() const noexcept { return first_; }  // null: there is none
  void push(PortEntry& entry) noexcept {
    entry.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &entry;
    last_ = &entry;
  }
  void pop() noexcept { first_ = first_->next; }  // REQUIRES: there is one

 private:
  PortEntry *first_ = nullptr, *last_ = nullptr;
};

}  // namespace coherence::tcp
