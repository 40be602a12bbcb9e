// PoolUser: a process that reads and writes pages through bufmgr, at random, and tells the oracle.
#pragma once

#include "bufmgr/mini_transaction.hpp"
#include "pool_cluster.hpp"

namespace sim {

class PoolUser {
 public:
  PoolUser(PoolCluster&, PoolMember&, int number);
  void work(int operations);

 private:
  void one_operation();
  void read(int page, Intent);
  void write(int page);
  void write_two(int page);
  void read_optimistically(int page);
  void upgrade(int page);
  void copy(int page);
  void hold(int page);
  void try_latch(int page);
  void abort_in_the_middle(int page);

  // Calls what may wait; an outcome that users were not told to expect is an objection.
  template <class Wait>
  auto waited(Wait);
  void expect(Errc);
  bufmgr::OptimisticGuard look_at(int page);
  bool read_words(const bufmgr::OptimisticGuard&, int page, uint64_t* value);  // whether they were valid
  template <class Guard>
  void look(const Guard&, int page);  // in a section
  void check_hint(uint64_t hint, int page);
  void check_former(const std::byte* bytes, int page);
  void change(bufmgr::MiniTransaction&, bufmgr::ExclusiveGuard&, int page);  // in an exclusive section
  void commit(bufmgr::MiniTransaction&, std::initializer_list<int> pages);
  void enter(int page, bool exclusive) { cluster_.oracle_.enter(page, exclusive); }
  void leave(int page, bool exclusive) { cluster_.oracle_.leave(page, exclusive); }
  void think();
  PageId id(int page) const { return cluster_.id(page); }

  PoolCluster& cluster_;
  const Options& options_;
  Random& random_;
  Chance chance_;
  bufmgr::BufferPool& pool_;
  std::unique_ptr<bufmgr::Session> session_;
  PoolCluster::Waiting& waiting_;
  uint64_t hints_ = 0;
  bool over_ = false;  // the pool is fenced
};

}  // namespace sim
