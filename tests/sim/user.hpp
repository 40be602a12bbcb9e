// User: a process that reads and writes pages, at random, and tells the oracle.
#pragma once

#include "cluster.hpp"

namespace sim {

class User {
 public:
  User(Cluster&, Member&, int number);
  void work(int operations);
  void hog(const Member& victim);  // until the victim's users have ended

 private:
  void one_operation();
  // Sections; false: the latch was not got.
  bool read(int page, Intent);
  bool write(int page);
  bool read_optimistically(int page);
  bool write_two(int page);
  bool hold(int page);
  void try_latch(int page);
  void look_once(int page);

  template <class Wait>
  Status waited(Wait);
  Status lock(Line&, int page, bool exclusive, Intent);
  void look(const Line&, int page);  // in a section
  void change(Line&, int page);      // in an exclusive section
  void end_exclusive(Line&, int page);
  void end_shared(Line&, int page);
  uint64_t word(const Line&, int i) const;
  void think();
  PageId id(int page) const { return Directory::page(page); }

  Cluster& cluster_;
  Member& member_;
  const Options& options_;
  Random& random_;
  Chance chance_;
  Session session_;
  Cluster::Waiting& waiting_;
  bool over_ = false;  // the pool is fenced
};

}  // namespace sim
