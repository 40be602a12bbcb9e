// A pool of 64 pages for a few nodes of one process; its files go with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "coherence/pool/pool.hpp"
#include "coherence/transport/shm/local_pool.hpp"

namespace coherence {

class SmallPool {
 public:
  SmallPool() {
    static int serial = 0;
    path_ = "/dev/shm/gcl-test-conformance-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
    PoolSpec spec{.nodes_max = 3, .compatibility = ""};
    spec.region_bytes[kRegionPages] = 64 * kPageSize;
    Problem problem;
    auto made = LocalPool::create({.path = path_.c_str()}, spec, &problem);
    EXPECT_TRUE(made.ok()) << problem.text;
    if (made) pool_ = made.take();
  }
  ~SmallPool() {
    pool_.reset();
    if (system(("rm -f " + path_ + "*").c_str()) != 0) perror(path_.c_str());
  }
  SmallPool(const SmallPool&) = delete;
  Pool& operator*() const { return *pool_; }
  Pool* operator->() const { return pool_.get(); }

 private:
  std::string path_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace coherence
