// IndexKeys: stored keys of an index, as the checker of trees asks about them.
//
// The order is that of the operator classes, whose functions only superusers can name: they run as the table's owner.
#pragma once

#include "extension/engine/check/node_check.hpp"
#include "extension/pg/indexam/compare.hpp"

namespace gcl {

class IndexKeys final : public engine::KeySeam {
 public:
  explicit IndexKeys(Relation index) : index_(index), compare_(index) { search_.prepare(INDEX_MAX_KEYS); }
  int operator()(std::span<const std::byte> a, std::span<const std::byte> b) override;
  const char* defect(std::span<const std::byte> key) override;

 private:
  Relation index_;
  TupleComparator compare_;
  SearchKey search_;
};

}  // namespace gcl
