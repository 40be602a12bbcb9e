#include "coherence/transport/tcp/memory/memory_server.hpp"

#include <utility>

#include "coherence/base/text.hpp"
#include "coherence/transport/tcp/memory/figures_frame.hpp"

namespace coherence::tcp {

Status check_places(const Batch& batch, MemoryNodeId id, uint64_t bytes, Problem* problem) noexcept {
  if (batch.to() != id) return problem->set(Errc::kCorrupt, "a batch for memory node %u", unsigned{batch.to().value});
  for (int i = 0; i < batch.size(); i++) {
    const Op& op = batch.op(i);
    const auto at = static_cast<unsigned long long>(op.at.offset());
    if (op.bytes > bytes || op.at.offset() > bytes - op.bytes)
      return problem->set(Errc::kCorrupt, "an operation on %u bytes at %llu, of %llu that there are", op.bytes, at,
                          static_cast<unsigned long long>(bytes));
    if (op.verb != Verb::kRead && op.verb != Verb::kWrite && op.at.offset() % sizeof(uint64_t) != 0)
      return problem->set(Errc::kCorrupt, "an atomic at %llu, which is no word", at);
  }
  return {};
}

Result<std::unique_ptr<MemoryServer>> MemoryServer::make(Memory& memory, const Spec& spec, net::Credentials credentials,
                                                         Log& log, Problem* problem) {
  std::unique_ptr<MemoryServer> server(new MemoryServer(memory, spec, log));
  auto links = net::Links::make({.self = net::Who::memory_node(spec.id, spec.start),
                                 .cluster = spec.cluster,
                                 .window = spec.window,
                                 .again = spec.id.value != 0,  // tcp.young-dialed-again
                                 .times = spec.times},
                                std::move(credentials), *server, problem);
  if (!links) return links.error();
  server->links_ = links.take();
  if (spec.other != nullptr) spec.other->set_access(spec.access);
  if (spec.access != nullptr) GCL_TRY(server->links_->watch(spec.access->fd(), problem));
  return server;
}

MemoryServer::~MemoryServer() = default;

Status MemoryServer::serve(net::Link& link, uint16_t type, std::span<const std::byte> payload, Problem* problem) {
  if (type == kAskFiguresFrame && link.peer().role == net::Role::kTool) return tell_figures(link, payload, problem);
  if (type == kAskPathFrame) return open_path(link, payload, problem);
  if (type != kRequestFrame && spec_.other != nullptr) return spec_.other->frame(link, type, payload, problem);
  if (type != kRequestFrame) return problem->set(Errc::kCorrupt, "a frame of type %u", unsigned{type});
  if (link.peer().role == net::Role::kMemoryNode)
    return problem->set(Errc::kCorrupt, "a batch, though it is a memory node");
  if (link.peer().role == net::Role::kNode && spec_.access != nullptr)  // tcp.one-data-path
    return problem->set(Errc::kIncompatible, "a batch over tcp, though this memory node is reached by verbs alone");
  GCL_TRY(batch_.decode(payload, problem));
  Batch& batch = batch_.batch();
  GCL_TRY(check_places(batch, spec_.id, spec_.bytes, problem));
  if (spec_.other != nullptr) GCL_TRY(spec_.other->may_run(link, batch, problem));
  memory_.post(batch);
  if (!batch.known()) return problem->set(Errc::kFenced, "a batch whose outcome is not known");
  const std::span<const std::byte> result = batch_.result();
  figures_.batches++;
  figures_.operations += uint64_t(batch.size());
  figures_.bytes_in += payload.size();
  figures_.bytes_out += result.size();
  const Status sent = link.send(kResultFrame, result);
  if (sent.error() == Errc::kNoSpace) return problem->set(Errc::kCorrupt, "more batches than their results have room");
  return sent.error() == Errc::kNotFound ? Status() : sent;  // over meanwhile
}

// A tool waits for each answer, so there is room for it.
Status MemoryServer::tell_figures(net::Link& link, std::span<const std::byte> payload, Problem* problem) {
  if (!payload.empty()) return problem->set(Errc::kCorrupt, "a question about figures with %zu bytes", payload.size());
  const Figures now = figures();
  const FiguresRecord record{.up_us = now.up_ns / 1000,
                             .links = now.links,
                             .batches = now.batches,
                             .operations = now.operations,
                             .bytes_in = now.bytes_in,
                             .bytes_out = now.bytes_out,
                             .refused = now.ended,
                             .user_us = now.cpu.user_us,
                             .system_us = now.cpu.system_us};
  const Status sent = link.send(kFiguresFrame, std::as_bytes(std::span(&record, 1)));
  if (sent.error() == Errc::kNoSpace)
    return problem->set(Errc::kCorrupt, "a question before the answer to the last one");
  return sent.error() == Errc::kNotFound ? Status() : sent;  // over meanwhile
}

Status MemoryServer::open_path(net::Link& link, std::span<const std::byte> payload, Problem* problem) {
  if (link.peer().role != net::Role::kNode)
    return problem->set(Errc::kCorrupt, "that it wants a queue pair, though it is no node");
  if (spec_.access == nullptr)
    return problem->set(Errc::kIncompatible, "that it wants a queue pair: this memory node is reached over tcp alone");
  if (spec_.other != nullptr) GCL_TRY(spec_.other->may_run(link, Batch(spec_.id), problem));
  return spec_.access->open(link, payload, problem);
}

// tcp.path-of-link
void MemoryServer::close_path(const net::Link& link) noexcept {
  if (spec_.access != nullptr) spec_.access->close(link);
}

MemoryServer::Figures MemoryServer::figures() const noexcept {
  Figures now = figures_;
  now.links = open_.size();
  now.up_ns = monotonic_ns() - made_at_;
  now.cpu = processor_time();
  if (spec_.access != nullptr) now.paths = spec_.access->paths();
  return now;
}

void MemoryServer::run_once(int ms) {
  const int most = spec_.other != nullptr ? spec_.other->wait_ms() : -1;
  links_->wait(most >= 0 && (ms < 0 || ms > most) ? most : ms);
  if (spec_.access != nullptr) spec_.access->after_pass();
  if (spec_.other != nullptr) spec_.other->after_pass();
}

void MemoryServer::stop() {
  links_->flush();
  for (net::Link* link : open_) {
    close_path(*link);
    link->end("the memory node stops");
  }
  links_->flush();
}

// tcp.nothing-believed
void MemoryServer::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload) {
  Problem problem;
  if (serve(link, type, payload, &problem)) return;
  figures_.ended++;
  Text text;
  log_.line(text.add("ends the link to %s, which sent %s", link.peer().name().text, problem.text).c_str());
  close_path(link);
  link.end(problem.text);
}

void MemoryServer::begun(net::Link& link) {
  open_.push_back(&link);
  Text text;
  log_.line(text.add("%s is here", link.peer().name().text).c_str());
  if (link.peer().role == net::Role::kMemoryNode && spec_.other == nullptr)
    return link.end("memory nodes ask for nothing");
  if (spec_.other != nullptr) spec_.other->begun(link);
}

void MemoryServer::disconnected(net::Link& link) {
  Text text;
  log_.line(text.add("%s is away: %s", link.peer().name().text, link.reason()).c_str());
  if (spec_.other != nullptr) spec_.other->disconnected(link);
}

void MemoryServer::reconnected(net::Link& link) {
  Text text;
  log_.line(text.add("%s is here again", link.peer().name().text).c_str());
  if (spec_.other != nullptr) spec_.other->reconnected(link);
}

void MemoryServer::room(net::Link& link) {
  if (spec_.other != nullptr) spec_.other->room(link);
}

void MemoryServer::over(net::Link& link) {
  std::erase(open_, &link);
  close_path(link);
  Text text;
  log_.line(text.add("%s has left: %s", link.peer().name().text, link.reason()).c_str());
  if (spec_.other != nullptr) spec_.other->over(link);
}

}  // namespace coherence::tcp
