#include "coherence/transport/tcp/network_worker.hpp"

#include <bit>
#include <utility>

#include "coherence/base/text.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/tcp/batch_frame.hpp"

namespace coherence::tcp {

static_assert(kRequestBytesMax <= net::kPayloadMax && kResultBytesMax <= net::kPayloadMax);

NetworkWorker::NetworkWorker(Port& port, Log& log) : port_(port), log_(log), frame_(new std::byte[kRequestBytesMax]) {}

Result<std::unique_ptr<NetworkWorker>> NetworkWorker::make(Port& port, const Spec& spec, net::Credentials credentials,
                                                           Log& log, Problem* problem) {
  std::unique_ptr<NetworkWorker> worker(new NetworkWorker(port, log));
  auto links =
      net::Links::make({.self = spec.self, .cluster = spec.cluster, .window = spec.window, .times = spec.times},
                       std::move(credentials), *worker, problem);
  if (!links) return links.error();
  worker->links_ = links.take();
  GCL_TRY(worker->links_->watch(port.bell(), problem));
  return worker;
}

NetworkWorker::~NetworkWorker() {
  if (links_ == nullptr) return;
  port_.close();
  take_posted();
  for (Route& route : route_) {
    if (route.link != nullptr) std::exchange(route.link, nullptr)->end("the node ends");
    give_up(route);
  }
  links_->flush();
}

Status NetworkWorker::add(MemoryNodeId id, const net::Endpoints& at, Problem* problem) {
  VERIFY(id.value < kMemoryNodesMax && route_[id.value].link == nullptr);
  auto link = links_->dial(net::Who::memory_node(id, 0), at, problem);
  if (!link) return link.error();
  Route& route = route_[id.value];
  route.link = *link;
  route.link->context = &route;
  return {};
}

void NetworkWorker::turn(int ms) {
  take_posted();
  const bool sleeps = ms != 0 && port_.may_sleep();
  links_->wait(sleeps ? ms : 0);
  if (sleeps) port_.awake();
}

void NetworkWorker::take_posted() {
  port_.take_posted([this](PortPlace& place, uint32_t entries) {
    for (; entries != 0; entries &= entries - 1) {
      PortEntry& entry = place.entry[std::countr_zero(entries)];
      entry.place = &place;
      VERIFY(entry.to.value < kMemoryNodesMax);
      Route& route = route_[entry.to.value];
      if (route.link == nullptr) {
        finish(entry, false);  // tcp.link-over
        continue;
      }
      route.posted.push(entry);
      send(route);
    }
  });
}

void NetworkWorker::send(Route& route) {
  while (route.posted.first() != nullptr && send_first(route)) {
  }
}

// False: it has to wait.
bool NetworkWorker::send_first(Route& route) {
  PortEntry& entry = *route.posted.first();
  const uint32_t bytes = request_bytes(entry.ops());
  entry.result_bytes = net::frame_bytes(result_bytes_max(entry.ops()));
  if (!route.link->room_for(bytes)) return false;                                    // tcp.window-bounded
  if (route.awaited + entry.result_bytes > route.link->peer_window()) return false;  // tcp.answers-have-room
  entry.tag = route.next_tag++;
  encode_request(entry.to, entry.tag, entry.ops(), frame_.get());
  if (!route.link->send(kRequestFrame, std::span<const std::byte>(frame_.get(), bytes))) return false;
  route.posted.pop();
  route.sent.push(entry);
  route.awaited += entry.result_bytes;
  return true;
}

void NetworkWorker::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload) {
  port_.awake();  // what is posted meanwhile is taken by the next turn
  Route& route = route_of(link);
  PortEntry* const entry = route.sent.first();
  Problem problem;
  if (type != kResultFrame)
    problem.write("a frame of type %u", unsigned{type});
  else if (entry == nullptr)
    problem.write("a result that nobody waits for");
  else if (decode_result(payload, entry->to, entry->tag, entry->ops(), &problem)) {
    route.sent.pop();
    route.awaited -= entry->result_bytes;
    finish(*entry, true);
    return send(route);
  }
  Text text;  // tcp.nothing-believed
  log_.line(text.add("ends the link to %s, which sent %s", link.peer().name().text, problem.text).c_str());
  link.end(problem.text);
}

void NetworkWorker::finish(PortEntry& entry, bool known) {
  port_.done(*entry.place, int(&entry - entry.place->entry), known);
}

void NetworkWorker::give_up(Route& route) {
  for (EntryQueue* queue : {&route.sent, &route.posted})
    while (PortEntry* entry = queue->first()) {
      queue->pop();  // before its session has it again
      finish(*entry, false);
    }
  route.awaited = 0;
}

void NetworkWorker::begun(net::Link& link) {
  if (link.peer_window() < net::frame_bytes(kResultBytesMax)) return link.end("its window is too small for a result");
  Text text;
  log_.line(text.add("connected to %s", link.peer().name().text).c_str());
  send(route_of(link));
}

void NetworkWorker::disconnected(net::Link& link) {
  Text text;
  log_.line(text.add("the connection to %s broke: %s", link.peer().name().text, link.reason()).c_str());
}

void NetworkWorker::reconnected(net::Link& link) {
  Text text;
  log_.line(text.add("connected again to %s", link.peer().name().text).c_str());
  send(route_of(link));
}

// tcp.link-over
void NetworkWorker::over(net::Link& link) {
  Route& route = route_of(link);
  route.link = nullptr;
  Text text;
  log_.line(text.add("the link to %s is over: %s", link.peer().name().text, link.reason()).c_str());
  give_up(route);
}

}  // namespace coherence::tcp
