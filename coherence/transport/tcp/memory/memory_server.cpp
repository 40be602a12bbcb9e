#include "coherence/transport/tcp/memory/memory_server.hpp"

#include <utility>

#include "coherence/base/text.hpp"

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
                                 .times = spec.times},
                                std::move(credentials), *server, problem);
  if (!links) return links.error();
  server->links_ = links.take();
  return server;
}

MemoryServer::~MemoryServer() = default;

Status MemoryServer::serve(net::Link& link, uint16_t type, std::span<const std::byte> payload, Problem* problem) {
  if (type != kRequestFrame && spec_.other != nullptr) return spec_.other->frame(link, type, payload, problem);
  if (type != kRequestFrame) return problem->set(Errc::kCorrupt, "a frame of type %u", unsigned{type});
  if (link.peer().role == net::Role::kMemoryNode)
    return problem->set(Errc::kCorrupt, "a batch, though it is a memory node");
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

MemoryServer::Figures MemoryServer::figures() const noexcept {
  Figures now = figures_;
  now.links = open_.size();
  return now;
}

void MemoryServer::turn(int ms) {
  const int most = spec_.other != nullptr ? spec_.other->wait_ms() : -1;
  links_->wait(most >= 0 && (ms < 0 || ms > most) ? most : ms);
  if (spec_.other != nullptr) spec_.other->turn();
}

void MemoryServer::stop() {
  links_->flush();
  for (net::Link* link : open_) link->end("the memory node stops");
  links_->flush();
}

// tcp.nothing-believed
void MemoryServer::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload) {
  Problem problem;
  if (serve(link, type, payload, &problem)) return;
  figures_.ended++;
  Text text;
  log_.line(text.add("ends the link to %s, which sent %s", link.peer().name().text, problem.text).c_str());
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
  Text text;
  log_.line(text.add("%s has left: %s", link.peer().name().text, link.reason()).c_str());
  if (spec_.other != nullptr) spec_.other->over(link);
}

}  // namespace coherence::tcp
