// The recording end of record.hpp, in each process that is recorded.
//
// Threads: any.  Signal handlers: those that would come while the lock is held wait.  A process that is killed there
// breaks the recording; a test that kills sets Header::paused before.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>

#include "tests/power/record.hpp"

namespace power {

class Recorder {
 public:
  // Nullptr: this process is not recorded.
  static Recorder* get();

  // Whether an open file is one whose changes are recorded, and its inode.
  bool has(int fd, uint64_t* inode);
  bool has_directory(int fd, uint64_t* inode);
  // Whether a path leads to such a file; *full: without . and .., from the root.
  bool has(int directory, const char* path, std::string* full) const;
  bool has(const std::string& full) const;
  void breaks(Broken);

  uint64_t count() const { return header_->count.load(); }
  uint32_t sync_us() const { return header_->sync_us; }

  // While there is one, no other process changes anything.
  class [[nodiscard]] Change {
   public:
    explicit Change(Recorder&);
    ~Change();
    void opened(const std::string& path, uint64_t inode, uint64_t flags) const;
    void wrote(uint64_t inode, uint64_t at, const void* from, uint64_t bytes) const;
    void sized(uint64_t inode, uint64_t size) const;
    void zeroed(uint64_t inode, uint64_t at, uint64_t bytes) const;
    void named(Kind, const std::string& path, const std::string& other = "", uint64_t inode = 0) const;
    void synced(Kind, uint64_t inode, uint64_t upto) const;

   private:
    void append(Kind, const std::string& path, const std::string& other, uint64_t inode, uint64_t at, uint64_t length,
                const void* data) const;
    Recorder& recorder_;
    sigset_t signals_;
    const int errno_;
  };

 private:
  explicit Recorder(Header* header);
  bool is_below(const std::string& full) const;

  Header* const header_;
  const std::string root_;
  uint64_t device_ = 0;
};

}  // namespace power
