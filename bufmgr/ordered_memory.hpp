// OrderedMemory: a session's Memory for words of the pool.
//
// log.ring-before-words: A word may lead other nodes to what lies on pages: the head of a list, a mark, a count.  So
//     all redo of what this session may have seen is in the pool before any batch that it posts here.  A caller that
//     knows that its words lead to no page, or sees to the redo itself (RedoPush), uses the memory below.
#pragma once

#include "coherence/transport/memory.hpp"

namespace bufmgr {

class Session;

class OrderedMemory final : public coherence::Memory {
 public:
  explicit OrderedMemory(Session& session) : session_(session) {}
  using Memory::post;
  void post(coherence::Batch* const* batches, int count) override;
  void poll() override;

 private:
  Session& session_;
};

}  // namespace bufmgr
