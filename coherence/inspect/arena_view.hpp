// ArenaView: the arena of a node's incarnation, read by a process that is not in the pool (inspect.*: pool_view.hpp).
// It is there while the node is in the pool, and after its death.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/line/line.hpp"
#include "coherence/member/arena.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/region/memory_file.hpp"

namespace coherence {

class PoolView;

class ArenaView {
 public:
  // kNotFound: the node has left the pool, or was never in it; otherwise as PoolView::open().
  static Result<std::unique_ptr<ArenaView>> open(const PoolView& pool, NodeId node, Problem*);

  const ArenaHeader& header() const { return header_; }  // as it was at open()
  const ArenaLayout& layout() const { return header_.layout; }
  const std::string& path() const { return path_; }

  bool read(uint64_t at, void* to, uint64_t bytes) const;
  bool line(uint32_t index, Line::Sight* to) const;
  // All lines, one after the other; ends when `visit` says false.
  void for_lines(const std::function<bool(uint32_t, const Line::Sight&)>& visit) const;
  bool session(uint32_t index, SessionSlot* to) const;
  bool frame(uint32_t index, std::byte* to) const;  // kPageSize bytes

 private:
  explicit ArenaView(int fd) : file_(fd) {}
  std::string path_;
  File file_;
  ArenaHeader header_;
};

}  // namespace coherence
