// DirectPath: a node's way to memory nodes beside its links (verbs): batches do not travel as frames, and the memory
// node's processor carries none of them out.  DirectAccess: the memory node's side.
//
// tcp.path-of-link: A path belongs to a link: the node asks for it by a frame when the link begins, and only one
//     that has the cluster's key gets an answer (tcp.key-first).  It is gone before anybody is told that the link is
//     over: neither does a batch take place at the memory node any more (tcp.death-is-a-closed-link), nor is memory
//     of the node touched whose sessions have been told that an outcome is unknown.
// tcp.one-data-path: A memory node that offers paths carries out no batch of a node that comes as a frame: what a
//     device does to a word and what a processor does know nothing of each other.  Batches of tools it does: those
//     write only while no node is in the pool (tcp.tools-look).
//
// One thread each, the network worker's, the memory node's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/link.hpp"
#include "coherence/transport/tcp/memory/port.hpp"

namespace coherence::tcp {

// Types of frames on a link: what a path needs of the other side, in each direction.
inline constexpr uint16_t kAskPathFrame = 3, kPathFrame = 4;

// Hears what comes of batches; within DirectPath::poll().
class PathUser {
 public:
  // It is open from now on.
  virtual void opened(MemoryNodeId) = 0;
  // The first of those that are under way there and not complete is complete.
  virtual void completed(MemoryNodeId) = 0;
  // The path is closed: what is under way there has no known outcome (transport.unknown-never-success).
  virtual void broken(MemoryNodeId, const char* why) = 0;

 protected:
  ~PathUser() = default;
};

class DirectPath {
 public:
  virtual ~DirectPath() = default;
  // The link has begun, or the memory node has answered by a frame.  An error ends the link.
  virtual Status ask(net::Link&, Problem*) = 0;
  virtual Status answer(net::Link&, std::span<const std::byte> payload, Problem*) = 0;
  // Something has gone there and back.
  virtual bool is_open(MemoryNodeId) const noexcept = 0;
  // False: there is no room at the moment.  Batches to one memory node are complete in the order in which they were
  // posted.  REQUIRES: it is open.
  virtual bool post(MemoryNodeId, PortEntry&) = 0;
  // What is complete, and what broke.
  virtual void poll(PathUser&) = 0;
  // The worker is about to sleep: from now on fd() becomes readable when something is complete.  True: something is
  // already, or may be so soon that sleeping is not worth it.
  virtual bool keeps_awake() noexcept = 0;
  virtual int fd() const noexcept = 0;
  virtual void readable() noexcept = 0;  // fd() is
  // No operation of it touches this node's memory when this returns.  Idempotent.
  virtual void close(MemoryNodeId) noexcept = 0;
};

class DirectAccess {
 public:
  virtual ~DirectAccess() = default;
  // A node, which may have batches carried out, asks for a path; the answer is sent.  An error ends the link.
  virtual Status open(net::Link&, std::span<const std::byte> payload, Problem*) = 0;
  // Nothing that came, or comes, by the link's path takes place when this returns.  Idempotent; of any link.
  virtual void close(const net::Link&) noexcept = 0;
  virtual size_t paths() const noexcept = 0;
  // What the device says: after each pass of the server; and the descriptor that is readable then.
  virtual void after_pass() = 0;
  virtual int fd() const noexcept = 0;
};

}  // namespace coherence::tcp
