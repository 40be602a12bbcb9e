// The other primaries' side: running a coordinator's statements in one local transaction.  What the coordinator rolls
// back is rolled back here, and nothing else is.
//
// Between begin() and end, the process is in a transaction, whose savepoints are the coordinator's
// (ddl.savepoints-follow-coordinator). commit() drops a database when the coordinator has done so: until then it is
// locked, and no session is in it (ddl.databases-made-everywhere).
//
// ddl.error-rolls-back-savepoint: An error rolls back the innermost savepoint here, as on the coordinator; without
//     savepoints, the whole transaction.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

struct DdlLockTerms {
  int lock_timeout_ms = 0;      // < 0: does not wait
  int deadlock_timeout_ms = 0;  // the coordinator's; 0: this server's
  bool may_be_gone = false;     // a relation; its coordinator will see that, too
};

class DdlReplay {
 public:
  bool open() const { return open_; }
  void begin();
  // Ends savepoints until `path` is reached, rolling back those in `aborted`; then opens the ones that are missing.
  void go_to(const List* path, const List* aborted);
  void lock(const List* targets, DdlLockTerms terms);
  void run(const DdlRecord* record);
  void commit();
  bool drops() const { return dropped_ != nullptr; }
  void abort();
  // After an error while the coordinator was `depth` savepoints deep (ddl.savepoints-follow-coordinator): rolls back
  // the innermost; the whole transaction if there is none, or if the way to it was not gone to its end.  Returns false
  // if the whole is gone.
  bool roll_back_innermost(int depth);

 private:
  void forget_drop();
  static constexpr int kDepthMax = 1024;
  bool open_ = false;
  int depth_ = 0;
  int path_[kDepthMax];
  char* dropped_ = nullptr;  // database that commit() drops; in TopMemoryContext
};

}  // namespace gcl
