// What the checkpoint worker does: it has the pool's copy brought up to date (gclctl checkpoint), and lets go of the
// WAL that is not needed for a restart any more.
//
// workers.checkpoints-apart: A checkpoint is made by a program of its own, gcl.checkpoint_command, in a process that
//     shares nothing with the server: what it needs lies in files. It may fail, or be killed, and the worker says so
//     and calls it again later.
// workers.any-primary-checkpoints: Each primary calls the program when the last checkpoint, whichever primary called
//     for it, is older than gcl.checkpoint_timeout, or when its own slot keeps more WAL than gcl.checkpoint_wal_size.
//     Of two at a time one does nothing (gclctl.one-checkpoint-at-a-time).
// workers.own-slot-advanced: Each primary moves its own slot, to where the checkpoint that is there needs its log from.
//     A checkpoint speaks of this server's log if it has this incarnation of the node in it.
#pragma once

namespace gcl {

class Checkpointer {
 public:
  // Once in a while.  May take as long as the command, which an interrupt ends.
  void round();

 private:
  bool is_due() const;
  void let_go_of_wal();

  long seen_s_ = 0, seen_ns_ = 0;  // of the checkpoint's file
  long called_s_ = 0;              // when the command was last called here
  long failed_ = 0;                // how often in a row
};

}  // namespace gcl
