#include "coherence/transport/tcp/network_worker.hpp"

#include <utility>

namespace coherence::tcp {
namespace {

Route* route_of(net::Link& link) { return static_cast<Route*>(link.context); }

}  // namespace

Result<std::unique_ptr<NetworkWorker>> NetworkWorker::make(Port& port, const Spec& spec, net::Credentials credentials,
                                                           Log& log, Problem* problem) {
  std::unique_ptr<NetworkWorker> worker(new NetworkWorker(port.worker_wakeup(), log));
  auto links =
      net::Links::make({.self = spec.self, .cluster = spec.cluster, .window = spec.window, .times = spec.times},
                       std::move(credentials), *worker, problem);
  if (!links) return links.error();
  worker->links_ = links.take();
  GCL_TRY(worker->links_->watch(worker->worker_wakeup_.fd(), problem));
  worker->memory_.emplace(port, *worker->links_, log);
  worker->add(*worker->memory_);
  worker->worker_wakeup_.set_worker();
  return worker;
}

NetworkWorker::~NetworkWorker() {
  if (links_ == nullptr) return;
  memory_.reset();
  links_->flush();
}

Status NetworkWorker::take_path(std::unique_ptr<DirectPath> path, Problem* problem) {
  path_ = std::move(path);
  memory_->set_path(path_.get());
  return links_->watch(path_->fd(), problem);
}

void NetworkWorker::ready(int fd) {
  if (fd == worker_wakeup_.fd()) return worker_wakeup_.clear();
  path_->readable();
}

void NetworkWorker::run_once(int ms) {
  for (WorkSource* source : sources_) source->take();
  const bool sleeps = ms != 0 && worker_wakeup_.falls_asleep([this] { return any(); });
  links_->wait(sleeps ? ms : 0);
  if (sleeps) worker_wakeup_.is_awake();
}

bool NetworkWorker::any() const noexcept {
  for (WorkSource* source : sources_)
    if (source->any()) return true;
  return false;
}

void NetworkWorker::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload) {
  worker_wakeup_.is_awake();  // what is left meanwhile is taken by the next pass
  if (Route* const route = route_of(link)) route->frame(link, type, payload);
}

void NetworkWorker::begun(net::Link& link) {
  if (link.context == nullptr) {  // a peer's
    if (acceptor_ == nullptr) return link.end("nobody is expected here");
    link.context = acceptor_->accept(link);
  }
  if (Route* const route = route_of(link)) route->begun(link);
}

void NetworkWorker::disconnected(net::Link& link) {
  if (Route* const route = route_of(link)) route->disconnected(link);
}

void NetworkWorker::reconnected(net::Link& link) {
  if (Route* const route = route_of(link)) route->reconnected(link);
}

void NetworkWorker::room(net::Link& link) {
  if (Route* const route = route_of(link)) route->room(link);
}

void NetworkWorker::over(net::Link& link) {
  if (Route* const route = route_of(link)) route->over(link);
}

}  // namespace coherence::tcp
